"""Gaussian process regression: covariance functions, likelihood, and a fit from several starts."""

from inscape.kernels.gaussian_process.covariance import Rbf, Tangent
from inscape.kernels.gaussian_process.fitting import exceeds_noise, fitted_process
from inscape.kernels.gaussian_process.regression import GaussianProcess, gaussian_process

__all__ = [
    "GaussianProcess",
    "Rbf",
    "Tangent",
    "exceeds_noise",
    "fitted_process",
    "gaussian_process",
]
