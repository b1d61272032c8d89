"""Section 6.4: the direction along which an output varies most, and what it explains."""

import math

import torch
from jaxtyping import Float64
from torch import Tensor

#: Singular values below this share of the largest count as zero: products of gradients are exact to
#: 1e-16 of the largest square.
ZERO = 1e-6
#: Knots of the line that is fitted to the outputs along a direction.
KNOTS = 12


def singular_values(
    gradients: Float64[Tensor, "n d"],
) -> tuple[Float64[Tensor, " r"], Float64[Tensor, " d"]]:
    """Return the square roots of the covariance's eigenvalues, falling, and the first direction.

    The covariance is not centred: linear functions have one direction, which is their gradient.
    """
    n, d = gradients.shape
    products = gradients.T @ gradients if d <= n else gradients @ gradients.T
    squares, vectors = torch.linalg.eigh(products / n)
    first = vectors[:, -1] if d <= n else gradients.T @ vectors[:, -1]
    return squares.flip(0).clamp(min=0).sqrt(), first / first.norm()


def rank(values: Float64[Tensor, " r"]) -> int:
    """Return how many singular values are not zero."""
    return int((values > ZERO * values[0]).sum())


def fall(values: Float64[Tensor, " r"]) -> float:
    """Return the decades from the first singular value down to the median one, at most -9."""
    return math.log10(max(float(values[len(values) // 2] / values[0]), 1e-9))


def explained(places: Float64[Tensor, " n"], outputs: Float64[Tensor, " n"]) -> float:
    """Return the share of the outputs' variance that a line along a direction explains.

    The line is piecewise linear between quantiles of the places. It is fitted to every second
    point and judged on the others; it may be below 0 there.
    """
    fitted, judged = (torch.arange(start, len(places), 2) for start in (0, 1))
    knots = torch.quantile(places[fitted], torch.linspace(0, 1, KNOTS).double())
    knots = torch.unique(knots)
    if len(knots) < 2:
        return 0.0
    line = torch.linalg.lstsq(_hats(places[fitted], knots), outputs[fitted, None]).solution
    residuals = outputs[judged] - (_hats(places[judged], knots) @ line)[:, 0]
    variance = outputs[judged].var(unbiased=False)
    return float(1 - residuals.square().mean() / variance) if variance > 0 else math.nan


def _hats(places: Float64[Tensor, " n"], knots: Float64[Tensor, " k"]) -> Float64[Tensor, "n k"]:
    """Return how far each place belongs to each knot; beyond the last ones lines go on."""
    left = (torch.searchsorted(knots, places) - 1).clamp(0, len(knots) - 2)
    share = (places - knots[left]) / (knots[left + 1] - knots[left])
    found = torch.zeros(len(places), len(knots), dtype=torch.float64)
    found.scatter_(1, left[:, None], 1 - share[:, None])
    return found.scatter_(1, left[:, None] + 1, share[:, None])
