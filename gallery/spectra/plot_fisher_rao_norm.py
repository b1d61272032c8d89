"""
Fisher-Rao norm: blind to what changes nothing
==============================================

Multiply what goes into each hidden ReLU unit and divide what comes out: the function stays the
same. The product of spectral norms grows, the Fisher-Rao norm does not move.
"""

from copy import deepcopy

import matplotlib.pyplot as plt
import torch

from inscape.data import digits
from inscape.figures.style import BLUE, VERMILION, styled
from inscape.models import two_layer
from inscape.spectra import fisher_rao_norm, spectral_norm
from inscape.training import fit

data = digits()
net = two_layer(64, 128, 10)
fit(net, data.x, data.y, loss="cross_entropy", optimizer="adam", lr=0.01, batch=64, epochs=10)
draw, largest, norms = torch.linspace(0, 1, 128), (1, 4, 8, 12, 16), []
for most in largest:
    other, factor = deepcopy(net), most**draw
    other[0].weight.data *= factor[:, None]
    other[0].bias.data *= factor
    other[2].weight.data /= factor
    both = (spectral_norm(other, data.x), fisher_rao_norm(other, data.x_test, data.y_test))
    norms.append([result.summary().value for result in both])
products, lengths = (torch.tensor(norms) / torch.tensor(norms[0])).T

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    ax.plot(largest, products, "s--", color=VERMILION, label="product of spectral norms")
    ax.plot(largest, lengths, "o-", color=BLUE, label="Fisher-Rao norm")
    ax.set(title="one function, written with other weights", ylim=(0, None), xticks=largest)
    ax.set(ylabel="relative to no rescaling", xlabel="largest factor of a hidden unit")
    ax.legend()
plt.show()
