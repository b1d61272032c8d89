"""A process whose settings are all fitted, from the likeliest of many starts.

The likelihood has a second summit where the length scale is far below the distances: there every
value is noise, and the process predicts the mean. One start may climb it; the best of a grid does
not, where there is anything better.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.kernels._kernels import Rbf, squared_distances
from inscape.kernels.gaussian_process import GaussianProcess, gaussian_process

#: Length scales of the starts, in units of the size of the data, and noise over amplitude.
SCALES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
NOISES = (1e-6, 1e-4, 1e-2, 0.1, 0.5)
#: By how much the logarithm of the likelihood must exceed that of noise alone.
BETTER = 3.0


def fitted_process(
    x: Float64[Tensor, "n d"],
    y: Float64[Tensor, "n c"],
    *,
    bounds: tuple[float, float],
    seed: int,
    scales: Sequence[float] = SCALES,
) -> GaussianProcess:
    """Return the process of radial basis functions that makes ``y`` likeliest.

    Points and labels are expected to have a size of about 1.
    """
    length_scale, amplitude, noise = likeliest(squared_distances(x, x), y, scales, NOISES)
    low, high = bounds
    return gaussian_process(
        x,
        y,
        kernel=Rbf(length_scale=min(max(length_scale, low), high)),
        amplitude=min(max(amplitude, low), high),
        noise=min(max(noise, low), high),
        fitted=("amplitude", "length_scale", "noise"),
        bounds=bounds,
        seed=seed,
    )


def likeliest(
    squares: Float64[Tensor, "n n"],
    y: Float64[Tensor, "n c"],
    scales: Sequence[float],
    noises: Sequence[float],
) -> tuple[float, float, float]:
    """Return length scale, amplitude and noise of the likeliest of a grid.

    The amplitude of each is the best for it, which is known in closed form.
    """
    n, c = y.shape
    found = []
    for scale in scales:
        spectrum = torch.linalg.eigh((squares * (-0.5 / scale**2)).exp())
        values = spectrum.eigenvalues.clamp(min=0)
        heights = (spectrum.eigenvectors.T @ y).square().sum(1)
        for ratio in noises:
            amplitude = float((heights / (values + ratio)).sum()) / (n * c)
            if not amplitude > 0:
                continue
            likelihood = -n * c * math.log(amplitude) - c * float((values + ratio).log().sum())
            found.append((likelihood, scale, amplitude, ratio * amplitude))
    _, scale, amplitude, noise = max(found, default=(0.0, 1.0, 1.0, 1e-3))
    return scale, amplitude, noise


def explains(process: GaussianProcess) -> bool:
    """Tell whether a process is likelier than values that have nothing to do with each other."""
    y = process.y.reshape(len(process.y), -1)
    variance = float(y.square().mean())
    if not variance > 0:
        return False
    alone = -y.numel() / 2 * (math.log(2 * math.pi * variance) + 1)
    return process.log_likelihood > alone + BETTER
