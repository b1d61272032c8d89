"""
Boundary: exact, and straight on every linear region
====================================================

Three networks that differ in size separate the same noisy classes. Their decision
boundaries are computed exactly; that of the largest network is the longest.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import xor_circles
from inscape.figures.regions import draw_regions
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.regions import decision_boundary, plane_regions
from inscape.training import cosine, fit

data = xor_circles(n=300, seed=2)
wrong = torch.rand(300, generator=torch.Generator().manual_seed(0)) < 0.08
y = (data.y ^ wrong)[:, None].float()
marks = data.x[y[:, 0] == 1].T, data.x[y[:, 0] == 0].T

with styled():
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.6), layout="constrained")
    for ax, width in zip(axes, (8, 24, 96), strict=True):
        net = mlp(2, width, width, 1, init="he_normal", seed=1)
        rate = {"optimizer": "adam", "lr": 0.02, "schedule": cosine(600)}
        fit(net, data.x, y, loss="bce_logits", epochs=600, **rate)
        regions = plane_regions(net, data.x)
        length = decision_boundary(regions).length
        draw_regions(regions, ax, color="value", lines=False, boundary=True, bar=False)
        for (u, v), mark in zip(marks, "o^", strict=True):
            ax.scatter(u, v, s=7, marker=mark, c="w", edgecolors="k", linewidths=0.4)
        ax.set_title(f"width {width}: {regions.cells} cells, length {length:.1f}")
plt.show()
