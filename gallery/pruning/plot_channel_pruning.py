"""
Channel pruning: a smaller network, not a sparse one
====================================================

Filters go one by one, with an epoch of training after each. What is left is a plain module with
smaller tensors, here with the channels of its two convolutions written beside the curve.
"""

import matplotlib.pyplot as plt
from torch import nn

from inscape.data import digits
from inscape.figures.style import styled
from inscape.models.initialisation import pytorch_default
from inscape.pruning import channel_pruning
from inscape.training import fit

data = digits(flat=False)
net = nn.Sequential(
    *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(32, 10)),
).eval()
pytorch_default(net, seed=0)
settings = {"loss": "cross_entropy", "optimizer": "adam", "lr": 0.01, "batch": 128}
fit(net, data.x, data.y, epochs=10, **settings)
test = (data.x_test, data.y_test)
tune = {"epochs": 1, **settings}
found = channel_pruning(net, data.x, data.y, tune=tune, test=test, points=200, slack=0.03)
small = found.network(net, data.x)

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    found.plot(ax)
    ax.set_title(f"{small[0].out_channels} and {small[3].out_channels} of 8 channels are enough")
plt.show()
