"""
Node pruning: hidden units that digits can do without
=====================================================

Of 32 hidden units a network for ten digits can miss a few. Without fine-tuning the curve falls
early; with two epochs after each cut it holds much longer.
"""

import matplotlib.pyplot as plt

from inscape.data import digits
from inscape.figures.style import BLUE, ORANGE, styled
from inscape.models import two_layer
from inscape.pruning import node_pruning
from inscape.training import fit

data = digits()
net = two_layer(64, 32, 10)
settings = {"loss": "cross_entropy", "optimizer": "adam", "lr": 0.01, "batch": 256}
fit(net, data.x, data.y, epochs=15, **settings)
test, tune = (data.x_test, data.y_test), {"epochs": 2, **settings}
plain = node_pruning(net, data.x, data.y, test=test)
tuned = node_pruning(net, data.x, data.y, test=test, tune=tune)

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    looks = (("o--", ORANGE, "only cut"), ("o-", BLUE, "cut, then two epochs of training"))
    for one, (line, color, name) in zip((plain, tuned), looks, strict=True):
        units = one.widths[:, 0].tolist()
        ax.plot(units, 100 * one.scores, line, color=color, markersize=3, label=name)
    ax.set(xscale="log", xlabel="hidden units left", ylabel="test digits that are right (%)")
    ax.set_xticks([1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16, 32])
    ax.minorticks_off()
    ax.set_title("taking out the unit that is missed least")
    ax.legend(loc="lower right")
plt.show()
