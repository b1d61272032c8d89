"""
Extrapolation: a network is good where the data are, and nowhere else
=====================================================================

A ReLU network learns to add two numbers from points of a ring. In the hole, which the data enclose,
it is worse than on the ring, and outside much worse; a Gaussian process has learned the sum.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import annulus
from inscape.extrapolation import error_map, extrapolation
from inscape.figures import draw
from inscape.figures.extrapolation import error_picture
from inscape.figures.style import styled
from inscape.models import two_layer
from inscape.training import fit

data = annulus(n=256, dtype=torch.float64)
net = fit(
    two_layer(2, 64, dtype=torch.float64), data.x, data.y, optimizer="adam", lr=0.01, epochs=300
).model


def total(x):
    """Return the right answers."""
    return x.sum(1, keepdim=True)


square = 3 * torch.rand(500, 2, generator=torch.Generator().manual_seed(0)).double() - 1.5
baselines = ("gaussian_process", "nearest_neighbour")
result = extrapolation(net, data.x, data.y, queries=square, target=total, baselines=baselines)
error = {(row["zone"], row["model"]): row["error"] for row in result.by_zone()}
with styled():
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2), layout="constrained")
    error_picture(error_map(net, total, size=128, dtype=torch.float64), left, data=data.x)
    draw(result, right)
plt.show()
