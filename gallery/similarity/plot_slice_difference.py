"""
Slice difference: where two seeds disagree
==========================================

The same architecture, data and recipe, two seeds: on the data both are right nearly everywhere, and
between and beyond the data they decide otherwise. Area and boundaries are exact.
"""

import matplotlib.pyplot as plt
import torch

from inscape.figures import draw
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.similarity import disagreement, slice_difference
from inscape.training import fit

draws = torch.Generator().manual_seed(0)
x = 2 * torch.rand(200, 2, generator=draws, dtype=torch.float64) - 1
y = (x.norm(dim=1) > 0.7).long()
nets = [mlp(2, 16, 16, 2, seed=seed, dtype=torch.float64) for seed in (0, 1)]
for net in nets:
    fit(net, x, y, loss="cross_entropy", optimizer="adam", lr=0.01, epochs=200)
rate = disagreement(nets[0].eval(), x, other=nets[1].eval())
window = 1.5 * torch.tensor(
    [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64
)
exact = slice_difference(nets[0], x, other=nets[1], domain=window)
with styled():
    figure, ax = plt.subplots(figsize=(4.4, 4.6), layout="constrained")
    draw(exact, ax)
    inside = y == 0
    ax.plot(*x[inside].T, ".", color="#444444", markersize=2)
    ax.plot(*x[~inside].T, "+", color="#444444", markersize=3, markeredgewidth=0.6)
plt.show()
