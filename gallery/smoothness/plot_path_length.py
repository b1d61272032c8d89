"""
Path length: from a four to a nine
==================================

Two networks fit the same hundred digits. While one picture fades into another, the network that
began with small weights goes nearly straight from +1 to −1; the other began large, and wanders.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import digits_binary
from inscape.figures.style import BLUE, VERMILION, styled
from inscape.models import two_layer
from inscape.smoothness import path_length
from inscape.training import fit

data = digits_binary(4, 9, n=100)
four, nine = (data.x[data.y[:, 0] == label][2] for label in (1, -1))
fractions = torch.linspace(0, 1, 200)[:, None]
fading = torch.lerp(four, nine, fractions)

with styled():
    figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
    for scale, name, color, dash in ((0.01, "small", BLUE, "-"), (30, "large", VERMILION, "--")):
        net = two_layer(64, 256, init="glorot", scale=scale)
        fit(net, data.x, data.y, optimizer="adam", lr=0.01, epochs=1000, stop_loss=1e-3)
        mean = path_length(net, data.x).summary().value
        ax.plot(fractions, net(fading).detach(), color=color, linestyle=dash)
        ax.lines[-1].set_label(f"{name} initial weights: {mean:.2f}")
    for at in range(0, 200, 49):
        picture = ax.inset_axes((0.045 + 0.91 * at / 199 - 0.06, 1.02, 0.12, 0.2))
        picture.imshow(fading[at].reshape(8, 8).numpy(), cmap="gray_r")
        picture.set_axis_off()
    ax.set(xlabel="fraction of the path from the four to the nine", ylabel="output of the network")
    ax.legend(title="mean path length, 1000 pairs of digits")
    figure.suptitle("a picture fades from four to nine: two networks, two paths")
plt.show()
