"""Small training loops by hand, as a user would write them, for tests of recordings."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from inscape.training import Recording, record_training

N, CLASSES = 40, 3


def data(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(N, 1, 6, 6, generator=rng, dtype=dtype)
    return x, torch.randint(0, CLASSES, (N,), generator=rng)


def plain(dtype: torch.dtype = torch.float64) -> nn.Sequential:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, CLASSES))
    return seeded(model).to(dtype)


def with_everything(dtype: torch.dtype = torch.float64) -> nn.Sequential:
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.3), nn.Linear(12, CLASSES),
    )  # fmt: skip
    return seeded(model).to(dtype)


def seeded(model: nn.Sequential) -> nn.Sequential:
    for number, parameter in enumerate(model.parameters()):
        with torch.no_grad():
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
            parameter.copy_(0.3 * noise + (parameter.ndim == 1))
    return model


def two_groups(kind: type[torch.optim.Optimizer], model: nn.Sequential, **options: Any) -> Any:
    """Return an optimizer whose first layer has a rate and a decay of its own."""
    named = list(model.named_parameters())
    first = named[0][0].split(".")[0]
    own = [p for name, p in named if name.split(".")[0] == first]
    rest = [p for name, p in named if name.split(".")[0] != first]
    groups = [{"params": own, "lr": 0.03, "weight_decay": 0.1}, {"params": rest}]
    return kind(groups, lr=0.01, **options)


def batches(steps: int, size: int = 8, n: int = N) -> list[Tensor]:
    rng = torch.Generator().manual_seed(3)
    return [torch.randperm(n, generator=rng)[:size] for _ in range(steps)]


def trained(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    to: Any,
    *,
    rows: list[Tensor] | None = None,
    tell: str = "rows",
    clip: Callable[[], object] | None = None,
    transform: Callable[[Tensor], Tensor] | None = None,
    schedule: Any = None,
    accumulate: int = 1,
    divide: bool = True,
    told: Any = ...,
    **settings: Any,
) -> Recording:
    """Train by a plain loop, recorded."""
    x, y = data(next(model.parameters()).dtype)
    torch.manual_seed(7)
    given = (x, y) if told is ... else told
    options = {"loss": "cross_entropy", "every": 4, **settings}
    with record_training(
        model.train(), optimizer, data=given, to=to, accumulate=accumulate, **options
    ) as run:
        optimizer.zero_grad()
        for number, own in enumerate(rows if rows is not None else batches(10)):
            xb, yb = x[own], y[own]
            seen = xb if transform is None else transform(xb)
            loss = cross_entropy(model(seen), yb)
            (loss / accumulate if divide else loss).backward()
            if (number + 1) % accumulate == 0:
                if clip is not None:
                    clip()
                optimizer.step()
                optimizer.zero_grad()
                if schedule is not None:
                    schedule.step()
            run.step(own) if tell == "rows" else run.step(xb, yb)
    model.eval()
    return run
