"""Layers of dense networks, computed one after the other; copies with permuted units."""

import copy

import torch
from torch import Tensor, nn


def hidden_layers(net: nn.Sequential, x: Tensor) -> list[Tensor]:
    """Return the activations after each nonlinearity, and the output."""
    layers = []
    with torch.no_grad():
        for module in net:
            x = module(x)
            if not isinstance(module, nn.Linear):
                layers.append(x.clone())
    return [*layers, x]


def permuted_copy(net: nn.Sequential) -> nn.Sequential:
    """Return the same function with the units of the first hidden layer in another order."""
    copied = copy.deepcopy(net)
    order = torch.arange(len(net[0].bias)).flip(0).roll(1)
    with torch.no_grad():
        copied[0].weight.copy_(net[0].weight[order])
        copied[0].bias.copy_(net[0].bias[order])
        copied[2].weight.copy_(net[2].weight[:, order])
    return copied
