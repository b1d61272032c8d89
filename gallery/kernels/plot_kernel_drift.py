"""
Kernel drift: the wider, the lazier
===================================

In NTK parametrisation hidden units are divided by the square root of the width, and all weights are
standard normal at initialisation. A wide network then fits while its tangent kernel hardly changes.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from inscape.figures.style import styled
from inscape.kernels import drift_across_widths, kernel_drift
from inscape.training import fit


class Root(nn.Module):
    """Divides by the root of the width."""

    forward = staticmethod(lambda x: x / x.shape[1] ** 0.5)


generator = torch.Generator().manual_seed(0)
x = torch.randn(30, 2, generator=generator)
y = (x[:, :1] * x[:, 1:]).sign()
drifts = {}
for width in (8, 32, 128, 512):
    net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), Root(), nn.Linear(width, 1))
    for p in net.parameters():
        p.data = torch.randn(p.shape, generator=generator)
    run = fit(net, x, y, lr=0.5, epochs=500, record=50, progress=False)
    drifts[width] = [kernel_drift(net, x, trajectory=run.trajectory)]
law = drift_across_widths(drifts)
with styled():
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3), layout="constrained")
    for ax, width in zip(axes, (8, 512), strict=False):
        drifts[width][0].plot(ax).set(title=f"width {width}", ylim=(-0.05, 1.05))
    law.plot(axes[2])
plt.show()
