"""
Region evolution: early layers settle first
===========================================

While a network learns to tell two classes apart, its linear regions crowd around the boundary. The
activation pattern of the first layer is soon final; that of the last one changes much longer.
"""

import matplotlib.pyplot as plt

from inscape.data import xor_circles
from inscape.figures.evolution import still
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.regions import region_evolution
from inscape.training import cosine, fit

data = xor_circles(n=400)
net = mlp(2, 16, 16, 16, 1, init="he_normal", seed=1)
y = data.y[:, None].float()
rate = {"optimizer": "adam", "lr": 0.005, "schedule": cosine(400), "record": 10}
run = fit(net, data.x, y, loss="bce_logits", epochs=400, **rate)
evolution = region_evolution(net, data.x, trajectory=run.trajectory, steps=21)
# inscape.figures.animation.animate(found, "training.webp") makes a moving picture of it.

with styled():
    figure = plt.figure(figsize=(9.2, 5.4), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.15, 1))
    for ax, place in zip(above.subplots(1, 4), (0, 2, 5, 20), strict=True):
        still(evolution, place, ax)
    left, ax = below.subplots(1, 2)
    evolution.plot(left)
    ax.plot(evolution.steps, evolution.lengths, "o-", markersize=3)
    ax.set(xlabel="step", ylabel="length of the boundary", ylim=(0, None))
plt.show()
