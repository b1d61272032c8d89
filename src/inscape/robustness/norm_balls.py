"""Balls of two norms: lengths, steepest steps, projections and random draws."""

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
    norms: Tensor = torch.linalg.vector_norm(step.flatten(1), ord=order, dim=1)
    return norms


def broadcastable(factors: Shaped[Tensor, " n"], like: Float[Tensor, "n *d"]) -> Tensor:
    """Return one factor for each sample in a shape that broadcasts over ``like``."""
    return factors.reshape(-1, *[1] * (like.ndim - 1))


def steepest(gradient: Float[Tensor, "n *d"], norm: str) -> Float[Tensor, "n *d"]:
    """Return the step of norm one along which a linear function rises fastest; 0 at 0.

    NaN counts as 0, and infinities as very large.
    """
    if norm == "linf":
        return finite(gradient).sign()
    length = size(gradient, "l2")
    least, most = (float(end) for end in length.aminmax())
    if not FAINT <= least <= most < math.inf:
        gradient = finite(gradient)
        gradient = gradient / broadcastable(
            size(gradient, "linf").clamp_min(_tiny(gradient)), gradient
        )
        length = size(gradient, "l2").clamp_min(_tiny(gradient))
    return gradient / broadcastable(length, gradient)


def finite(gradient: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
    """Return a gradient with finite entries; the sum is a quick test."""
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
    return step.mul_(broadcastable(budget / size(step, "l2").clamp_min(budget), step))


def slack(x: Float[Tensor, "n *d"], budget: float, norm: str) -> Float[Tensor, " n"]:
    """Return by how much rounding may lengthen a step of norm ``budget`` from each point."""
    largest = size(x, "linf").clamp_min(budget)
    count = x[0].numel() ** 0.5 if norm == "l2" else 1.0
    return 4 * torch.finfo(x.dtype).eps * largest * count


def block_size(x: Float[Tensor, "n *d"]) -> int:
    """Return for how many points random numbers are drawn at once: fewer of large ones."""
    return max(1, min(BLOCK, NUMBERS // max(1, x[0].numel())))


class Draws:
    """Random numbers for points, independent of the other points of a batch.

    Points are numbered, and numbers for ``block`` consecutive ones come from one generator.
    """

    def __init__(self, rows: Tensor, block: int, *seeds: int) -> None:
        self.rows, self.block, self.seeds = rows, block, seeds
        self._generators: dict[int, torch.Generator] = {}

    @cached_property
    def _blocks(self) -> tuple[list[int], Tensor | None]:
        """Return the blocks of the points and their positions there; None if contiguous."""
        blocks, place = torch.unique(self.rows // self.block, return_inverse=True)
        places = self.block * place + self.rows % self.block
        is_contiguous = torch.equal(places, torch.arange(self.block * len(blocks)))
        return blocks.tolist(), None if is_contiguous else places

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
        stacked = drawn[0] if len(drawn) == 1 else torch.cat(drawn)
        return (stacked if places is None else stacked[places]).to(like.device)


def uniform_in_ball(like: Float[Tensor, "n *d"], norm: str, draws: Draws) -> Float[Tensor, "n *d"]:
    """Return steps drawn uniformly from the ball of radius one."""
    if norm == "linf":
        return 2 * draws.uniform(like) - 1
    radius = draws.uniform(like.flatten(1)[:, :1])[:, 0] ** (1 / like[0].numel())
    return steepest(draws.normal(like), "l2") * broadcastable(radius, like)


def uniform_on_sphere(
    like: Float[Tensor, "n *d"], norm: str, draws: Draws
) -> Float[Tensor, "n *d"]:
    """Return random steps of norm one: uniform on the sphere, or projected onto the cube.

    The second are uniform in the cube, then divided by their largest coordinate.
    """
    if norm == "l2":
        return steepest(draws.normal(like), "l2")
    step = 2 * draws.uniform(like) - 1
    return step / broadcastable(size(step, "linf").clamp_min(_tiny(step)), step)
