"""
Effective length scale: a network has one, and its weights set it
=================================================================

Wide tanh networks are drawn at random, with first weights of standard deviation sigma /
sqrt(inputs). The length scale of what they compute falls as sigma grows, between 1 / sigma and 1 /
sqrt(sigma).
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import disc
from inscape.figures.style import BLUE, FAINT, VERMILION, quiet_grid, styled
from inscape.models import mlp
from inscape.smoothness import effective_length_scale

x = disc(n=200, dtype=torch.float64).x
sigmas = [16.0, 8.0, 4.0, 2.0, 1.0]
results = []
for sigma in sigmas:
    net = mlp(2, 256, 16, activation="tanh", dtype=torch.float64)  # 16 draws: its outputs
    rng = torch.Generator().manual_seed(0)
    for weights, std in zip(net.parameters(), (sigma / 2**0.5, sigma, 1, 0), strict=True):
        weights.data = std * torch.randn(weights.shape, generator=rng).double()
    results.append(effective_length_scale(net, x, lines=150, process=False))
with styled():
    figure, ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
    inverse = torch.tensor([1 / sigma for sigma in sigmas])
    values = torch.tensor([result.value for result in results])
    low, high = torch.stack([result.interval for result in results]).T
    ax.fill_between(inverse, low, high, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(inverse, values, "o-", color=BLUE, label="measured")
    for power, name, color in ((1, "1 / sigma", VERMILION), (0.5, "1 / sqrt(sigma)", FAINT)):
        ax.plot(inverse, values[0] * (16 * inverse) ** power, "--", color=color, label=name)
    ax.set(xscale="log", yscale="log", xlabel="1 / sigma", ylabel="effective length scale")
    quiet_grid(ax)
    ax.legend()
plt.show()
