"""A Gaussian process with all hyper-parameters fitted, and its comparison with pure noise."""

import math

from jaxtyping import Float64
from torch import Tensor

from inscape.kernels.gaussian_process.regression import GaussianProcess, gaussian_process

#: Required gain in log likelihood over pure noise. A search over length scales gains on noise, too:
#: of 240 trials with 120 noise values, three gained more than 3 and one more than 4.5.
LOG_LIKELIHOOD_GAIN = 4.5


def fitted_process(
    x: Float64[Tensor, "n d"], y: Float64[Tensor, "n c"], *, bounds: tuple[float, float], seed: int
) -> GaussianProcess:
    """Return the RBF process of maximal marginal likelihood.

    A noise of 0 is below the bounds, so that the fit begins at the best point of a grid only.
    """
    hyperparameters = ("amplitude", "length_scale", "noise")
    return gaussian_process(x, y, noise=0.0, fitted=hyperparameters, bounds=bounds, seed=seed)


def exceeds_noise(process: GaussianProcess) -> bool:
    """Return whether a process is likelier than independent noise."""
    y = process.y.reshape(len(process.y), -1)
    variance = float(y.square().mean())
    if not variance > 0:
        return False
    noise_log_likelihood = -y.numel() / 2 * (math.log(2 * math.pi * variance) + 1)
    return process.log_likelihood > noise_log_likelihood + LOG_LIKELIHOOD_GAIN
