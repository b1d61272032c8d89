"""
Penalties: each lowers its own measure
======================================

The same network, trained on the same points. A path-length penalty removes the detours; a
weights-product penalty changes little, for training alone already keeps the slope variation small.
"""

import matplotlib.pyplot as plt

from inscape.data import gaussian_process
from inscape.figures.style import BLUE, INK, ORANGE, VERMILION, styled
from inscape.models import two_layer
from inscape.smoothness import (
    path_length_penalty,
    slope_variation,
    total_variation,
    weights_product_penalty,
)
from inscape.training import cosine, fit

data = gaussian_process(n=6, seed=3)
runs = {
    "no penalty": ([], BLUE, "-"),
    "path length": ([(3e-3, path_length_penalty)], ORANGE, (0, (5, 2))),
    "weights product": ([(1e-3, weights_product_penalty)], VERMILION, (0, (1, 1.5))),
}
with styled():
    figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    for name, (penalties, color, dash) in runs.items():
        net = two_layer(1, 128)
        settings = {"optimizer": "adam", "lr": 0.02, "epochs": 500, "schedule": cosine(500)}
        fit(net, data.x, data.y, batch=6, penalties=penalties, **settings)
        f, slope = total_variation(net, data.x), slope_variation(net, data.x).summary().value
        text = f"{name}: {f.summary().value:.2f}, {slope:.1f}"
        ax.plot(f.at, f.values, color=color, linestyle=dash, linewidth=1.8, label=text)
    ax.plot(data.x, data.y, "o", color=INK, markersize=5)
    ax.set(title="one network, three trainings", xlabel="input", ylabel="output")
    ax.legend(title="penalty: total variation, slope variation", fontsize=8)
plt.show()
