"""
Kernel drift: the wider, the lazier
===================================

Hidden units are divided by the root of the width and all weights begin at size one. Then a wide
network fits the data while its tangent kernel hardly moves; a narrow one has to change its kernel.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from inscape.figures.style import styled
from inscape.kernels import kernel_drift
from inscape.training import fit


class Root(nn.Module):
    """Divides by the root of the width."""

    forward = staticmethod(lambda x: x / x.shape[1] ** 0.5)


draw = torch.Generator().manual_seed(0)
x = torch.randn(30, 2, generator=draw)
y = (x[:, :1] * x[:, 1:]).sign()
with styled():
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3), sharey=True, layout="constrained")
    moved, losses = [], []
    for ax, width in zip(axes, (8, 64, 1024), strict=True):
        net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), Root(), nn.Linear(width, 1))
        for p in net.parameters():
            p.data = torch.randn(p.shape, generator=draw)
        run = fit(net, x, y, lr=0.5, epochs=1000, record=50, progress=False)
        found = kernel_drift(net, x, trajectory=run.trajectory)
        found.plot(ax).set_title(f"width {width}, loss {run.loss:.3f}")
        moved, losses = [*moved, found.summary().value], [*losses, run.loss]
plt.show()
