"""
Curvature: how it is distributed, and what scale does to it
===========================================================

Nearly all directions are flat, a few are steep. The largest curvature changes when units are
rescaled, which changes nothing that the network computes; relative to the weights it stays.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import disc
from inscape.figures.style import styled
from inscape.landscape import hessian_density, hessian_extremes, sharpness, stationarity
from inscape.models import mlp
from inscape.training import fit

data = disc(n=64, target="multiplication", dtype=torch.float64)
net = mlp(2, 16, 16, 1, dtype=torch.float64)
fit(net, data.x, data.y, lr=0.05, momentum=0.9, epochs=100)
measures = (hessian_density, hessian_extremes, sharpness, stationarity)
density, ends, forms, gradient = results = [measure(net, data.x, data.y) for measure in measures]
with styled():
    figure, axes = plt.subplots(2, 2, figsize=(9.4, 6), layout="constrained")
    for ax, result in zip(axes.flat, results, strict=True):
        result.plot(ax)
plt.show()
