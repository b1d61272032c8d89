"""
Gaussian process: the kernel decides what happens between the data
==================================================================

Three processes interpolate the same data. With an RBF kernel the mean returns to zero away from the
data; infinitely wide networks extrapolate, linearly with ReLU and bounded with tanh.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import gaussian_process as drawn
from inscape.figures.kernels import posterior
from inscape.figures.style import BLUE, GREEN, VERMILION, styled
from inscape.kernels import Rbf, WideNetwork, gaussian_process

data = drawn(n=7, length_scale=0.4, seed=3, dtype=torch.float64)
kernels = {
    "radial basis functions": (Rbf(length_scale=0.4), BLUE),
    "wide network, ReLU": (WideNetwork(hidden=2, bias=0.5), VERMILION),
    "wide network, tanh": (WideNetwork(activation="tanh", weight=9.0, bias=4.0), GREEN),
}
at = torch.linspace(-2.5, 2.5, 200, dtype=torch.float64)
with styled():
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3), sharey=True, layout="constrained")
    processes = []
    for ax, (name, (kernel, color)) in zip(axes, kernels.items(), strict=True):
        process = gaussian_process(data.x, data.y, kernel=kernel, noise=1e-6, restarts=3)
        posterior(process, ax, at=at, color=color)
        ax.set_title(f"{name}: log likelihood {process.log_likelihood:.2f}")
        processes.append(process)
plt.show()
