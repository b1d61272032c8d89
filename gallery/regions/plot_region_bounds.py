"""
Region bounds: what could be, and what is
=========================================

The widths alone allow a number of regions that grows exponentially with depth. Random networks of
these widths come nowhere near it.
"""

import matplotlib.pyplot as plt
import torch

from inscape.figures.style import BLUE, ORANGE, VERMILION, styled
from inscape.models import mlp
from inscape.regions import plane_regions, region_bounds

box = torch.tensor([[-9, -9], [9, -9], [9, 9], [-9, 9]], dtype=torch.float64)
depths = (1, 2, 3, 4, 5)
bounds = []
for depth in depths:
    net = mlp(2, *[16] * depth, 1, dtype=torch.float64)
    bounds.append(region_bounds(net, box, count=plane_regions(net, box, domain=box).cells))

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    ax.plot(depths, [bound.upper for bound in bounds], "v-", color=BLUE, label="at most")
    ax.plot(depths, [bound.lower for bound in bounds], "^--", color=ORANGE, label="some reach")
    ax.plot(
        depths, [bound.count for bound in bounds], "o-", color=VERMILION, label="random weights"
    )
    ax.set_yscale("log")
    ax.set(xlabel="hidden layers of 16 units", ylabel="linear regions of the plane")
    ax.set_xticks(depths)
    ax.legend()
plt.show()
