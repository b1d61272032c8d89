"""
Tangent kernel: training brings a class together
================================================

Each entry is the cosine between the gradients at two digits. Before training all gradients are
similar; afterwards those of one class are, and those of different classes are not.
"""

import matplotlib.pyplot as plt

from inscape.data import digits
from inscape.figures.kernels import matrix
from inscape.figures.style import styled
from inscape.kernels import tangent_kernel
from inscape.models import two_layer
from inscape.training import fit

data = digits()
net = two_layer(64, 64, 10)
x, y = data.x_test[:120], data.y_test[:120]
same = y[:, None] == y
with styled():
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
    gaps = []
    for ax, when in zip(axes, ("before training", "after training"), strict=True):
        result = tangent_kernel(net, x, outputs="trace", normalised=True)
        matrix(result, ax, labels=y)
        within, across = result.kernel[same].mean(), result.kernel[~same].mean()
        gaps.append(float(within - across))
        ax.set_title(f"{when}: {within:.2f} within a class, {across:.2f} across")
        rate = {"optimizer": "adam", "lr": 0.01, "batch": 64, "epochs": 20, "progress": False}
        fit(net, data.x, data.y, loss="cross_entropy", **rate)
plt.show()
