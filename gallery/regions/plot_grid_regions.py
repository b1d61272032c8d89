"""
Grid regions: what a grid cannot see
====================================

Each grid is compared with the exact number of regions. Slopes and activation patterns miss the
same thin ones; comparing with the nearest neighbours only also breaks thin ones into several.
"""

import matplotlib.pyplot as plt
import torch

from inscape.figures.style import BLUE, ORANGE, VERMILION, styled
from inscape.models import mlp
from inscape.regions import grid_regions, plane_regions

net = mlp(2, 32, 32, 1, dtype=torch.float64)
box = torch.tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=torch.float64)
exact = plane_regions(net, box, domain=box).cells

sizes = (16, 32, 64, 128, 256)
grids = [grid_regions(net, box, domain=box, grid=p, neighbours="4", exact=exact) for p in sizes]
missed = [result.missed for result in grids]

with styled():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), layout="constrained")
    grids[1].plot(left)
    right.axhline(exact, color=VERMILION, linewidth=1, linestyle=(0, (5, 2)))
    right.text(sizes[0], exact, f"exact: {exact}", color=VERMILION, va="bottom")
    right.plot(
        sizes, [result.distinct for result in grids], "o-", color=BLUE, label="different regions"
    )
    right.plot(sizes, [result.count for result in grids], "s--", color=ORANGE, label="parts shown")
    right.set_xscale("log", base=2)
    right.set(xlabel="points along a side", ylabel="regions")
    right.legend(loc="lower right")
plt.show()
