"""Balls of two norms: how long a step is, which way is steepest, and how to stay inside."""

import math
from collections.abc import Callable
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from inscape._core import generator

Norm = Literal["l2", "linf"]
NORMS = ("l2", "linf")

#: Norms below this are taken again after scaling: squares of single precision vanish there.
FAINT = 1e-15
#: Points, and numbers, that are drawn at once at most.
BLOCK, NUMBERS = 64, 2**18


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


def slack(x: Float[Tensor, "n *d"], budget: float, norm: str) -> Float[Tensor, " n"]:
    """Return by how much rounding may lengthen a step of norm ``budget`` from each point."""
    largest = size(x, "linf").clamp_min(budget)
    count = x[0].numel() ** 0.5 if norm == "l2" else 1.0
    return 4 * torch.finfo(x.dtype).eps * largest * count


def block_size(x: Float[Tensor, "n *d"]) -> int:
    """Return for how many points random numbers are drawn at once: fewer of large ones."""
    return max(1, min(BLOCK, NUMBERS // max(1, x[0].numel())))


class Draws:
    """Random numbers for some points: a point's own do not depend on the others.

    Points are numbered, and numbers for ``block`` consecutive ones come from one generator.
    """

    def __init__(self, rows: Tensor, block: int, *seeds: int) -> None:
        self.rows, self.block, self.seeds = rows, block, seeds
        self._generators: dict[int, torch.Generator] = {}

    @cached_property
    def _blocks(self) -> tuple[list[int], Tensor | None]:
        """Return which blocks have points, and where in these; None if just one after the other."""
        blocks, place = torch.unique(self.rows // self.block, return_inverse=True)
        places = self.block * place + self.rows % self.block
        whole = torch.equal(places, torch.arange(self.block * len(blocks)))
        return blocks.tolist(), None if whole else places

    def _generator(self, block: int) -> torch.Generator:
        if block not in self._generators:
            mixed = 0
            for seed in self.seeds:
                mixed = (mixed * 1_000_003 + seed + 1) % (2**63 - 25)
            self._generators[block] = generator((mixed + block * 2_000_029) % (2**63 - 25))
        return self._generators[block]

    def child(self, *seeds: int) -> "Draws":
        """Return other numbers for the same points."""
        return Draws(self.rows, self.block, *self.seeds, *seeds)

    def of(self, chosen: Tensor) -> "Draws":
        """Return the same numbers for some of these points; from then on both share one state."""
        other = Draws(self.rows[chosen.cpu()], self.block, *self.seeds)
        other._generators = self._generators
        return other

    def normal(self, like: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
        """Return Gaussian numbers, shaped as ``like``."""
        return self._drawn(torch.randn, like)

    def uniform(self, like: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
        """Return numbers between 0 and 1, shaped as ``like``."""
        return self._drawn(torch.rand, like)

    def _drawn(self, draw: Callable[..., Tensor], like: Float[Tensor, "n *d"]) -> Tensor:
        blocks, places = self._blocks
        shape = (self.block, *like.shape[1:])
        drawn = [draw(shape, generator=self._generator(k), dtype=like.dtype) for k in blocks]
        every = drawn[0] if len(drawn) == 1 else torch.cat(drawn)
        return (every if places is None else every[places]).to(like.device)


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
