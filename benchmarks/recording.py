"""What recording a training loop costs, beside the bare loop.

    python benchmarks/recording.py

One thread. Updates of the bare loop and of the recorded loop take turns, each with a network of its
own; CPU time, the mean over updates without a checkpoint. Bars: where an update takes 5 ms or more
at most 3% of it, else at most 0.15 ms. Batches are told by their values, the dearer way, and by
number.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import bars
import torch
from torch import Tensor, nn

from inscape.training import Recording, record_training

#: Updates of each loop that are timed, and those before them.
TIMED, BEFORE = 400, 40


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))


def tiny() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(800, 10),
    )  # fmt: skip


def deep() -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten(), nn.Linear(784, 64)]
    for _ in range(20):
        layers += [nn.ReLU(), nn.Linear(64, 64)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(64, 10))


class Loop:
    """A training loop, update by update; recorded if there is a recording."""

    def __init__(self, make: Callable[[], nn.Module], optimizer: str) -> None:
        torch.manual_seed(0)
        self.model = make()
        options = {"lr": 0.01, "momentum": 0.9} if optimizer == "SGD" else {"lr": 0.001}
        self.optimizer = getattr(torch.optim, optimizer)(self.model.parameters(), **options)
        self.run: Recording | None = None

    def update(self, x: Tensor, y: Tensor, told: tuple[Tensor, ...]) -> float:
        begin = time.process_time()
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()
        if self.run is not None:
            self.run.step(*told)
        return time.process_time() - begin


def cost(make: Callable[[], nn.Module], optimizer: str, batch: int, *, by_number: bool) -> None:
    x, y = torch.rand(4096, 1, 28, 28), torch.randint(0, 10, (4096,))
    bare, recorded = Loop(make, optimizer), Loop(make, optimizer)
    with tempfile.TemporaryDirectory() as folder:
        recorded.run = record_training(
            recorded.model, recorded.optimizer, loss="cross_entropy", data=(x, y), every=10**6,
            to=Path(folder) / "run",
        )  # fmt: skip
        times: dict[Loop, list[float]] = {bare: [], recorded: []}
        with recorded.run as run:
            for step in range(TIMED + BEFORE):
                rows = torch.randint(0, len(x), (batch,))
                xb, yb = x[rows], y[rows]
                told = (rows,) if by_number else (xb, yb)
                for loop in (bare, recorded) if step % 2 else (recorded, bare):
                    times[loop].append(loop.update(xb, yb, told))
        assert run.steps == TIMED + BEFORE, run.notes
    alone, beside = (fmean(times[loop][BEFORE:]) for loop in (bare, recorded))
    name = f"{make.__name__} {optimizer} batch {batch}, {'numbers' if by_number else 'values'}"
    print(f"{name}: bare {1e3 * alone:.3f} ms, recorded {1e3 * beside:.3f} ms; {run.verdict}")
    if alone >= 0.005:
        bars.bar(f"recording, {name}", 100 * (beside / alone - 1), at_most=3, unit="%")
    else:
        bars.bar(f"recording, {name}", 1e3 * (beside - alone), at_most=0.15, unit="ms")


def main() -> None:
    torch.set_num_threads(1)
    for by_number in (False, True):
        cost(tiny, "SGD", 32, by_number=by_number)
        cost(perceptron, "AdamW", 64, by_number=by_number)
        cost(deep, "AdamW", 64, by_number=by_number)
        cost(convolutional, "AdamW", 32, by_number=by_number)
        cost(convolutional, "AdamW", 64, by_number=by_number)


if __name__ == "__main__":
    main()
