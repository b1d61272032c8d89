"""Marginal likelihood of a Gaussian process, its gradient, and its maximum.

Derivatives are by the logarithms of the hyper-parameters. For amplitude and noise alone, one
eigendecomposition serves all evaluations; a length scale needs a Cholesky factor and an inverse for
each.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import generator
from inscape.runtime.progress import progress

Values = Mapping[str, float]
#: Log likelihood and its derivatives by the logarithms of the hyper-parameters, by name.
Evidence = Callable[[Values], tuple[float, Values]]

IMPOSSIBLE = -math.inf, {"amplitude": 0.0, "length_scale": 0.0, "noise": 0.0}


def log_likelihood(
    factor: Float64[Tensor, "n n"], weights: Float64[Tensor, "n c"], y: Float64[Tensor, "n c"]
) -> float:
    """Return the log likelihood of ``y``, from the Cholesky factor of K and the weights K^-1 y."""
    n, c = y.shape
    fit = float((y * weights).sum())
    return -fit / 2 - c * float(factor.diagonal().log().sum()) - n * c * math.log(2 * math.pi) / 2


def cholesky_solution(
    factor: Float64[Tensor, "n n"], y: Float64[Tensor, "n c"]
) -> Float64[Tensor, "n c"]:
    """Return K^-1 y from the Cholesky factor of K, without a copy of it."""
    half = torch.linalg.solve_triangular(factor, y, upper=False)
    weights: Tensor = torch.linalg.solve_triangular(factor.T, half, upper=True)
    return weights


def evidence_by_eigenvalues(kernel: Float64[Tensor, "n n"], y: Float64[Tensor, "n c"]) -> Evidence:
    """Return the evidence as a function of amplitude and noise, for a fixed kernel."""
    spectrum = torch.linalg.eigh(kernel)
    values = spectrum.eigenvalues.clamp(min=0).numpy()
    squares = (spectrum.eigenvectors.T @ y).square().sum(1).numpy()
    n, c = y.shape

    def evidence(at: Values) -> tuple[float, Values]:
        scaled = at["amplitude"] * values
        total = scaled + at["noise"]
        if not total.min() > 0:
            return IMPOSSIBLE
        value = -(squares / total).sum() / 2 - c * np.log(total).sum() / 2
        derivative = (squares / total - c) / total / 2
        value -= n * c * math.log(2 * math.pi) / 2
        derivatives = {
            "amplitude": float(derivative @ scaled),
            "noise": float(derivative.sum() * at["noise"]),
        }
        return float(value), derivatives

    return evidence


def evidence_by_distances(squares: Float64[Tensor, "n n"], y: Float64[Tensor, "n c"]) -> Evidence:
    """Return the evidence as a function of all hyper-parameters of an RBF process."""
    c = y.shape[1]

    def evidence(at: Values) -> tuple[float, Values]:
        inverse_square = at["length_scale"] ** -2
        scaled = (squares * (-0.5 * inverse_square)).exp_().mul_(at["amplitude"])
        kernel = scaled.clone()
        kernel.diagonal().add_(at["noise"])
        factor, failed = torch.linalg.cholesky_ex(kernel)
        if int(failed):
            return IMPOSSIBLE
        inverse = torch.cholesky_inverse(factor)
        weights = cholesky_solution(factor, y)
        value = log_likelihood(factor, weights, y)

        def derivative(change: Tensor) -> float:
            """Return the derivative of the evidence from that of the symmetric kernel."""
            fit = (weights * (change @ weights)).sum()
            return float(fit - c * torch.dot(change.reshape(-1), inverse.T.reshape(-1))) / 2

        derivatives = {
            "amplitude": derivative(scaled),
            "length_scale": derivative(scaled.mul_(squares)) * inverse_square,
            "noise": float(weights.square().sum() - c * inverse.trace()) / 2 * at["noise"],
        }
        return value, derivatives

    return evidence


def maximise_evidence(
    evidence: Evidence,
    start: Values,
    names: Sequence[str],
    *,
    bounds: tuple[float, float],
    restarts: int,
    seed: int,
) -> dict[str, float]:
    """Return the hyper-parameters of largest evidence, by L-BFGS from several starts."""
    from scipy.optimize import minimize

    low, high = map(math.log, bounds)

    def settings(logs: npt.NDArray[np.float64]) -> dict[str, float]:
        return {**start, **dict(zip(names, np.exp(logs).tolist(), strict=True))}

    def negative_evidence(logs: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        value, derivatives = evidence(settings(logs))
        return -value, -np.array([derivatives[name] for name in names])

    start_logs = torch.tensor(
        [math.log(max(start[name], bounds[0])) for name in names], dtype=torch.float64
    )
    draws = torch.rand(restarts, len(names), generator=generator(seed), dtype=torch.float64)
    best, best_logs = -math.inf, start_logs.numpy()
    with progress(1 + restarts, label="fitting the process") as bar:
        for initial in torch.cat(
            [start_logs.clamp(low, high)[None], low + (high - low) * draws]
        ).numpy():
            optimum = minimize(
                negative_evidence, initial, jac=True, method="L-BFGS-B",
                bounds=[(low, high)] * len(names), options={"ftol": 1e-11, "gtol": 1e-6},
            )  # fmt: skip
            if -optimum.fun > best:
                best, best_logs = -optimum.fun, optimum.x
            bar.advance()
    return settings(best_logs)
