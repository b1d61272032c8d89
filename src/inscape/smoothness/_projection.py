r"""Norms of Jacobians with many outputs, from products with a few random vectors.

A normal vector v has :math:`\mathbb{E} \lVert J^T v \rVert^2 = \lVert J \rVert_F^2`. The root of a
mean of squares is biased downwards; the jackknife over the vectors removes all but a known
remainder of the bias.
"""

import math
from collections.abc import Generator
from functools import cache

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import Summary, checks, generator
from inscape._core.result import mean_summary
from inscape.functional.first_layer import JacobianFactors
from inscape.functional.jacobians import norm

#: Outputs up to which Jacobians are complete, and random vectors for each point beyond.
WHOLE, PROJECTIONS = 32, 8
#: Random vectors of a first, coarse result where batches are small.
COARSE = 2


def projections_for(outputs: int, projections: int | None) -> int:
    """Return the number of random vectors; 0 where the Jacobian is complete."""
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
    """Return the number of random vectors of a coarse result; 0 for so few outputs."""
    return COARSE if outputs > COARSE else 0


def passes_for(outputs: int) -> int:
    """Return the number of backward passes for each point at the default projections."""
    return projections_for(outputs, None) or outputs


class Directions:
    """Random vectors for each sample, independent of the batch size."""

    def __init__(self, outputs: int, count: int, *, seed: int) -> None:
        self._shape, self._generator = (count, outputs), generator(seed)

    def draw(self, samples: int) -> Float64[Tensor, "m k c"] | None:
        """Return the vectors of the next samples, or None where Jacobians are complete."""
        if self._shape[0] == 0:
            return None
        drawn = [
            torch.randn(self._shape, generator=self._generator, dtype=torch.float64)
            for _ in range(samples)
        ]
        return torch.stack(drawn)


def jacobian_norms(
    gradients: JacobianFactors, x: Float[Tensor, "m *d"], vectors: Float64[Tensor, "m k c"] | None
) -> Generator[None, None, Float[Tensor, " m"]]:
    """Return the norm of the Jacobian of each sample, yielding between backward passes."""
    factors, first_layer = yield from gradients.steps(x, vectors)
    k = 1 if vectors is None else vectors.shape[1]
    factors = factors.reshape(len(x) * k, -1, factors.shape[-1])
    norms = norm(factors, dim=(1, 2)) if first_layer is None else first_layer.norm(factors)
    return norms if vectors is None else unbiased(norms.reshape(-1, k)).to(norms)


def unbiased(norms: Float[Tensor, "*m k"]) -> Float64[Tensor, "*m"]:
    """Return the root of the mean square over ``k`` random vectors, jackknifed."""
    k = norms.shape[-1]
    largest = norms.double().amax(-1, keepdim=True)
    squares = (norms / torch.where(largest > 0, largest, 1.0)).double().square()
    total = squares.sum(-1, keepdim=True)
    leave_one_out = ((total - squares).clamp(min=0) / (k - 1)).sqrt().mean(-1)
    return largest[..., 0] * (k * (total[..., 0] / k).sqrt() - (k - 1) * leave_one_out)


@cache
def bias(projections: int) -> float:
    """Return the largest relative bias (downwards) of a norm estimated from so many vectors.

    Attained by a Jacobian of rank one, whose squared projections have the chi-squared distribution
    with one degree of freedom; those of all others vary less.

    >>> round(bias(8), 5)
    0.00073
    """
    if projections == 0:
        return 0.0
    k = projections
    return 1 - k * _mean_root(k) + (k - 1) * _mean_root(k - 1)


def _mean_root(k: int) -> float:
    """Return the expected root mean square of ``k`` standard normal variables."""
    return math.sqrt(2 / k) * math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2))


def projected_summary(samples: Tensor, basis: str, projections: int) -> Summary:
    """Return the mean of norms, with an interval widened by the remaining bias."""
    if projections == 0:
        return mean_summary(samples, kind="estimate", basis=basis)
    basis += f" x {projections} random projections"
    summary = mean_summary(samples, kind="estimate", basis=basis)
    if summary.low is None or summary.high is None:
        return summary
    high = summary.high / (1 - bias(projections))
    return Summary(value=summary.value, kind="estimate", basis=basis, low=summary.low, high=high)
