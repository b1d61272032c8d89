"""
Map compression: how many local maps a network needs
====================================================

A network that tells a disc from its surroundings has hundreds of linear regions, many with few of
the points. A few clusters of its local maps do as well, and one alone, a linear model, does not.
"""

import matplotlib.pyplot as plt
import torch

from inscape.compression import map_compression, region_sharing
from inscape.figures import draw
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.training import fit

draws = torch.Generator().manual_seed(0)
x = 2 * torch.rand(1200, 2, generator=draws, dtype=torch.float64) - 1
y = (x.norm(dim=1) > 0.75).long()
net = mlp(2, 32, 32, 2, dtype=torch.float64)
fit(net, x[:600], y[:600], loss="cross_entropy", optimizer="adam", lr=0.01, epochs=300)
shared = region_sharing(net, x)
result = map_compression(
    net, x[600:], y[600:], fit_on=x[:600], clusters=[1, 2, 3, 4, 8, 16, 32, 64]
)
with styled():
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    draw(result, axes[0])
    draw(shared, axes[1])
plt.show()
