"""
Slice difference: where two seeds disagree
==========================================

The same architecture, data and recipe, two seeds: both are right on all thirty points, and between
and beyond them they decide otherwise. Area and boundaries are exact.
"""

import matplotlib.pyplot as plt
import torch

from inscape.figures import draw
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.similarity import slice_difference
from inscape.training import fit

draws = torch.Generator().manual_seed(0)
x = 2 * torch.rand(30, 2, generator=draws, dtype=torch.float64) - 1
y = (x.norm(dim=1) > 0.7).long()
nets = [mlp(2, 16, 16, 2, seed=seed, dtype=torch.float64) for seed in (0, 1)]
for net in nets:
    fit(net, x, y, loss="cross_entropy", optimizer="adam", lr=0.01, epochs=200)
assert all(bool((net(x).argmax(1) == y).all()) for net in nets)
window = 1.5 * torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]], dtype=torch.float64)
result = slice_difference(nets[0], x, other=nets[1], domain=window)
with styled():
    figure, ax = plt.subplots(figsize=(4.4, 4.6), layout="constrained")
    draw(result, ax)
    ax.plot(*x[y == 0].T, "o", color="#444444", markersize=3)
    ax.plot(*x[y == 1].T, "x", color="#444444", markersize=4, markeredgewidth=0.9)
plt.show()
