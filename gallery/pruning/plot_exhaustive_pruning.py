"""
Exhaustive pruning: which units solve the parity of three bits
==============================================================

A network of six units has 63 sub-networks. None with one or two units learns the parity of three
bits, not even after fine-tuning; with three units, a few do.
"""

import matplotlib.pyplot as plt
import torch

from inscape.figures.style import styled
from inscape.models import two_layer
from inscape.pruning import exhaustive_pruning
from inscape.training import fit

bits = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)
odd = (bits.prod(1, keepdim=True) > 0).float()
settings = {"loss": "bce_logits", "optimizer": "adam", "lr": 0.05}
net = two_layer(3, 6, init="he_normal", seed=1)
fit(net, bits, odd, epochs=200, **settings)
found = exhaustive_pruning(
    net, bits, odd, loss="bce_logits", tune={"epochs": 60, **settings}, slack=0.0
)

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    found.plot(ax)
    ax.set_title("sub-networks that get all eight points right")
plt.show()
