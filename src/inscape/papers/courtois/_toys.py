"""The two tasks of section 5: networks trained on them, many at once, and what is open in them."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.data import Dataset, load
from inscape.ensembles import fit_many
from inscape.lab.experiment import Settings
from inscape.models import mlp

BASE = "as stated"
#: Readings of what the text leaves open, beside ours.
CHOICES = {
    "ball": {
        BASE: "half of the points on the sphere",
        "few on the sphere": "a quarter of the points on the sphere",
        "factor 1/2": "squared error with a factor 1/2",
        "glorot": "initial weights by Glorot's uniform law, biases 0",
    },
    "plane": {
        BASE: "points uniform on the square",
        "normal points": "points from the standard normal law",
        "factor 1/2": "squared error with a factor 1/2",
        "glorot": "initial weights by Glorot's uniform law, biases 0",
    },
}
ETA = 0.01
#: Shorter trainings are done before it is found out how to do them side by side.
LONG = 100

Points = tuple[Float[Tensor, "n 2"], Float[Tensor, "n 1"]]


def points(task: str, choice: str, n: int, seed: int) -> tuple[Points, Points]:
    """Draw training points, and as many others, with labels +1 and -1."""
    if task == "ball":
        few = choice == "few on the sphere"
        drawn = load(f"ball-versus-sphere:n={2 * n},n_test={2 * n},seed={seed}")
        share = n // 4 if few else n // 2
        train, test = (_balanced(x, y, share, n) for x, y in _both(drawn))
        return train, test
    if choice == "normal points":
        rng = generator(seed)
        train, test = (_sides(torch.randn(n, 2, generator=rng)) for _ in range(2))
        return train, test
    return _both(load(f"half-plane:n={n},n_test={n},seed={seed}"))


def _both(drawn: Dataset) -> tuple[Points, Points]:
    assert drawn.x_test is not None  # test points were asked for
    assert drawn.y_test is not None
    return (drawn.x, drawn.y), (drawn.x_test, drawn.y_test)


def _balanced(x: Tensor, y: Tensor, outer: int, n: int) -> Points:
    """Keep so many points of the sphere, and others up to ``n``."""
    rows = (y[:, 0] > 0).nonzero()[:outer, 0], (y[:, 0] < 0).nonzero()[: n - outer, 0]
    kept = torch.cat(rows).sort().values
    return x[kept], y[kept]


def _sides(x: Tensor) -> Points:
    return x, torch.where(x.double().sum(1, keepdim=True) >= 0, 1.0, -1.0)


def first_network(choice: str, seed: int, inputs: int = 2) -> nn.Sequential:
    """Return the network of section 5.1 as it begins."""
    init = "glorot" if choice == "glorot" else "pytorch"
    return mlp(inputs, 10, 10, 1, activation="gelu", init=init, seed=seed)


def trained(
    task: str, cells: Sequence[Settings]
) -> Iterator[tuple[int, nn.Module, tuple[Points, Points]]]:
    """Train the networks of cells that differ by their seeds alone; yield each when it is done."""
    choice, n, steps = (cells[0][name] for name in ("choice", "n", "steps"))
    data = [points(task, choice, n, cell["seed"]) for cell in cells]
    members = fit_many(
        [first_network(choice, cell["seed"]) for cell in cells],
        [train[0] for train, _ in data],
        [train[1] for train, _ in data],
        lr=ETA / 2 if choice == "factor 1/2" else ETA,
        epochs=steps,
        backend="auto" if steps >= LONG else "loop",
    )
    for member in members:
        yield member.index, member.model, data[member.index]


def alike(settings: Settings) -> tuple[Any, ...]:
    """Cells that differ by their seeds alone are trained together."""
    return tuple(value for name, value in settings.items() if name != "seed")


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Return the share of points on whose side the output is."""
    return float(((model(x) > 0) == (y > 0)).double().mean())


def grid(side: int, reach: float) -> Float64[Tensor, "n 2"]:
    """Return the points of a grid on a square, the first coordinate running slowest."""
    ticks = torch.linspace(-reach, reach, side, dtype=torch.float64)
    return torch.cartesian_prod(ticks, ticks)


def directions(count: int, seed: int) -> Float64[Tensor, "k 2"]:
    """Draw random unit vectors."""
    turns = torch.rand(count, generator=generator(20_000 + seed), dtype=torch.float64)
    angles = 2 * math.pi * turns
    return torch.stack((angles.cos(), angles.sin()), dim=1)


@torch.no_grad()
def crossings(
    model: nn.Module, angles: int = 64, reach: float = 1.5, places: int = 301
) -> Float64[Tensor, " k"]:
    """Return the radii at which the output first turns positive on rays from the origin.

    Rays on which it is positive at the origin, or never, give none.
    """
    turns = torch.arange(angles, dtype=torch.float64) * (2 * math.pi / angles)
    rays = torch.stack((turns.cos(), turns.sin()), dim=1)
    radii = torch.linspace(0, reach, places, dtype=torch.float64)
    values = model((radii[None, :, None] * rays[:, None]).flatten(0, 1)).view(angles, places)
    rises = (values[:, :-1] <= 0) & (values[:, 1:] > 0)
    some = rises.any(1) & (values[:, 0] <= 0)
    first = rises.double().argmax(1)
    low, high = (values.gather(1, (first + k)[:, None])[:, 0] for k in (0, 1))
    found: Tensor = radii[first] + reach / (places - 1) * low / (low - high)
    return found[some]


def numbers(values: Tensor, digits: int = 6) -> list[Any]:
    """Return numbers as a record keeps them: rounded, in lists."""
    found: list[Any] = torch.round(values.double(), decimals=digits).tolist()
    return found
