"""
Interpolation: a barrier that is only a matter of order
=======================================================

Two networks that learned the same function have their units in different orders, and halfway
between them the loss is high. With the units in the order in which they are most alike most of the
barrier is gone; with the last layer solved again all of it.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import disc
from inscape.figures import draw
from inscape.figures.style import styled
from inscape.landscape import interpolation
from inscape.models import two_layer
from inscape.training import fit

data = disc(n=128, target="multiplication", dtype=torch.float64)
first, second = (
    fit(
        two_layer(2, 64, seed=seed, dtype=torch.float64),
        data.x,
        data.y,
        optimizer="adam",
        lr=0.02,
        epochs=100,
    ).model
    for seed in (0, 1)
)
results = [
    interpolation(first, data.x_test, data.y_test, other=second, align=align, solve=True)
    for align in (False, True)
]
with styled():
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3), sharey=True, layout="constrained")
    for ax, result in zip(axes, results, strict=True):
        draw(result, ax)
plt.show()
