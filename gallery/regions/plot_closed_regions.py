"""
Closed regions: what three units can enclose
============================================

A layer with one unit more than inputs is the smallest that can enclose anything. In the plane its
boundary closes to a quadrilateral or to a hexagon; which one is read from the weights, exactly.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import circle_versus_annulus
from inscape.figures.style import BLUE, FAINT, VERMILION, styled
from inscape.models import mlp
from inscape.regions import closed_regions
from inscape.training import fit

data = circle_versus_annulus(n=400, seed=3)
y = data.y[:, None].float()
networks = {}
for seed in (4, 6):
    net = mlp(2, 3, 1, seed=seed)
    fit(net, data.x, y, loss="bce_logits", optimizer="adam", lr=0.02, epochs=700, progress=False)
    networks.setdefault(closed_regions(net.eval(), data.x).shape, net)

with styled():
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), layout="constrained")
    for ax, shape in zip(axes, ("hyperoctahedron", "expanded simplex"), strict=True):
        region = closed_regions(networks[shape], data.x)
        region.plot(ax)
        for w, b in zip(networks[shape][0].weight.data, networks[shape][0].bias.data, strict=True):
            foot = -b * w / w.dot(w)
            ax.axline(foot, foot + torch.stack([-w[1], w[0]]), color=FAINT, lw=0.7)
        for side, colour, mark in ((1, BLUE, "o"), (0, VERMILION, "s")):
            ax.scatter(*data.x[data.y == side].T, s=5, c=colour, marker=mark, linewidths=0)
        ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
plt.show()
