"""
Tropical form: a network is the difference of two convex functions
==================================================================

Every ReLU network is one convex function less another, each a maximum of straight lines. Taken
together they are the network, to the last digit.
"""

import math

import matplotlib.pyplot as plt
import torch

from inscape.figures.style import styled
from inscape.models import mlp
from inscape.regions import tropical
from inscape.training import fit

x = torch.linspace(-math.pi, math.pi, 101, dtype=torch.float64)[:, None]
net = mlp(1, 8, 8, 1, dtype=torch.float64, seed=1)
fit(net, x, torch.sin(x), optimizer="adam", lr=0.01, epochs=2000)

form = tropical(net, x)
apart = float((form(x) - net(x)).detach().abs().max())

with styled():
    figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    form.plot(ax)
    ax.plot(x, torch.sin(x), color="0.6", linewidth=4, zorder=0, label="the sine that it learned")
    ax.set(xlim=(-math.pi, math.pi), ylim=(-2, 12))
    ax.legend(loc="upper center")
    ax.set_title(f"{len(form.plus_constants)} lines less {len(form.minus_constants)} lines")
plt.show()
