"""Beginnings of tables 1 and 2: where the parameters of a network are before training."""

import torch
from torch import nn


@torch.no_grad()
def raise_biases(net: nn.Module, by: float) -> None:
    """Add a number to every parameter that is called a bias, batch norm's included."""
    for bias in biases(net):
        bias.add_(by)


@torch.no_grad()
def spread_biases(net: nn.Module, reach: float, *, seed: int) -> None:
    """Draw every parameter that is called a bias from a uniform distribution around zero."""
    rng = torch.Generator().manual_seed(seed)
    for bias in biases(net):
        bias.uniform_(-reach, reach, generator=rng)


@torch.no_grad()
def vanish(net: nn.Module) -> None:
    """Set all parameters to zero."""
    for parameter in net.parameters():
        parameter.zero_()


def biases(net: nn.Module) -> list[nn.Parameter]:
    """Return every parameter whose name ends in bias, in their order."""
    return [p for name, p in net.named_parameters() if name.endswith("bias")]


def begin(net: nn.Module, start: str, *, seed: int) -> None:
    """Bring a network to one of the beginnings that need no data.

    Args:
        net: As its initialisation left it.
        start: ``"default"``, ``"zero"``, ``"bias+20"``, ``"bias-50"`` for U(-50, 50), and so on;
            what follows a comma does not count.
        seed: Seed of the draw.
    """
    word = start.partition(",")[0]
    if word == "zero":
        vanish(net)
    elif word.startswith("bias+"):
        raise_biases(net, float(word.removeprefix("bias+")))
    elif word.startswith("bias-"):
        spread_biases(net, float(word.removeprefix("bias-")), seed=seed)
