"""Where a fit of a Gaussian process should begin: at the likeliest settings of a grid.

The likelihood has a second summit where the length scale is far below the distances: there every
value is noise, or none is, and the process predicts the mean. A start far from what the data ask
for may climb it; the best of a grid does not, where there is anything better.
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
#: Points that the grid is judged by at most: each length scale takes their third power.
POINTS = 500


def some_of(n: int, seed: int) -> Tensor:
    """Return the numbers of the points that the grid is judged by."""
    if n <= POINTS:
        return torch.arange(n)
    return torch.randperm(n, generator=generator(seed))[:POINTS]


def bells(x: Float64[Tensor, "n *d"]) -> Iterable[tuple[float, Float64[Tensor, "n n"]]]:
    """Yield length scales that suit the size of the data, and their kernels."""
    size = math.sqrt(float(squared_distances(x, x).mean()) / 2) or 1.0
    for scale in SCALES:
        yield scale * size, Rbf(length_scale=scale * size).matrix(x)


def likeliest(
    kernels: Iterable[tuple[float, Float64[Tensor, "n n"]]],
    y: Float64[Tensor, "n c"],
    amplitude: float | None,
) -> dict[str, float]:
    """Return length scale, amplitude and noise of the likeliest of a grid; nothing for zeros.

    An amplitude that is not given is the best for each, which is known in closed form.
    """
    n, c = y.shape
    height = float(y.square().mean())
    best, found = -math.inf, dict[str, float]()
    for scale, kernel in kernels:
        spectrum = torch.linalg.eigh(kernel)
        values = spectrum.eigenvalues.clamp(min=0)
        squares = (spectrum.eigenvectors.T @ y).square().sum(1)
        for ratio in NOISES if height > 0 else ():
            a = amplitude or float((squares / (values + ratio)).sum()) / (n * c)
            noise = ratio * (height if amplitude else a)
            total = a * values + noise
            likelihood = -float((squares / total).sum() + c * total.log().sum())
            if likelihood > best:
                best, found = likelihood, {"length_scale": scale, "amplitude": a, "noise": noise}
    return found
