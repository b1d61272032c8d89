"""How much of an output a smooth function of a few projections explains, on held-out points."""

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import generator

#: Points that the function is fitted on, at most.
FITTED_ON = 300
#: Length scales in standard deviations of the first projection, and variances of the noise.
LENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
NOISES = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
#: Points that a fit needs at least, and its judgement.
FEWEST = 4


def smooth_fit(
    u: Float64[Tensor, "n k"], y: Float64[Tensor, " n"], at: Float64[Tensor, "m k"]
) -> Float64[Tensor, " m"]:
    """Return the mean of the likeliest Gaussian process of a grid, fitted on the first points.

    The kernel is Gaussian; the amplitude is that of largest likelihood.
    """
    u, y = u[:FITTED_ON], y[:FITTED_ON]
    mean, spread = y.mean(), float(u[:, 0].std()) or 1.0
    best, fitted = -torch.inf, mean.expand(len(at))
    noises = torch.tensor(NOISES, dtype=torch.float64)[:, None]
    for length in LENGTHS:
        scale = 2 * (length * spread) ** 2
        kernel = (-torch.cdist(u, u).square() / scale).exp()
        values, vectors = torch.linalg.eigh(kernel)
        turned = vectors.T @ (y - mean)
        sizes = values.clamp(min=0) + noises
        amplitude = (turned.square() / sizes).mean(1)
        if not bool((amplitude > 0).all()):
            return fitted  # the output is constant
        likelihood = -(len(y) * amplitude.log() + sizes.log().sum(1)) / 2
        k = int(likelihood.argmax())
        if float(likelihood[k]) > best:
            best = float(likelihood[k])
            across = (-torch.cdist(at, u).square() / scale).exp()
            fitted = mean + across @ (vectors @ (turned / sizes[k]))
    return fitted


def explained(
    y: Float64[Tensor, " m"], fitted: Float64[Tensor, " m"], resamples: int, seed: int
) -> tuple[float, float, float]:
    """Return the fraction of the variance that a fit explains, and the ends of its interval.

    It is 0 where the output does not vary, and below 0 where the mean would do better.
    """
    wrong, spread = (y - fitted).square(), (y - y.mean()).square()
    if not float(spread.sum()) > 0:
        return 0.0, 0.0, 0.0
    value = 1 - float(wrong.sum() / spread.sum())
    if resamples == 0:
        return value, value, value
    numbers = torch.randint(len(y), (resamples, len(y)), generator=generator(seed))
    below = spread[numbers].sum(1)
    ratios = 1 - wrong[numbers].sum(1) / torch.where(below > 0, below, torch.inf)
    levels = torch.tensor([0.025, 0.975], dtype=torch.float64)
    low, high = ratios.quantile(levels).tolist()
    return value, min(low, value), max(high, value)
