"""
Magnitude pruning: most weights of a wide network can be zero
=============================================================

At each step the smallest fifth of the weights left becomes zero and stays so. Two epochs of
training after each step buy far more zeros than cutting alone.
"""

import matplotlib.pyplot as plt

from inscape.data import digits
from inscape.figures.style import BLUE, ORANGE, styled
from inscape.models import two_layer
from inscape.pruning import magnitude_pruning
from inscape.training import fit

data = digits()
net = two_layer(64, 128, 10)
settings = {"loss": "cross_entropy", "optimizer": "adam", "lr": 0.01, "batch": 256}
fit(net, data.x, data.y, epochs=15, **settings)
test = (data.x_test, data.y_test)
tune = {"epochs": 2, **settings}
plain = magnitude_pruning(net, data.x, data.y, test=test, steps=22)
tuned = magnitude_pruning(net, data.x, data.y, test=test, steps=22, tune=tune)

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    ax.plot(plain.weights, 100 * plain.scores, "o--", color=ORANGE, markersize=3, label="only cut")
    ax.plot(tuned.weights, 100 * tuned.scores, "o-", color=BLUE, markersize=3)
    ax.lines[-1].set_label("cut, then two epochs of training")
    ax.set(xscale="log", xlabel="weights that are not zero", ylim=(0, 100))
    ax.set_ylabel("test digits that are right (%)")
    ax.set_title(f"from {int(tuned.weights[0]):,} weights down")
    ax.legend(loc="lower right")
plt.show()
