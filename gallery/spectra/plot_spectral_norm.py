"""
Spectral norm: what could be, and what is
=========================================

The product of the layers' spectral norms bounds how steep a network can be anywhere. It holds for
every training, grows with the data, and is far from being met at any of the test digits.
"""

import matplotlib.pyplot as plt

from inscape.data import digits_binary
from inscape.figures.style import BLUE, VERMILION, styled
from inscape.models import mlp
from inscape.smoothness import gradient_norm
from inscape.spectra import spectral_norm
from inscape.training import fit

sizes = (16, 32, 64, 128, 256)
points = digits_binary(4, 9).x_test
bounds, steepest = [], []
for n in sizes:
    data = digits_binary(4, 9, n=n)
    net = mlp(64, 64, 64, 1)
    fit(net, data.x, data.y, optimizer="adam", lr=0.003, epochs=800, stop_loss=1e-3)
    bounds.append(spectral_norm(net, points).summary().value)
    steepest.append(float(gradient_norm(net, points).norms.max()))

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    ax.plot(sizes, bounds, "s--", color=VERMILION, markersize=4)
    ax.lines[-1].set_label("bound: product of three spectral norms")
    ax.plot(sizes, steepest, color=BLUE, marker="o", markersize=4, label="steepest at a test digit")
    ax.set(xscale="log", ylim=(0, None), xlabel="training digits")
    ax.set_ylabel("output per unit of input")
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.set_title("a bound on the slope, and the slope itself")
    ax.legend()
plt.show()
