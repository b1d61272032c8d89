"""
Weights product: all the bends there are
========================================

The weights product of a network with one input is what its slope changes by along the whole line.
On an interval it is an upper bound, which is met once the interval holds every knot.
"""

import matplotlib.pyplot as plt
import torch

from inscape.figures.style import BLUE, VERMILION, styled
from inscape.models import two_layer
from inscape.smoothness import slope_variation, weights_product

net = two_layer(1, 32, seed=3)
data = torch.tensor([[-1.0], [1.0]])
bound = weights_product(net, data).summary().value

# The jump of the slope at each knot, in the order in which a growing [-r, r] takes them in.
variation = slope_variation(net, data, low=-1000, high=1000)
jumps = variation.slopes.diff(dim=0).abs()[:, 0]
reach, order = variation.at[1:-1].abs().sort()
inside = jumps[order].cumsum(0)

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    steps = [0, *inside.tolist(), float(inside[-1])]
    ax.step([0.03, *reach, 30], steps, where="post", color=BLUE, label="slope variation, exact")
    ax.plot(reach, inside, "o", color=BLUE, markersize=3)
    ax.axhline(bound, color=VERMILION, linestyle=(0, (5, 2)), label="weights product")
    ax.set(xscale="log", xlim=(0.03, 30), ylim=(0, 1.1 * bound))
    ax.set_xlabel("$r$ of the interval $[-r, r]$ (units of the input)")
    ax.set_ylabel("change of the slope\n(output per unit of input)")
    ax.set_title("each knot adds its jump; all of them make the weights product")
    ax.legend(loc="lower right")
plt.show()
