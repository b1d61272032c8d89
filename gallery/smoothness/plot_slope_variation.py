"""
Slope variation: bent as little, yet longer
===========================================

Both functions pass through the four points and bend as little as any can, but one of them dips on
its way: bending little and varying little are two things (Volhejn, Eq. 3.14).
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
        up = total_variation(f, points)
        bent = slope_variation(f, points)
        left.plot(up.at, up.values, color=color, linestyle=dash, label=f"{up.summary().value:.2f}")
        slopes = torch.cat([bent.slopes, bent.slopes[-1:]])[: len(bent.at)]
        right.step(bent.at, slopes, where="post", color=color, linestyle=dash)
        right.lines[-1].set_label(f"{bent.summary().value:.2f}")
    left.plot(points, points.abs() - 1, "o", color=INK, markersize=5)
    left.set(title="the function", xlabel="input", ylabel="output")
    right.set(title="its slope", xlabel="input", ylabel="output per unit of input")
    left.legend(title="total variation", loc="upper center")
    right.legend(title="slope variation", loc="upper left")
plt.show()
