"""
Effective rank: the matrix is not the layer
===========================================

A convolution has as many singular values as its feature maps have numbers. Training spreads those
of this network's layers less evenly than chance did.
"""

import matplotlib.pyplot as plt

from inscape.data import load
from inscape.figures.style import styled
from inscape.models import resnet9
from inscape.spectra import effective_rank
from inscape.training import fit

data = load("digits", n=600)
images = data.x.reshape(-1, 1, 8, 8)
net = resnet9(1, width=4)
before = effective_rank(net, images)
fit(net, images, data.y, loss="cross_entropy", optimizer="adam", lr=0.01, batch=50, epochs=3)
after = effective_rank(net, images)

with styled():
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    after.plot(ax)
    ax.plot(before.ranks.tolist(), "o", color="0.6", zorder=0, label="before training")
    ax.legend()
    ax.set_title("effective rank of each layer")
plt.show()
