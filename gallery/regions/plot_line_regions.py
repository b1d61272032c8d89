"""
Line regions: every breakpoint between a four and a nine
========================================================

While one picture fades into another, a ReLU network is exactly linear between its breakpoints.
Training moves them: the trained network has its kinks where it tells the two digits apart.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import digits_binary
from inscape.figures.style import BLUE, VERMILION, styled
from inscape.models import mlp
from inscape.regions.line_regions import line_regions
from inscape.training import fit

data = digits_binary(4, 9, n=100)
ends = torch.stack([data.x[data.y[:, 0] == label][2] for label in (1, -1)])
net = mlp(64, 24, 24, 1)
kinds = [("at the start", VERMILION, line_regions(net, ends))]
fit(net, data.x, data.y, optimizer="adam", lr=0.005, epochs=500, stop_loss=1e-3)
kinds.append(("trained", BLUE, line_regions(net, ends)))

with styled():
    figure, axes = plt.subplots(2, 1, figsize=(5.6, 4.6), layout="constrained", sharex=True)
    for name, color, lines in kinds:
        label = f"{name}: {int(lines.cells[0])} pieces, path length {float(lines.variation):.2f}"
        axes[0].plot(lines.t, lines.values, color=color, marker=".", label=label)
        steps = torch.cat([lines.slopes[:, 0], lines.slopes[-1:, 0]])
        axes[1].step(lines.t, steps, where="post", color=color)
    axes[0].set(ylabel="output")
    axes[0].legend()
    axes[1].set(xlabel="fraction of the path from the four to the nine", ylabel="slope")
    figure.suptitle("a picture fades from four to nine: all breakpoints, none missed")
plt.show()
