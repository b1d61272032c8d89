"""The networks that prove theorems 3.3.2 and 3.3.3, as modules that one can run.

Appendix A.2 and A.3 with errata S23 and S24: the matrix of the system (A.13) is 1 on and below its
diagonal and alpha above, odd pieces of the triangle wave (A.21) fall, and w^l changes of sign make
w^l + 1 regions.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float64
from torch import Tensor, nn

Interval = tuple[float, float]


def through(
    x: Float64[Tensor, " k"], y: Float64[Tensor, " k"], *, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of lemma A.2.1: k - 1 units, through k points, bends at all but the last.

    Args:
        x: Points in rising order.
        y: Values there.
        leak: Slope alpha of the leaky ReLU below zero; 0 for a ReLU.
    """
    slopes = torch.diff(y) / torch.diff(x)
    units = len(slopes)
    matrix = torch.ones(units, units, dtype=x.dtype).tril()
    matrix += leak * torch.ones_like(matrix).triu(1)
    a = torch.linalg.solve(matrix, slopes)
    offset = y[0] - (a * _leaky(x[0] - x[:-1], leak)).sum()
    first = linear(torch.ones(units, 1, dtype=x.dtype), -x[:-1])
    return nn.Sequential(first, activation(leak), linear(a[None], offset[None])).eval()


def heights(regions: Sequence[Interval], *, first: float = 1.0) -> Float64[Tensor, " s"]:
    """Return the values (A.17)-(A.20) at the centres: they cross zero between all neighbours."""
    found = [first]
    for (low, high), (low_next, high_next) in pairwise(regions):
        centre, following = (low + high) / 2, (low_next + high_next) / 2
        zero = (high + low_next) / 2
        found.append(-found[-1] * (following - zero) / (zero - centre))
    return torch.tensor(found, dtype=torch.float64)


def wide_classifier(
    regions: Sequence[Interval], *, first: float = 1.0, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of theorem 3.3.2: s - 1 units classify s regions of alternating class.

    Args:
        regions: Start and end of each, in rising order.
        first: Value at the centre of the first; its sign is the class.
        leak: Slope of the leaky ReLU below zero.
    """
    centres = torch.tensor([(low + high) / 2 for low, high in regions], dtype=torch.float64)
    return through(centres, heights(regions, first=first), leak=leak)


def triangles(width: int) -> tuple[Float64[Tensor, " k"], Float64[Tensor, " k"]]:
    """Return the corners of the wave (A.21): ``width`` pieces on [0, 1], between 0 and 1."""
    x = torch.arange(width + 1, dtype=torch.float64) / width
    return x, torch.arange(width + 1, dtype=torch.float64) % 2


def deep_classifier(
    width: int, depth: int, *, low: float = 0.0, high: float = 1.0, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of theorem 3.3.3: it changes sign w^l times on [low, high].

    Each hidden layer folds [0, 1] into ``width`` triangles; the one number between two layers is
    multiplied into the weights of the next, so that all hidden layers are ``width`` wide.

    Args:
        width: Units of each hidden layer.
        depth: Number of hidden layers.
        low: Start of the interval; the network is negative there.
        high: End of the interval.
        leak: Slope of the leaky ReLU below zero.
    """
    x, y = triangles(width)
    fold = through(x, y, leak=leak)
    into, out = _weights(fold[0]), _weights(fold[2])
    span = high - low
    modules: list[nn.Module] = [linear(into[0] / span, into[1] - into[0][:, 0] * low / span)]
    for _ in range(depth - 1):
        modules += [activation(leak), linear(into[0] @ out[0], into[0] @ out[1] + into[1])]
    return nn.Sequential(*modules, activation(leak), linear(out[0], out[1] - 0.5)).eval()


def linear(weight: Float64[Tensor, "o i"], bias: Float64[Tensor, " o"]) -> nn.Linear:
    """Return a layer with these weights."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype, device="meta")
    layer.to_empty(device="cpu")
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def activation(leak: float) -> nn.Module:
    """Return a ReLU, or a leaky one."""
    return nn.LeakyReLU(leak) if leak else nn.ReLU()


def _leaky(x: Tensor, leak: float) -> Tensor:
    return torch.maximum(x, leak * x)


def _weights(layer: nn.Module) -> tuple[Tensor, Tensor]:
    assert isinstance(layer, nn.Linear)
    return layer.weight.detach(), layer.bias.detach()
