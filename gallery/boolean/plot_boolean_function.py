"""
Which Boolean function has it learned?
======================================

At the corners of a cube a network computes a Boolean function. One that was trained on the votes of
three inputs computes their majority, as easy as a function can be: one change along a line.
"""

import matplotlib.pyplot as plt
import torch

from inscape.boolean import boolean_function, points
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.training import fit

corners = torch.tensor(points(3), dtype=torch.float32)
votes = (corners.sum(1, keepdim=True) > 0).float()
net = mlp(3, 8, 1, seed=0).eval()
before = boolean_function(net, corners)
fit(net, corners, votes, loss="bce_logits", optimizer="adam", lr=0.05, epochs=100)
found = boolean_function(net, corners)

with styled():
    figure, axes = plt.subplots(2, 1, figsize=(5.6, 4), layout="constrained")
    for ax, one, when in zip(axes, (before, found), ("before", "after"), strict=True):
        one.plot(ax)
        ax.set_title(f"{when} training: function {one.number}, swaps {one.swaps}")
plt.show()
