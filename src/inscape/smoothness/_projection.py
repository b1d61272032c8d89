r"""Norms of Jacobians with many outputs, from products with a few random vectors.

A normal vector v has :math:`\mathbb{E} \lVert J^T v \rVert^2 = \lVert J \rVert_F^2`. The root of a
mean of squares is too small on average; the jackknife over the vectors takes all but a known rest
of that away.
"""

import math
from collections.abc import Generator
from functools import cache

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import Summary, checks, generator
from inscape._core.result import mean_summary
from inscape.functional.first_layer import Slopes
from inscape.functional.jacobians import norm

#: Outputs up to which Jacobians are taken whole, and random vectors for each point beyond.
WHOLE, PROJECTIONS = 32, 8
#: Random vectors of a first, coarse answer where batches are short.
COARSE = 2


def projections_for(outputs: int, projections: int | None) -> int:
    """Return how many random vectors stand for all outputs; 0 where the Jacobian is whole."""
    if projections is None:
        return PROJECTIONS if outputs > WHOLE else 0
    checks.whole(0, projections=projections)
    if projections == 1:
        raise ValueError(
            "projections must be 0 for the whole Jacobian or at least 2 random vectors, found 1: "
            "its norm needs two to be free of bias."
        )
    return projections if projections < outputs else 0


def coarse_projections(outputs: int) -> int:
    """Return how many random vectors make a first answer; 0 where there are no more outputs."""
    return COARSE if outputs > COARSE else 0


def passes_for(outputs: int) -> int:
    """Return the backward passes for each point unless other projections are asked for."""
    return projections_for(outputs, None) or outputs


class Directions:
    """Random vectors for one sample after the other; the same ones however these are batched."""

    def __init__(self, outputs: int, count: int, *, seed: int) -> None:
        self._shape, self._generator = (count, outputs), generator(seed)

    def draw(self, samples: int) -> Float64[Tensor, "m k c"] | None:
        """Return the vectors of the next samples, or None where Jacobians are taken whole."""
        if self._shape[0] == 0:
            return None
        drawn = [
            torch.randn(self._shape, generator=self._generator, dtype=torch.float64)
            for _ in range(samples)
        ]
        return torch.stack(drawn)


def jacobian_norms(
    slopes: Slopes, x: Float[Tensor, "m *d"], vectors: Float64[Tensor, "m k c"] | None
) -> Generator[None, None, Float[Tensor, " m"]]:
    """Return the norm of the Jacobian of each row, with a step between backward passes."""
    rows, first_layer = yield from slopes.steps(x, vectors)
    k = 1 if vectors is None else vectors.shape[1]
    rows = rows.reshape(len(x) * k, -1, rows.shape[-1])
    norms = norm(rows, dim=(1, 2)) if first_layer is None else first_layer.norm(rows)
    return norms if vectors is None else unbiased(norms.reshape(-1, k)).to(norms)


def unbiased(norms: Float[Tensor, "*m k"]) -> Float64[Tensor, "*m"]:
    """Return the root of the mean square over ``k`` random vectors, jackknifed."""
    k = norms.shape[-1]
    size = norms.double().amax(-1, keepdim=True)
    squares = (norms / torch.where(size > 0, size, 1.0)).double().square()
    total = squares.sum(-1, keepdim=True)
    fewer = ((total - squares).clamp(min=0) / (k - 1)).sqrt().mean(-1)
    return size[..., 0] * (k * (total[..., 0] / k).sqrt() - (k - 1) * fewer)


@cache
def bias(projections: int) -> float:
    """Return by which fraction a norm from so many vectors is too small on average, at most.

    That of a Jacobian of rank one: its squares have the chi-squared distribution with one degree of
    freedom, and those of all others vary less.

    >>> round(bias(8), 5)
    0.00073
    """
    if projections == 0:
        return 0.0
    k = projections
    return 1 - k * _mean_root(k) + (k - 1) * _mean_root(k - 1)


def _mean_root(k: int) -> float:
    """Return the mean root of the mean of ``k`` squares of normal numbers."""
    return math.sqrt(2 / k) * math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2))


def projected_summary(samples: Tensor, basis: str, projections: int) -> Summary:
    """Summarise norms by their mean; the interval has room for the bias that is left."""
    if projections == 0:
        return mean_summary(samples, kind="estimate", basis=basis)
    basis += f" x {projections} random projections"
    plain = mean_summary(samples, kind="estimate", basis=basis)
    if plain.low is None or plain.high is None:
        return plain
    high = plain.high / (1 - bias(projections))
    return Summary(value=plain.value, kind="estimate", basis=basis, low=plain.low, high=high)
