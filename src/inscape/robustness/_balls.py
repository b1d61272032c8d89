"""Balls of two norms: how long a step is, which way is steepest, and how to stay inside."""

import math
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from inscape._core import generator

Norm = Literal["l2", "linf"]
NORMS = ("l2", "linf")

#: Norms below this are taken again after scaling: squares of single precision vanish there.
FAINT = 1e-15


def size(step: Float[Tensor, "n *d"], norm: str) -> Float[Tensor, " n"]:
    """Return the norm of each row."""
    order = 2 if norm == "l2" else torch.inf
    found: Tensor = torch.linalg.vector_norm(step.flatten(1), ord=order, dim=1)
    return found


def spread(factors: Shaped[Tensor, " n"], like: Float[Tensor, "n *d"]) -> Tensor:
    """Return one number for each row in a shape that multiplies rows of ``like``."""
    return factors.reshape(-1, *[1] * (like.ndim - 1))


def steepest(gradient: Float[Tensor, "n *d"], norm: str) -> Float[Tensor, "n *d"]:
    """Return the step of norm one along which a linear function rises fastest; 0 at 0.

    What is not a number counts as 0, and what is infinite as very large.
    """
    if norm == "linf":
        return finite(gradient).sign()
    length = size(gradient, "l2")
    least, most = (float(end) for end in length.aminmax())
    if not FAINT <= least <= most < math.inf:
        gradient = finite(gradient)
        gradient = gradient / spread(size(gradient, "linf").clamp_min(_tiny(gradient)), gradient)
        length = size(gradient, "l2").clamp_min(_tiny(gradient))
    return gradient / spread(length, gradient)


def finite(gradient: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
    """Return a gradient without what is not a number; its sum tells quickly that all are."""
    return gradient if math.isfinite(float(gradient.sum())) else gradient.nan_to_num()


def _tiny(like: Tensor) -> float:
    return torch.finfo(like.dtype).tiny


def projected(step: Float[Tensor, "n *d"], budget: float, norm: str) -> Float[Tensor, "n *d"]:
    """Return the nearest steps of norm at most ``budget``."""
    return projected_in_place(step.clone(), budget, norm)


def projected_in_place(
    step: Float[Tensor, "n *d"], budget: float, norm: str
) -> Float[Tensor, "n *d"]:
    """Shorten steps to the nearest ones of norm at most ``budget``, and return them."""
    if norm == "linf":
        return step.clamp_(-budget, budget)
    return step.mul_(spread(budget / size(step, "l2").clamp_min(budget), step))


def slack(x: Float[Tensor, "n *d"], budget: float, norm: str) -> float:
    """Return by how much rounding may lengthen a step of norm ``budget`` from ``x``."""
    largest = max(float(x.abs().amax()), budget)
    count = x[0].numel() ** 0.5 if norm == "l2" else 1.0
    return 4 * torch.finfo(x.dtype).eps * largest * count


class Draws:
    """Random numbers for some of ``total`` points: a point's own do not depend on the others."""

    def __init__(self, rows: Tensor, total: int, *seeds: int) -> None:
        self.rows, self.total, self.seeds = rows, total, seeds
        mixed = 0
        for seed in seeds:
            mixed = (mixed * 1_000_003 + seed + 1) % (2**63 - 25)
        self._draw = generator(mixed)

    def child(self, *seeds: int) -> "Draws":
        """Return other numbers for the same points."""
        return Draws(self.rows, self.total, *self.seeds, *seeds)

    def of(self, chosen: Tensor) -> "Draws":
        """Return the same numbers for some of these points; from then on both share one state."""
        other = Draws(self.rows[chosen.cpu()], self.total, *self.seeds)
        other._draw = self._draw
        return other

    def normal(self, like: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
        """Return Gaussian numbers, shaped as ``like``."""
        shape = (self.total, *like.shape[1:])
        drawn = torch.randn(shape, generator=self._draw, dtype=like.dtype)
        return self._own(drawn).to(like.device)

    def uniform(self, like: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
        """Return numbers between 0 and 1, shaped as ``like``."""
        shape = (self.total, *like.shape[1:])
        drawn = torch.rand(shape, generator=self._draw, dtype=like.dtype)
        return self._own(drawn).to(like.device)

    def _own(self, drawn: Tensor) -> Tensor:
        return drawn if len(self.rows) == self.total else drawn[self.rows]


def inside(like: Float[Tensor, "n *d"], norm: str, draws: Draws) -> Float[Tensor, "n *d"]:
    """Return steps drawn evenly from the ball of radius one."""
    if norm == "linf":
        return 2 * draws.uniform(like) - 1
    radius = draws.uniform(like.flatten(1)[:, :1])[:, 0] ** (1 / like[0].numel())
    return steepest(draws.normal(like), "l2") * spread(radius, like)


def on_edge(like: Float[Tensor, "n *d"], norm: str, draws: Draws) -> Float[Tensor, "n *d"]:
    """Return random steps of norm one: evenly on the sphere, or stretched until they meet the cube.

    The second are as they come, uniform in the cube and then scaled by their largest coordinate.
    """
    if norm == "l2":
        return steepest(draws.normal(like), "l2")
    step = 2 * draws.uniform(like) - 1
    return step / spread(size(step, "linf").clamp_min(_tiny(step)), step)
