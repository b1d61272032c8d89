"""Table 5.1's design: how many initialisations until a network of this size learns sine?

A printed count is one draw of a geometric variable, so single counts cannot be compared. Here as
many networks are trained for every size as the dissertation would have tried at most; that gives
the probability of success, and with it the law of the count.
"""

from collections.abc import Iterator, Sequence
from math import pi
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape.lab.experiment import Settings
from inscape.papers.sattelberg._line import line
from inscape.papers.sattelberg._seeds import own_seed

POINTS = 100
#: Accepted networks of a size that are trained on; the dissertation shows the first.
KEPT = 3
#: Outputs that differ by less than this over the interval belong to a constant function.
CONSTANT = 1e-6


def data() -> tuple[Float[Tensor, "n 1"], Float[Tensor, "n 1"]]:
    """Return the points and their sines."""
    x = torch.linspace(-pi, pi, POINTS)[:, None]
    return x, torch.sin(x)


def cell(
    width: int,
    depth: int,
    batch: int,
    trials: int,
    epochs: int,
    more: int,
    accept: float,
    lr: float,
) -> dict[str, Any]:
    """Train ``trials`` networks of one size, and the first that succeed for longer."""
    x, y = data()
    seeds = [own_seed(width, depth, trial) for trial in range(trials)]
    models = [network(width, depth, seed) for seed in seeds]
    start = constants(models, x)
    finished = set(_trained(models, x, y, seeds, batch=batch, epochs=epochs, lr=lr))
    end = constants(models, x)
    good = [i for i, error in enumerate(errors(models, x, y)) if i in finished and error < accept]
    bad = [i for i in range(trials) if i not in good]
    kept = good[:KEPT] if batch >= POINTS else []
    chosen = [models[i] for i in kept]
    list(_trained(chosen, x, y, kept, batch=batch, epochs=more, lr=lr))
    return {
        "successes": len(good),
        "first": good[0] + 1 if good else None,
        "failed_constant_at_start": sum(start[i] for i in bad),
        "failed_constant_at_end": sum(end[i] for i in bad),
        "diverged": trials - len(finished),
        "fits": [fitted(model, x, y) for model in chosen],
    }


def network(width: int, depth: int, seed: int) -> nn.Sequential:
    """Return a rectangular network: ``depth`` hidden layers of ``width`` ReLU units each."""
    from inscape.models import mlp

    return mlp(1, *[width] * depth, 1, seed=seed)


@torch.no_grad()
def constants(models: Sequence[nn.Sequential], x: Float[Tensor, "n 1"]) -> list[bool]:
    """Tell of each network whether it gives the same number everywhere: some layer is dead."""
    spans = ((y.max() - y.min()) for y in (model(x) for model in models))
    return [float(span) < CONSTANT for span in spans]


@torch.no_grad()
def errors(
    models: Sequence[nn.Sequential], x: Float[Tensor, "n 1"], y: Float[Tensor, "n 1"]
) -> list[float]:
    """Return the mean squared error of each network."""
    return [float(((model(x) - y) ** 2).mean()) for model in models]


def _trained(
    models: Sequence[nn.Sequential],
    x: Float[Tensor, "n 1"],
    y: Float[Tensor, "n 1"],
    seeds: Sequence[int],
    *,
    batch: int,
    epochs: int,
    lr: float,
) -> Iterator[int]:
    """Train networks side by side and yield which ones came through; others diverged."""
    from inscape.ensembles import LostMembersError, fit_many

    if not models:
        return
    size = None if batch >= len(x) else batch
    try:
        for member in fit_many(
            models, x, y, lr=lr, epochs=epochs, batch=size, seeds=seeds, progress=False
        ):
            yield member.index
    except LostMembersError:
        return


@torch.no_grad()
def fitted(
    model: nn.Sequential, x: Float[Tensor, "n 1"], y: Float[Tensor, "n 1"]
) -> dict[str, Any]:
    """Return the errors of a network, on both halves too, and all of its pieces."""
    squares: Float64[Tensor, "n 1"] = ((model(x) - y) ** 2).double()
    return {
        "mse": float(squares.mean()),
        "mse_negative": float(squares[y < 0].mean()),
        "mse_positive": float(squares[y > 0].mean()),
        **line(model, -pi, pi).lists(),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: building and training of each network, and the exports."""
    width, depth, batch = settings["width"], settings["depth"], settings["batch"]
    weights = width * width * depth + 10 * width + 50
    sample = 2e-9 * weights + (1e-7 if batch == 1 else 4e-8 if batch < POINTS else 5e-9)
    each = 5e-4 + 5e-5 * depth + settings["epochs"] * POINTS * sample / 16
    return float(settings["trials"] * each + (6 if batch >= POINTS else 1))
