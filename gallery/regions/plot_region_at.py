"""
Region at a point: a digit alone in its linear region
=====================================================

The nearest face of the linear region around a digit comes long before the next digit. Its faces
are made by the units of both layers, and none of 1000 other digits lies inside.
"""

import matplotlib.pyplot as plt

from inscape.data import digits
from inscape.figures.style import INK, styled
from inscape.models import mlp
from inscape.regions import region_at
from inscape.training import fit

data = digits()
net = mlp(64, 32, 32, 10)
x = data.x.flatten(1)[:1001]
fit(net, x, data.y[:1001], loss="cross_entropy", optimizer="adam", lr=0.003, batch=64, epochs=30)

region = region_at(net, x)
inside = int(region.contains(x[1:]).sum())
nearest = float((x[1:] - x[0]).norm(dim=1).min())

with styled():
    figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    region.plot(ax)
    ax.axvline(nearest, color=INK, linewidth=1, linestyle=(0, (5, 2)))
    ax.text(nearest, 0.5, "the next digit ", ha="right", va="center", color=INK)
    ax.set_title(f"{len(region.distances)} faces; the nearest is {region.ball:.2f} away")
plt.show()
