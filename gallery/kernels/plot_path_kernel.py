"""
Path kernel: which digits made this prediction
==============================================

Training is retraced step by step: what every training picture added to one output at one test
picture, by Adam, sums up to the prediction exactly. The strongest of 300 are shown.
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
found = path_kernel(net, x, y, trajectory=run.trajectory, queries=query)
added = float(found.samples.sum())
closes = float((found.initial + added - found.final).abs().max())

with styled():
    figure = plt.figure(figsize=(9.2, 3.6), layout="constrained")
    attribution(found, x=x, queries=query, figure=figure)
plt.show()
