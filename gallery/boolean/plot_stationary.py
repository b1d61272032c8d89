"""
Stationary points: where gradient descent may stop
==================================================

Two ReLU units on XOR, seen along a line, have stationary points at three losses only: 0, 8/3, 4.
All of them are known exactly; one example of each loss is drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

from inscape.boolean.stationary import stationary
from inscape.figures.style import BLUE, FAINT, styled

found = stationary()
print(found.summary())
minima = [family for family in found.families if family.kind == "minimum"]

with styled():
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.6), sharey=True, layout="constrained")
    x = np.linspace(-1.4, 1.4, 561)
    for ax, loss in zip(axes, found.levels, strict=True):
        of_loss = [family for family in minima if family.loss == loss]
        for family in of_loss:
            w = {name: float(value) for name, value in family.example.items()}
            y = sum(w[f"o{i}"] * np.maximum(w[f"w{i}"] * x + w[f"b{i}"], 0) for i in (1, 2))
            ax.plot(x, y + w["c"], color=BLUE, alpha=0.35)
        ax.plot([-1, 0, 1], [-1, 1, -1], "o", color=FAINT, zorder=3)
        ax.set(title=f"loss {loss}: {len(of_loss)} families", ylim=(-3, 3))
plt.show()
