"""Which data made it? Tangent kernels, and what they say of training and prediction."""

from inscape.kernels.drift_across_widths import DriftAcrossWidths, drift_across_widths
from inscape.kernels.feature_space import (
    Separability,
    embedding,
    separability,
    tangent_features,
)
from inscape.kernels.gaussian_process import GaussianProcess, Rbf, Tangent, gaussian_process
from inscape.kernels.kernel_drift import KernelDrift, kernel_drift
from inscape.kernels.neighbours import Neighbours, neighbours
from inscape.kernels.path.result import PathKernel
from inscape.kernels.path_kernel import path_kernel
from inscape.kernels.path_watch import PathWatch
from inscape.kernels.tangent_kernel import TangentKernel, tangent_kernel
from inscape.kernels.wide_network import WideNetwork

__all__ = [
    "DriftAcrossWidths",
    "GaussianProcess",
    "KernelDrift",
    "Neighbours",
    "PathKernel",
    "PathWatch",
    "Rbf",
    "Separability",
    "Tangent",
    "TangentKernel",
    "WideNetwork",
    "drift_across_widths",
    "embedding",
    "gaussian_process",
    "kernel_drift",
    "neighbours",
    "path_kernel",
    "separability",
    "tangent_features",
    "tangent_kernel",
]
