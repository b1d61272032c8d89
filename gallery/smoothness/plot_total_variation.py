"""
Total variation: the shortest path through the data
===================================================

No function through these points goes less up and down than the broken line that joins them. The
network fits the points as well, and pays for the detours that it makes in between.
"""

import matplotlib.pyplot as plt

from inscape.data import gaussian_process
from inscape.figures.style import FAINT, INK, styled
from inscape.models import two_layer
from inscape.smoothness import total_variation
from inscape.training import fit

data = gaussian_process(n=6, seed=3)
net = two_layer(1, 128)
fit(net, data.x, data.y, optimizer="adam", lr=0.02, epochs=1000, stop_loss=1e-8)

result = total_variation(net, data.x)
at, order = data.x[:, 0].sort()
spline = data.y[order, 0]
shortest = spline.diff().abs().sum()

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    ax.plot(at, spline, color=FAINT, linestyle=(0, (5, 2)), label=f"broken line: {shortest:.2f}")
    result.plot(ax)
    ax.lines[-1].set_label(f"network, dots at its knots: {result.summary().value:.2f}")
    ax.plot(at, spline, "o", color=INK, markersize=5)
    ax.set_title("a network takes a longer way than the broken line")
    ax.legend(title="total variation (units of the output)")
plt.show()
