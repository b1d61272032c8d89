"""
Loss surface: what the picture of a landscape does not show
===========================================================

The same training on three planes. Nearly all of it lies off a plane of random directions; that of
its principal components shows the path, and still little of the sharpest curvature, of which each
legend tells the fraction. The cross is the true minimum of each plane: none is the network itself.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import disc
from inscape.figures import draw
from inscape.figures.style import styled
from inscape.landscape import loss_surface
from inscape.models import mlp
from inscape.training import fit

data = disc(n=64, target="multiplication", dtype=torch.float64)
nets = [mlp(2, 16, 16, 1, seed=seed, dtype=torch.float64) for seed in range(3)]
runs = [fit(net, data.x, data.y, lr=0.05, momentum=0.9, epochs=200, record=10) for net in nets]
path = runs[0].trajectory
planes = [{"trajectory": path, "plane": "random"}, {"trajectory": path}, {"others": nets[1:]}]
results = [loss_surface(nets[0], data.x, data.y, grid=17, **plane) for plane in planes]
with styled():
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for ax, result in zip(axes, results, strict=True):
        draw(result, ax)
plt.show()
