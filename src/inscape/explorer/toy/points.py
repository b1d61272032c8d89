"""The points of a toy training: made ones, a spiral, or one's own; and what lies beyond them."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.data import (
    Dataset,
    annulus,
    ball_versus_sphere,
    circle_versus_annulus,
    disc,
    half_plane,
    xor_circles,
)
from inscape.explorer.toy.setup import ToySetup

#: Points on which errors are measured, near the data and beyond.
TEST, BEYOND = 400, 256
#: Turns of an arm of the spiral, and the noise of its points.
TURNS, NOISE = 1.5, 0.02
#: Classes of one's own points, at most.
CLASSES = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class ToyPoints:
    """Training and test points of the plane with labels: classes, or numbers of shape (n, 1).

    ``beyond`` are points outside of the data with the labels that the rule behind the data gives
    them; None where no rule is known.
    """

    x: Float64[Tensor, "n 2"]
    y: Tensor
    x_test: Float64[Tensor, "m 2"]
    y_test: Tensor
    beyond: tuple[Float64[Tensor, "k 2"], Tensor] | None
    names: tuple[str, ...]

    @property
    def classes(self) -> int:
        """Return how many classes there are; 0 where labels are numbers."""
        return len(self.names)


def toy_points(setup: ToySetup) -> ToyPoints:
    """Return the points of a setup, drawn from its seed."""
    if setup.data == "own":
        return _own(setup)
    if setup.data == "spiral":
        return _spiral(setup)
    data = _data_set(setup)
    x, x_test = data.x, data.x_test
    assert x_test is not None
    assert data.y_test is not None
    return ToyPoints(
        x=x, y=data.y, x_test=x_test, y_test=data.y_test, beyond=_beyond(setup, data),
        names=data.class_names,
    )  # fmt: skip


def _data_set(setup: ToySetup) -> Dataset:
    common = {"n": setup.n, "n_test": TEST, "seed": setup.seed, "dtype": torch.float64}
    match setup.data:
        case "disc":
            return disc(target=setup.target, **common)  # type: ignore[arg-type]
        case "annulus":
            return annulus(target=setup.target, **common)  # type: ignore[arg-type]
        case "circle":
            return circle_versus_annulus(normalise=setup.normalise, **common)  # type: ignore[arg-type]
        case "xor-circles":
            return xor_circles(normalise=setup.normalise, **common)  # type: ignore[arg-type]
        case "half-plane":
            return half_plane(labels="classes", **common)  # type: ignore[arg-type]
    return ball_versus_sphere(labels="classes", **common)  # type: ignore[arg-type]


def _beyond(setup: ToySetup, data: Dataset) -> tuple[Tensor, Tensor]:
    """Return points at one and a half to twice the extent of the data, labelled by its rule."""
    draw = torch.Generator().manual_seed(setup.seed + 1)
    u, turn = torch.rand(2, BEYOND, generator=draw, dtype=torch.float64)
    radius = float(data.x.norm(dim=1).max()) * (1.5 + 0.5 * u)
    angle = 2 * math.pi * turn
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    match setup.data:
        case "disc" | "annulus":
            rule = torch.sum if setup.target == "addition" else torch.prod
            return x, rule(x, dim=1, keepdim=True)
        case "circle":
            return x, torch.zeros(len(x), dtype=torch.long)
        case "xor-circles":
            return x, (x.prod(1) < 0).long()
        case "half-plane":
            return x, (x.sum(1) >= 0).long()
    return x, torch.ones(len(x), dtype=torch.long)


def _spiral(setup: ToySetup) -> ToyPoints:
    """Return two arms of a spiral, one for each class."""

    def arms(count: int, seed: int) -> tuple[Tensor, Tensor]:
        draw = torch.Generator().manual_seed(seed)
        y = torch.arange(count) % 2
        t = torch.rand(count, generator=draw, dtype=torch.float64).sqrt()
        angle = 2 * math.pi * TURNS * t + math.pi * y
        x = t[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
        return x + NOISE * torch.randn(count, 2, generator=draw, dtype=torch.float64), y

    (x, y), (x_test, y_test) = arms(setup.n, setup.seed), arms(TEST, setup.seed + 1)
    return ToyPoints(
        x=x, y=y, x_test=x_test, y_test=y_test, beyond=None, names=("one arm", "the other")
    )


def _own(setup: ToySetup) -> ToyPoints:
    """Return one's own points; they are their own test."""
    if len(setup.rows) < 2:
        raise ValueError(
            f"points of your own must be at least 2, found {len(setup.rows)}: click into the "
            "picture, or open a CSV file."
        )
    names: tuple[str, ...]
    table = torch.tensor(setup.rows, dtype=torch.float64)
    x, labels = table[:, :2].contiguous(), table[:, 2]
    if setup.labels == "numbers":
        y, names = labels[:, None], ()
    else:
        y = labels.long()
        if bool((y != labels).any()) or int(y.min()) < 0 or int(y.max()) >= CLASSES:
            raise ValueError(
                f"classes must be integers from 0 to {CLASSES - 1}, found others: change "
                "them, or choose numbers as labels."
            )
        names = tuple(str(k) for k in range(max(2, int(y.max()) + 1)))
    return ToyPoints(x=x, y=y, x_test=x, y_test=y, beyond=None, names=names)
