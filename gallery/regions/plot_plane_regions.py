"""
Plane regions: every linear region of a classifier
==================================================

A ReLU network is affine on each linear region of its input space. Cells with similar activation
patterns have similar colours; in the dual, each cell is a dot at its slopes, joined to its
neighbours (up to 5000 cells; of more, the dots alone).
"""

import matplotlib.pyplot as plt

from inscape.data import xor_circles
from inscape.figures.regions import draw_regions, dual
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.regions import plane_regions
from inscape.training import cosine, fit

data = xor_circles(n=400)
net = mlp(2, 16, 16, 16, 1, init="he_normal", seed=1)
y = data.y[:, None].float()
fit(net, data.x, y, loss="bce_logits", optimizer="adam", lr=0.01, epochs=400, schedule=cosine(400))
regions = plane_regions(net, data.x)

with styled():
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 8), layout="constrained")
    draw_regions(regions, axes[0, 0], boundary=True)
    axes[0, 0].set_title(f"{regions.cells} activation patterns, and where the decision changes")
    draw_regions(regions, axes[0, 1], color="plain", bar=False)
    axes[0, 1].set_title("where units switch: layers blue, orange, green")
    draw_regions(regions, axes[1, 0], color="map")
    axes[1, 0].set_title("hue: where the slope points; strength: how steep")
    dual(regions, axes[1, 1], color="map")
    axes[1, 1].set_title("the dual: a dot for each cell at its slopes")
plt.show()
