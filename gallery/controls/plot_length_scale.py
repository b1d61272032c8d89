"""
Length scale: one knob from rough to smooth
===========================================

The same tanh network learns the same noisy sine with weights held at three standard deviations.
Where 1 / sigma is small it follows the noise, where it is large it hardly bends.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import noisy_sine
from inscape.figures.style import BLUE, FAINT, VERMILION, styled
from inscape.models import two_layer
from inscape.training import fit_wide

data = noisy_sine(n=40, seed=2)
at = torch.linspace(-9.42, 9.42, 300)[:, None]
curves = {}
for inverse in (0.1, 1.0, 10.0):
    net = two_layer(1, 200, activation="tanh")
    held = {"sigma": 1 / inverse, "bias": "normalised"}  # as inscape.controls.length_scale does
    fit_wide(net, data.x, data.y, lr=0.03, steps=500, **held)
    curves[inverse] = net(at).detach()[:, 0]

with styled():
    figure, axes = plt.subplots(1, 3, figsize=(8.4, 2.6), sharey=True, layout="constrained")
    for ax, (inverse, curve) in zip(axes, curves.items(), strict=True):
        ax.plot(at[:, 0], at[:, 0].sin(), color=FAINT, linewidth=1)
        ax.plot(data.x[:, 0], data.y[:, 0], ".", color=VERMILION, markersize=4)
        ax.plot(at[:, 0], curve, color=BLUE)
        ax.set(title=f"1 / sigma = {inverse:g}", xlabel="x", ylim=(-2.8, 2.8))
    axes[0].set_ylabel("y")
plt.show()
