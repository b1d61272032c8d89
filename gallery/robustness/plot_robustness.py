"""
Robustness: one step along the gradient is not the worst that can happen
========================================================================

The same network under noise of the same length as the steps, under one step of FGSM, under PGD and
under FAB. The stronger the attack, the lower the curve; all of them are upper bounds of the truth.
"""

import matplotlib.pyplot as plt

from inscape.data import digits
from inscape.figures.style import CATEGORIES, DASHES, styled
from inscape.models import two_layer
from inscape.robustness import Fab, robustness
from inscape.training import fit

data = digits()
net = two_layer(64, 64, 10)
fit(net, data.x, data.y, loss="cross_entropy", optimizer="adam", lr=0.003, batch=64, epochs=12)
budgets = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6]
deviations = [budget / 8 for budget in budgets]  # of noise in 64 inputs that is as long
curves = {}
for attack in ("noise", "fgsm", "pgd", Fab(steps=20)):
    steps = deviations if attack == "noise" else budgets
    settings = {"attack": attack, "budgets": steps, "bounds": (0.0, 1.0), "points": 150}
    found = robustness(net, data.x_test, data.y_test, **settings)
    curves[found.attack] = found

with styled():
    figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
    for (name, found), colour, dash in zip(curves.items(), CATEGORIES, DASHES, strict=False):
        low, high = 100 * found.intervals.T
        ax.fill_between([0, *budgets], low, high, color=colour, alpha=0.12, linewidth=0)
        ax.plot([0, *budgets], 100 * found.accuracy, color=colour, linestyle=dash, label=name)
    ax.set(xlabel="length of the step (L2)", ylabel="digits that are right (%)", ylim=(0, 102))
    ax.legend(loc="lower left")
plt.show()
