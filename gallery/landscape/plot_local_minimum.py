"""
Local minimum: the same affine map, proved, refuted, and left behind
====================================================================

The best affine map is embedded in a ReLU network (Lemma 1): a local minimum, proved by theorem 1.
Training from a usual start ends far below it, at a point that is no minimum yet.
"""

import matplotlib.pyplot as plt
import torch

from inscape.data import disc
from inscape.figures.style import styled
from inscape.landscape import affine_embedding, local_minimum, reduced_rank_regression
from inscape.models import mlp
from inscape.training import fit

data = disc(n=64, target="multiplication", dtype=torch.float64)
weight, bias = reduced_rank_regression(data.x, data.y, rank=1)
nets = {
    "embedded": affine_embedding(mlp(2, 16, 16, 1).double(), data.x, weight, bias)[0],
    "at initialisation": mlp(2, 16, 16, 1, dtype=torch.float64),
    "trained": mlp(2, 16, 16, 1, dtype=torch.float64),
}
fit(nets["trained"], data.x, data.y, optimizer="adam", lr=0.01, epochs=200)
found = {name: local_minimum(net.eval(), data.x, data.y) for name, net in nets.items()}

with styled():
    figure, ax = plt.subplots(figsize=(7.2, 2.4), layout="constrained")
    names = [f"{name}:\n{result.verdict}" for name, result in found.items()]
    ax.plot([float(result.losses[0]) for result in found.values()], names, "o")
    ax.set(xscale="log", xlabel="squared error", xlim=(1e-4, 1))
    ax.grid(axis="x", alpha=0.3)
    ax.margins(y=0.2)
    ax.invert_yaxis()
plt.show()
for result in found.values():
    print(result.sentence)
