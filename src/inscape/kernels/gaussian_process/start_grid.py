"""Starting point of a fit of a Gaussian process: the likeliest hyper-parameters of a grid.

The likelihood has a second local maximum where the length scale is far below the distances: there
all variation is noise, or none is, and the process predicts the mean. A poor start may converge to
it; the best point of a grid does not, where there is anything better.
"""

import math
from collections.abc import Iterable

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import generator
from inscape.kernels.gaussian_process.covariance import Rbf, squared_distances

#: Length scales of the grid, in units of the size of the data, and noise over amplitude.
SCALES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
NOISES = (1e-6, 1e-4, 1e-2, 0.1, 0.5)
#: Most points for the grid: each length scale costs their third power.
POINTS = 500


def grid_subset(n: int, seed: int) -> Tensor:
    """Return the indices of the points that the grid uses."""
    if n <= POINTS:
        return torch.arange(n)
    return torch.randperm(n, generator=generator(seed))[:POINTS]


def rbf_grid(x: Float64[Tensor, "n *d"]) -> Iterable[tuple[float, Float64[Tensor, "n n"]]]:
    """Yield length scales relative to the scale of the data, and their kernel matrices."""
    size = math.sqrt(float(squared_distances(x, x).mean()) / 2) or 1.0
    for scale in SCALES:
        yield scale * size, Rbf(length_scale=scale * size).matrix(x)


def likeliest_on_grid(
    kernels: Iterable[tuple[float, Float64[Tensor, "n n"]]],
    y: Float64[Tensor, "n c"],
    amplitude: float | None,
) -> dict[str, float]:
    """Return the likeliest length scale, amplitude and noise of a grid; empty if ``y`` is zero.

    An amplitude of None is optimised in closed form at each grid point.
    """
    n, c = y.shape
    mean_square = float(y.square().mean())
    best, settings = -math.inf, dict[str, float]()
    for scale, kernel in kernels:
        spectrum = torch.linalg.eigh(kernel)
        values = spectrum.eigenvalues.clamp(min=0)
        squares = (spectrum.eigenvectors.T @ y).square().sum(1)
        for noise_ratio in NOISES if mean_square > 0 else ():
            a = amplitude or float((squares / (values + noise_ratio)).sum()) / (n * c)
            noise = noise_ratio * (mean_square if amplitude else a)
            total = a * values + noise
            likelihood = -float((squares / total).sum() + c * total.log().sum())
            if likelihood > best:
                best, settings = likelihood, {"length_scale": scale, "amplitude": a, "noise": noise}
    return settings
