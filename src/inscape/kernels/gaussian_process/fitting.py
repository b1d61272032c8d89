"""A process whose settings are all fitted, and whether it says more than noise does."""

import math

from jaxtyping import Float64
from torch import Tensor

from inscape.kernels.gaussian_process.regression import GaussianProcess, gaussian_process

#: By how much the logarithm of the likelihood must exceed that of noise alone. A search over
#: length scales finds something in noise, too: of 240 trials with 120 values of noise, three came
#: above 3 and one above 4.5.
BETTER = 4.5


def fitted_process(
    x: Float64[Tensor, "n d"], y: Float64[Tensor, "n c"], *, bounds: tuple[float, float], seed: int
) -> GaussianProcess:
    """Return the process of radial basis functions that makes ``y`` likeliest.

    A noise of 0 lies below the bounds, so that the fit begins at the likeliest of a grid alone.
    """
    every = ("amplitude", "length_scale", "noise")
    return gaussian_process(x, y, noise=0.0, fitted=every, bounds=bounds, seed=seed)


def explains(process: GaussianProcess) -> bool:
    """Tell whether a process is likelier than values that have nothing to do with each other."""
    y = process.y.reshape(len(process.y), -1)
    variance = float(y.square().mean())
    if not variance > 0:
        return False
    alone = -y.numel() / 2 * (math.log(2 * math.pi * variance) + 1)
    return process.log_likelihood > alone + BETTER
