"""
Which Boolean function has it learned?
======================================

A network that was trained on points around the corners of a cube computes a Boolean function at
them: majority here, and of a network that was never trained some function or other.
"""

import torch

from inscape.boolean import boolean_function, points
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.training import fit

corners = torch.tensor(points(3), dtype=torch.float32)
votes = (corners.sum(1, keepdim=True) > 0).float()

with styled():
    net = mlp(3, 8, 1, seed=0).eval()
    before = boolean_function(net, corners)
    fit(net, corners, votes, loss="bce_logits", optimizer="adam", lr=0.05, epochs=100)
    found = boolean_function(net, corners)
    found.plot()
