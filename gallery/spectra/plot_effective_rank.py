"""
Effective rank: a blur keeps few directions
===========================================

Each layer maps 16 x 16 pixels to as many: 256 singular values, shown from the largest on. The
identity has the largest effective rank there can be, a random kernel less, a blur least.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from inscape.figures.style import styled
from inscape.models import pytorch_default
from inscape.spectra import conv_spectrum, effective_rank

net = nn.Sequential()
for name, size in (("identity", 1), ("random", 3), ("blur", 5)):
    options = {"padding": "same", "padding_mode": "circular", "bias": False}
    net.add_module(name, nn.Conv2d(1, 1, size, **options))
pytorch_default(net.eval(), seed=1)
nn.init.ones_(net.identity.weight)
nn.init.constant_(net.blur.weight, 1 / 25)
image = torch.rand(1, 1, 16, 16)
spectrum, rank = conv_spectrum(net, image), effective_rank(net, image)

with styled():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), layout="constrained")
    spectrum.plot(left)
    rank.plot(right)
plt.show()
