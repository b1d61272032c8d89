"""
Saliency: which pixels speak for a digit
========================================

The gradient alone says where a network is steep. Integrated gradients add up to the score, here
exactly: every kink between the blank image and the digit is known. Violet pixels speak for the
class, orange ones against it; blank ones add nothing, whatever the gradient there.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import digits
from inscape.figures.style import SIGNED, styled
from inscape.models import mlp
from inscape.sensitivity import saliency
from inscape.training import fit

data = digits()
net = mlp(64, 64, 10)
x = data.x.flatten(1)
fit(net, x, data.y, loss="cross_entropy", optimizer="adam", lr=0.003, batch=64, epochs=30)
shown = torch.cat([(data.y == digit).nonzero()[0] for digit in (0, 3, 4, 7, 9)])
result = saliency(net, x[shown])
assert result.residual < 1e-9  # float64, every kink met
titles = {"gradient": "gradient", "gradient_times_input": "times input", "integrated": "integrated"}

with styled():
    figure, axes = plt.subplots(4, len(shown), figsize=(5.4, 4.6), layout="constrained")
    for k, ax in enumerate(axes[0]):
        ax.imshow(x[shown[k]].reshape(8, 8).numpy(), cmap="gray_r")
        ax.set_title(f"class {int(result.outputs[k])}")
    for row, kind in zip(axes[1:], titles, strict=True):
        row[0].set_ylabel(titles[kind])
        for ax, attribution in zip(row, result.attributions(kind).reshape(-1, 8, 8), strict=True):
            high = float(attribution.abs().max())
            ax.imshow(attribution.numpy(), cmap=SIGNED, vmin=-high, vmax=high)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
plt.show()
