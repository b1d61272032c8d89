"""The likelihood of data under a Gaussian process, its gradient, and where it is largest.

Settings are taken by their logarithms. While only amplitude and noise are sought, the kernel is
taken apart once and each evaluation costs a sum over its eigenvalues; a length scale asks for a
Cholesky factor and an inverse at each.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.progress import progress
from inscape._core.sampling import generator

Values = Mapping[str, float]
#: Value and its derivatives by the logarithms of all three settings, by name.
Evidence = Callable[[Values], tuple[float, Values]]

NOWHERE = -math.inf, {"amplitude": 0.0, "length_scale": 0.0, "noise": 0.0}


def log_likelihood(
    factor: Float64[Tensor, "n n"], weights: Float64[Tensor, "n c"], y: Float64[Tensor, "n c"]
) -> float:
    """Return the logarithm of the density of ``y``, from the Cholesky factor and K's inverse y."""
    n, c = y.shape
    fit = float((y * weights).sum())
    return -fit / 2 - c * float(factor.diagonal().log().sum()) - n * c * math.log(2 * math.pi) / 2


def solution(factor: Float64[Tensor, "n n"], y: Float64[Tensor, "n c"]) -> Float64[Tensor, "n c"]:
    """Return K's inverse times ``y`` from the Cholesky factor, which is not copied for it."""
    half = torch.linalg.solve_triangular(factor, y, upper=False)
    whole: Tensor = torch.linalg.solve_triangular(factor.T, half, upper=True)
    return whole


def of_eigenvalues(kernel: Float64[Tensor, "n n"], y: Float64[Tensor, "n c"]) -> Evidence:
    """Return the evidence as a function of amplitude and noise, for a kernel that stays."""
    found = torch.linalg.eigh(kernel)
    values = found.eigenvalues.clamp(min=0).numpy()
    squares = (found.eigenvectors.T @ y).square().sum(1).numpy()
    n, c = y.shape

    def evidence(at: Values) -> tuple[float, Values]:
        grown = at["amplitude"] * values
        total = grown + at["noise"]
        if not total.min() > 0:
            return NOWHERE
        value = -(squares / total).sum() / 2 - c * np.log(total).sum() / 2
        slope = (squares / total - c) / total / 2
        value -= n * c * math.log(2 * math.pi) / 2
        by = {"amplitude": float(slope @ grown), "noise": float(slope.sum() * at["noise"])}
        return float(value), by

    return evidence


def of_distances(squares: Float64[Tensor, "n n"], y: Float64[Tensor, "n c"]) -> Evidence:
    """Return the evidence as a function of all three settings, for radial basis functions."""
    c = y.shape[1]

    def evidence(at: Values) -> tuple[float, Values]:
        inverse_square = at["length_scale"] ** -2
        grown = (squares * (-0.5 * inverse_square)).exp_().mul_(at["amplitude"])
        kernel = grown.clone()
        kernel.diagonal().add_(at["noise"])
        factor, failed = torch.linalg.cholesky_ex(kernel)
        if int(failed):
            return NOWHERE
        inverse = torch.cholesky_inverse(factor)
        weights = solution(factor, y)
        value = log_likelihood(factor, weights, y)

        def derivative(change: Tensor) -> float:
            """Return the derivative by a setting from that of the kernel, which is symmetric."""
            fit = (weights * (change @ weights)).sum()
            return float(fit - c * torch.dot(change.reshape(-1), inverse.T.reshape(-1))) / 2

        by = {
            "amplitude": derivative(grown),
            "length_scale": derivative(grown.mul_(squares)) * inverse_square,
            "noise": float(weights.square().sum() - c * inverse.trace()) / 2 * at["noise"],
        }
        return value, by

    return evidence


def largest(
    evidence: Evidence,
    start: Values,
    names: Sequence[str],
    *,
    bounds: tuple[float, float],
    restarts: int,
    seed: int,
) -> dict[str, float]:
    """Return the settings at which the evidence is largest, of those that some starts lead to."""
    from scipy.optimize import minimize

    low, high = map(math.log, bounds)

    def settings(logs: npt.NDArray[np.float64]) -> dict[str, float]:
        return {**start, **dict(zip(names, np.exp(logs).tolist(), strict=True))}

    def downhill(logs: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        value, by = evidence(settings(logs))
        return -value, -np.array([by[name] for name in names])

    first = torch.tensor(
        [math.log(max(start[name], bounds[0])) for name in names], dtype=torch.float64
    )
    draws = torch.rand(restarts, len(names), generator=generator(seed), dtype=torch.float64)
    best, at = -math.inf, first.numpy()
    with progress(1 + restarts, label="fitting the process") as bar:
        for begin in torch.cat([first.clamp(low, high)[None], low + (high - low) * draws]).numpy():
            found = minimize(
                downhill, begin, jac=True, method="L-BFGS-B",
                bounds=[(low, high)] * len(names), options={"ftol": 1e-11, "gtol": 1e-6},
            )  # fmt: skip
            if -found.fun > best:
                best, at = -found.fun, found.x
            bar.advance()
    return settings(at)
