"""Baselines for a network: three simple models of the same data."""

from collections.abc import Callable, Generator

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import draw_rows
from inscape.extrapolation._distances import (
    nearest,
    products,
    reduced_coordinates,
    squared_distances,
)

TrainingSet = tuple[Float64[Tensor, "n d"], Float64[Tensor, "n c"]]
#: Predictions of a baseline at the queries, and a warning or an empty text.
Prediction = tuple[Float64[Tensor, "m c"], str]
Predicting = Generator[None, None, Prediction]
Baseline = Callable[[TrainingSet, Float64[Tensor, "m d"], int], Predicting]

#: Most points to which the hyperparameters are fitted: each step costs their third power.
PROCESS = 150
#: The least noise, relative to amplitude and points: covariances must be positive definite.
ROUNDING = 4e-14
#: Inputs above which distances come from inner products: fast, but inaccurate for near points.
WIDE = 64
#: The least squared pivot of a Cholesky factor, as a fraction of the largest, that is accurate.
PIVOT = 1e-10
NOTHING = (
    "The Gaussian process finds no correlation between the labels of near points, and predicts "
    "their mean: it is no baseline for these data."
)


def gaussian_process(training_set: TrainingSet, queries: Tensor, seed: int) -> Predicting:
    """Predict by a Gaussian process with an RBF kernel, from all points.

    Amplitude, length scale and noise maximise the likelihood of a subset of the labels.
    """
    from inscape.kernels.gaussian_process.fitting import exceeds_noise, fitted_process

    x, y = training_set
    size, mean = _rms_distance(x), y.mean(0)
    std = float((y - mean).square().mean().sqrt()) or 1.0
    x, y = x / size, (y - mean) / std
    sample = draw_rows(torch.cat([x, y], dim=1), PROCESS, seed=seed)
    subset = reduced_coordinates(sample[:, : x.shape[1]]), sample[:, x.shape[1] :]
    fitted = fitted_process(*subset, bounds=(1e-8, 1e4), seed=seed)
    if not exceeds_noise(fitted):
        is_constant = float(y.square().max()) == 0  # equal labels have no other prediction
        return mean.expand(len(queries), -1).clone(), "" if is_constant else NOTHING
    yield
    noise = max(fitted.noise, ROUNDING * len(x) * fitted.amplitude)
    settings = fitted.length_scale or 1.0, fitted.amplitude, noise
    conditioned = _posterior_mean_of_wide_inputs if x.shape[1] > WIDE else _posterior_mean
    prediction = yield from conditioned((x, y), queries / size, *settings)
    return prediction * std + mean, ""


def _posterior_mean(
    training_set: TrainingSet, queries: Tensor, length_scale: float, amplitude: float, noise: float
) -> Generator[None, None, Float64[Tensor, "m c"]]:
    """Return the posterior mean given all points."""
    from inscape.kernels import Rbf
    from inscape.kernels import gaussian_process as conditioned

    yield
    kernel = Rbf(length_scale=length_scale)
    process = conditioned(*training_set, kernel=kernel, amplitude=amplitude, noise=noise, fitted=())
    return process.predict(queries)[0]


def _posterior_mean_of_wide_inputs(
    training_set: TrainingSet, queries: Tensor, length_scale: float, amplitude: float, noise: float
) -> Generator[None, None, Float64[Tensor, "m c"]]:
    """Return the same for wide inputs, by inner products instead of differences."""
    x, y = training_set
    centre = x.mean(0)  # inner products of centred points are more accurate
    x, queries = x - centre, queries - centre
    covariance = yield from squared_distances(x, x)
    covariance.fill_diagonal_(0.0).mul_(-0.5 / length_scale**2).exp_().mul_(amplitude)
    covariance.diagonal().add_(noise)
    yield
    weights = torch.cholesky_solve(y, torch.linalg.cholesky(covariance))
    yield
    cross_covariance = yield from squared_distances(queries, x)
    return cross_covariance.mul_(-0.5 / length_scale**2).exp_().mul_(amplitude) @ weights


def nearest_neighbour(training_set: TrainingSet, queries: Tensor, seed: int) -> Predicting:
    """Predict the label of the nearest neighbour."""
    _, indices = yield from nearest(training_set[0], queries)
    return training_set[1][indices], ""


def linear(training_set: TrainingSet, queries: Tensor, seed: int) -> Predicting:
    """Predict by least squares with an offset, the minimum-norm solution if there are many."""
    x, y = training_set
    centre, mean = x.mean(0), y.mean(0)
    x, y, queries = x - centre, y - mean, queries - centre
    weights = yield from (_dual if len(x) <= x.shape[1] else _primal)(x, y)
    if weights is None:
        weights = torch.linalg.lstsq(x, y, driver="gelsd").solution
    return queries @ weights + mean, ""


def _dual(x: Tensor, y: Tensor) -> Generator[None, None, Float64[Tensor, "d c"] | None]:
    """Return the minimum-norm weights for centred labels, or None if ill-conditioned.

    The Gram matrix of centred points is singular along the mean, which is fixed at 0.
    """
    gram = yield from products(x, x)
    gram += gram.diagonal().mean() / len(gram)
    multipliers = _solved(gram, y)
    yield
    return None if multipliers is None else x.T @ multipliers


def _primal(x: Tensor, y: Tensor) -> Generator[None, None, Float64[Tensor, "d c"] | None]:
    """Return the solution of the normal equations, with zeros for constant inputs."""
    varies = x.abs().amax(0) > 0
    columns = x[:, varies].T.contiguous()
    gram = yield from products(columns, columns)
    solution = _solved(gram, columns @ y)
    if solution is None:
        return None
    weights = x.new_zeros(x.shape[1], y.shape[1])
    weights[varies] = solution
    return weights


def _solved(gram: Tensor, right_hand_side: Tensor) -> Tensor | None:
    """Return the Cholesky solution; None where it is ill-conditioned."""
    factor, failed = torch.linalg.cholesky_ex(gram)
    if int(failed) or not len(gram):
        return None
    pivots = factor.diagonal().square()
    if not float(pivots.min()) > PIVOT * float(pivots.max()):
        return None
    return torch.cholesky_solve(right_hand_side, factor)


def _rms_distance(x: Float64[Tensor, "n d"]) -> float:
    """Return the root mean square distance of the points from their mean."""
    return float((x - x.mean(0)).square().sum(1).mean().sqrt()) or 1.0


BASELINES: dict[str, Baseline] = {
    "gaussian_process": gaussian_process,
    "nearest_neighbour": nearest_neighbour,
    "linear": linear,
}
