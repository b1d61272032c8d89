"""
Slope variation: as small, yet a longer path
============================================

Both functions pass through the four points with the least slope variation possible, but one of them
dips in between: slope variation and total variation are two things (Volhejn, Eq. 3.14).
"""

import matplotlib.pyplot as plt
import torch

from inscape.figures.style import BLUE, INK, ORANGE, styled
from inscape.smoothness import slope_variation, total_variation

points = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
curves = (
    (lambda x: torch.relu(x.abs() - 1), BLUE, "-"),
    (lambda x: torch.where(x.abs() < 1, (x**2 - 1) / 2, x.abs() - 1), ORANGE, (0, (5, 2))),
)

with styled():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3), layout="constrained")
    for f, color, dash in curves:
        values = total_variation(f, points)
        slope = slope_variation(f, points)
        left.plot(values.at, values.values, color=color, linestyle=dash)
        left.lines[-1].set_label(f"{values.summary().value:.2f}")
        slopes = torch.cat([slope.slopes, slope.slopes[-1:]])[: len(slope.at)]
        right.step(slope.at, slopes, where="post", color=color, linestyle=dash)
        right.lines[-1].set_label(f"{slope.summary().value:.2f}")
    left.plot(points, points.abs() - 1, "o", color=INK, markersize=5)
    left.set(title="the function", xlabel="input", ylabel="output")
    right.set(title="its slope", xlabel="input", ylabel="output per unit of input")
    left.legend(title="total variation", loc="upper center")
    right.legend(title="slope variation", loc="upper left")
plt.show()
