"""
Path kernel: which digits made this prediction
==============================================

The contributions of all training images to one output at one test image, through every update of
Adam, sum to the prediction exactly. The largest of 300 are shown.
"""

import matplotlib.pyplot as plt

from inscape.data import digits_binary
from inscape.figures.kernels import attribution
from inscape.figures.style import styled
from inscape.kernels import path_kernel
from inscape.models import two_layer
from inscape.training import fit

data = digits_binary(4, 9)
x, y = data.x[:300], data.y[:300]
net = two_layer(64, 24)
run = fit(net, x, y, optimizer="adam", lr=0.01, batch=50, epochs=12, record=12, progress=False)
query = data.x_test[:1]
split = path_kernel(net, x, y, trajectory=run.trajectory, queries=query)
added = float(split.samples.sum())
closes = float((split.initial + added - split.final).abs().max())

with styled():
    figure = plt.figure(figsize=(9.2, 3.6), layout="constrained")
    attribution(split, x=x, queries=query, figure=figure)
plt.show()
