"""
Gradient deflection: an even pace, or stop and go
=================================================

While one picture fades into another, a network that goes straight changes its output at one pace.
Both networks fit the same hundred digits; the one with large initial weights runs back and forth.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import digits_binary
from inscape.figures.style import BLUE, INK, VERMILION, styled
from inscape.models import two_layer
from inscape.smoothness import gradient_deflection
from inscape.training import fit

data = digits_binary(4, 9, n=100)
four, nine = (data.x[data.y[:, 0] == label][2] for label in (1, -1))
fractions = torch.linspace(0, 1, 101)[:, None]
fading = torch.lerp(four, nine, fractions)
summaries = []

with styled():
    figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    for scale, name, color in ((0.01, "small", BLUE), (30, "large", VERMILION)):
        net = two_layer(64, 256, init="glorot", scale=scale)
        fit(net, data.x, data.y, optimizer="adam", lr=0.01, epochs=1000, stop_loss=1e-3)
        summaries.append(gradient_deflection(net, data.x).summary())
        pace = 100 * net(fading).detach()[:, 0].diff()
        text = f"{name} initial weights: {summaries[-1].value:.2f}"
        ax.stairs(pace, fractions[:, 0], baseline=None, color=color, linewidth=1.4, label=text)
    ax.axhline(-2, color=INK, linewidth=1, linestyle=(0, (5, 2)))
    ax.text(1, -2.3, "straight down", ha="right", va="top")
    ax.set(xlabel="fraction of the path from a four to a nine", ylabel="pace of the output")
    ax.legend(title="mean deflection, 1000 pairs of digits")
    ax.set_title("how fast the output changes while a four fades into a nine")
plt.show()
