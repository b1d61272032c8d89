"""
Gradient path length: more data, more kinks
===========================================

With more digits to fit, the output travels no farther between two of them, but its slope changes
more in between. Volhejn saw the same on all 45 pairs of MNIST's digits (Table 4.2).
"""

import matplotlib.pyplot as plt

from inscape.data import digits_binary
from inscape.figures.style import BLUE, styled
from inscape.models import two_layer
from inscape.smoothness import gradient_path_length, path_length
from inscape.training import fit

sizes = (16, 32, 64, 128, 256)
points = digits_binary(4, 9).x_test
measures = (path_length, gradient_path_length)
summaries = []
for n in sizes:
    data = digits_binary(4, 9, n=n)
    net = two_layer(64, 128, init="glorot", scale=0.01)
    fit(net, data.x, data.y, optimizer="adam", lr=0.01, epochs=400, stop_loss=3e-3)
    summaries.append([measure(net, points, pairs=400).summary() for measure in measures])

with styled():
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3), layout="constrained")
    for ax, column in zip(axes, zip(*summaries, strict=True), strict=True):
        means = [summary.value for summary in column]
        errors = [[s.value - s.low for s in column], [s.high - s.value for s in column]]
        ax.errorbar(sizes, means, errors, color=BLUE, marker="o", markersize=4, capsize=3)
        ax.set(xscale="log", xlabel="training digits", ylim=(0, None))
        ax.set_xticks(sizes, sizes)
        ax.minorticks_off()
    axes[0].set(title="path length", ylabel="units of the output")
    axes[1].set(title="gradient path length", ylabel="output per unit of input")
    figure.suptitle("between two test digits: mean over 400 pairs, 95% interval")
plt.show()
