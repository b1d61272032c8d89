"""
Distance from initialisation: wide networks need not move far
=============================================================

Networks of all widths fit the same digits. The wider one is, the larger its weights are from the
start, and the smaller is the fraction of them by which it has to move (Nagarajan and Kolter 2019).
"""

from copy import deepcopy

import matplotlib.pyplot as plt

from inscape.data import digits_binary
from inscape.figures.style import BLUE, FAINT, styled
from inscape.models import two_layer
from inscape.spectra import distance_from_init
from inscape.training import fit

data = digits_binary(4, 9, n=100)
widths = (16, 64, 256, 1024)
moved, began = [], []
for width in widths:
    net = two_layer(64, width, init="he_normal")
    start = deepcopy(net)
    rate = 2 / width  # the loss is steeper in wide networks
    fit(net, data.x, data.y, optimizer="sgd", lr=rate, epochs=3000, stop_loss=0.03)
    result = distance_from_init(net, data.x, start=start)
    moved.append(result.summary().value)
    began.append(float(result.before.norm()))

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    ax.plot(widths, began, "s--", color=FAINT, label="norm of the parameters at the start")
    ax.plot(widths, moved, "o-", color=BLUE, label="distance from the start")
    ax.set(xscale="log", yscale="log", xlabel="hidden units", ylabel="Euclidean norm")
    ax.set_xticks(widths, widths)
    ax.minorticks_off()
    ax.set_title("how far gradient descent moves to fit 100 digits")
    ax.legend()
plt.show()
