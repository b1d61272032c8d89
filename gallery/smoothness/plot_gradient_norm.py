"""
Gradient norm: steep only where it has to be
============================================

A network that tells a disc from the ring around it is steep in the gap between them and nearly
flat at the data, which is where the gradient norm is measured.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import circle_versus_annulus
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.smoothness import gradient_norm
from inscape.training import cosine, fit

data = circle_versus_annulus(n=300, labels="regression")
net = mlp(2, 24, 24, 1, init="he_normal", seed=1)
fit(net, data.x, data.y, optimizer="adam", lr=0.02, epochs=800, schedule=cosine(800))

side = torch.linspace(-1.1, 1.1, 221)
grid = torch.cartesian_prod(side, side)
everywhere = gradient_norm(net, grid, points=len(grid)).norms
mean = gradient_norm(net, data.x).summary().value

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
    image = everywhere.reshape(221, 221).T.numpy()
    shades = ax.imshow(image, origin="lower", extent=(-1.1, 1.1, -1.1, 1.1))
    figure.colorbar(shades, label="gradient norm (output per unit of input)")
    for label, name, mark in ((1, "disc: +1", "o"), (-1, "ring: -1", "^")):
        a, b = data.x[data.y[:, 0] == label].T.numpy()
        ax.scatter(a, b, s=9, marker=mark, c="w", edgecolors="k", linewidths=0.4, label=name)
    ax.set(xlabel="first input", ylabel="second input")
    ax.legend(loc="upper right", fontsize=7, frameon=True, framealpha=1)
    ax.set_title(f"gradient norm: {mean:.2g} at the data, up to {everywhere.max():.2g} elsewhere")
plt.show()
