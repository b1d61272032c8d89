"""
Local maps: the affine map of a network at each digit
=====================================================

Around each picture a ReLU network is an affine map: one image of coefficients for each class.
Nearly every digit has a map of its own, and yet the maps of one class are alike.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import digits
from inscape.figures.style import SIGNED, styled
from inscape.models import mlp
from inscape.regions import local_maps
from inscape.training import fit

data = digits()
net = mlp(64, 64, 10)
x = data.x.flatten(1)
fit(net, x, data.y, loss="cross_entropy", optimizer="adam", lr=0.003, batch=64, epochs=30)
maps = local_maps(net, x[:300], image=(8, 8))
different = int(maps.summary().value)

own = maps.images[torch.arange(300), data.y[:300]]
flat = torch.nn.functional.normalize(own.flatten(1))
alike, same = flat @ flat.T, data.y[:300, None] == data.y[None, :300]

with styled():
    figure, axes = plt.subplots(2, 6, figsize=(7.2, 2.9), layout="constrained")
    for digit, column in enumerate(axes.T):
        k = int((data.y[:300] == digit).nonzero()[0])
        high = float(own[k].abs().max())
        column[0].imshow(x[k].reshape(8, 8).numpy(), cmap="gray_r")
        column[1].imshow(own[k].numpy(), cmap=SIGNED, vmin=-high, vmax=high)
        for ax in column:
            ax.set_axis_off()
    figure.suptitle(f"{different} maps at 300 digits; below, what speaks for the digit's own class")
plt.show()
