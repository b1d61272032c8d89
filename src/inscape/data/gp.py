"""Functions drawn from a Gaussian process on [-1, 1], and the order in which points are added."""

from bisect import insort
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape.data.catalogue import Value
from inscape.data.dataset import Dataset
from inscape.data.draws import regression, streams


def gaussian_process(
    *,
    n: int = 10,
    n_test: int = 100,
    length_scale: float = 0.5,
    variance: float = 1.0,
    order: Literal["gap", "distance"] = "gap",
    draw: Literal["inscape", "thesis"] = "inscape",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw a smooth function on [-1, 1] with f(0) = 0 and label a few well-spread points by it.

    .. math:: f \sim N(0, K - k_0 k_0^T / v),\quad
              K_{ij} = v \exp\bigl(-(x_i - x_j)^2 / 2 \ell^2\bigr),\ (k_0)_i = K(x_i, 0)

    Volhejn, section 4.3.1. The test points are equispaced; the training points are ``n`` of them
    with the same labels, in the order of :func:`spread_order`, so that ``subset(k)`` is the
    thesis' training set of size k. We draw f = S z with z standard normal and S the symmetric
    root of the covariance, which has no free sign and needs no jitter although the covariance is
    singular to rounding.

    The thesis used the seeds 1 to 20. ``draw="thesis"`` repeats its draws (NumPy's old generator
    and a singular value decomposition, whose signs another LAPACK may choose differently).

    Args:
        n: Training points, from 2 to ``n_test``.
        n_test: Test points.
        length_scale: Length scale of the kernel.
        variance: Variance of the kernel.
        order: Rule of :func:`spread_order`.
        draw: Our draw for the seed, or the ``"thesis"``'s.
        seed: Seed of the draw.
        dtype: Floating type of inputs and labels.
    """
    checks.at_least(2, n=n, n_test=n_test)
    checks.one_of(("inscape", "thesis"), draw=draw)
    if n > n_test:
        raise ValueError(
            f"n must be at most n_test, found {n} training and {n_test} test points: "
            "raise n_test, since training points are chosen among the test points."
        )
    x = torch.linspace(-1, 1, n_test, dtype=torch.float64)[:, None]
    covariance = _pinned_covariance(x, length_scale, variance)
    f = _draw(covariance, seed) if draw == "inscape" else _thesis_draw(covariance, seed)
    chosen = spread_order(n_test, rule=order)[:n]
    settings: dict[str, Value] = {"n": n, "n_test": n_test, "length_scale": length_scale}
    settings |= {"variance": variance, "order": order, "draw": draw, "seed": seed}
    return regression("gp", (x[chosen], f[chosen]), (x, f), dtype=dtype, settings=settings)


def spread_order(points: int, *, rule: Literal["gap", "distance"] = "gap") -> list[int]:
    """Order equispaced points so that the first k are well spread: both ends, then midpoints.

    ``"gap"``, as in the thesis' code, splits the longest gap between used neighbours;
    ``"distance"``, as in its text, takes the point farthest from all used ones. In ties the
    lowest point wins. For 100 points the first five agree, and again the first nine as a set.

    >>> spread_order(100)[:9]
    [0, 99, 49, 74, 24, 36, 61, 86, 12]
    >>> spread_order(100, rule="distance")[:9]
    [0, 99, 49, 74, 24, 12, 36, 61, 86]
    """
    checks.at_least(2, points=points)
    checks.one_of(("gap", "distance"), rule=rule)
    used = [0, points - 1]
    order = list(used)
    divisor = 1 if rule == "gap" else 2
    while len(order) < points:
        low, high = max(pairwise(used), key=lambda gap: (gap[1] - gap[0]) // divisor)
        middle = (low + high) // 2
        insort(used, middle)
        order.append(middle)
    return order


def _pinned_covariance(
    x: Float[Tensor, "n 1"], length_scale: float, variance: float
) -> Float[Tensor, "n n"]:
    """Return the covariance of the process at ``x`` once f(0) = 0 is known without noise."""
    for name, value in {"length_scale": length_scale, "variance": variance}.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, found {value}: raise {name}.")
    kernel = variance * torch.exp(-((x - x.T) ** 2) / (2 * length_scale**2))
    to_zero = variance * torch.exp(-(x**2) / (2 * length_scale**2))
    return kernel - to_zero @ to_zero.T / variance


def _draw(covariance: Float[Tensor, "n n"], seed: int) -> Float[Tensor, "n 1"]:
    values, vectors = torch.linalg.eigh(covariance)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    z = torch.randn(len(root), 1, generator=streams(seed)[0], dtype=torch.float64)
    return torch.mm(root, z)


def _thesis_draw(covariance: Float[Tensor, "n n"], seed: int) -> Float[Tensor, "n 1"]:
    checks.at_least(0, seed=seed)
    old = np.random.RandomState(seed)
    f = old.multivariate_normal(np.zeros(len(covariance)), covariance.numpy(), check_valid="ignore")
    return torch.from_numpy(f)[:, None]
