"""Networks of one input that change sign at given places: theorems 3.3.2 and 3.3.3.

Appendix A.2 and A.3 with errata S23 and S24: the matrix of the system (A.13) is 1 on and below its
diagonal and alpha above, odd pieces of the triangle wave (A.21) fall, and w^l changes of sign make
w^l + 1 regions.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import checks

Interval = tuple[float, float]


def through(
    x: Float64[Tensor, " k"], y: Float64[Tensor, " k"], *, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of lemma A.2.1: k - 1 units, through k points, kinks at all but the last.

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
    values = [first]
    for (low, high), (low_next, high_next) in pairwise(regions):
        centre, following = (low + high) / 2, (low_next + high_next) / 2
        zero = (high + low_next) / 2
        values.append(-values[-1] * (following - zero) / (zero - centre))
    return torch.tensor(values, dtype=torch.float64)


def wide_classifier(
    regions: Sequence[Interval], *, first: float = 1.0, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of theorem 3.3.2: s - 1 units classify s regions of alternating class.

    As in the proof, with kinks at the centres; the values there may grow from region to region
    without a bound, which ``alternating`` avoids.

    Args:
        regions: Start and end of each, in rising order.
        first: Value at the centre of the first; its sign is the class.
        leak: Slope of the leaky ReLU below zero.
    """
    centres = torch.tensor([(low + high) / 2 for low, high in regions], dtype=torch.float64)
    return through(centres, heights(regions, first=first), leak=leak)


def alternating(
    zeros: Sequence[float], *, start: float, first: float = 1.0, leak: float = 0.0
) -> nn.Sequential:
    """Return the zigzag that changes sign at every one of ``zeros``, one unit for each.

    It has kinks at ``start`` and half way between zeros, so that all its slopes are 1 - leak, up or
    down: with a ReLU and integers every weight is exact.

    Args:
        zeros: Where it changes sign, in rising order; at least one.
        start: Where it begins, left of the first zero.
        first: Sign at the start, 1 or -1.
        leak: Slope of the leaky ReLU below zero.
    """
    kinks = [start, *((a + b) / 2 for a, b in pairwise(zeros))]
    slopes = [-first * (-1) ** k for k in range(len(zeros))]
    jumps = [slopes[0] - leak * slopes[-1], *(b - a for a, b in pairwise(slopes))]
    leaked = leak * sum(jump * (start - kink) for jump, kink in zip(jumps, kinks, strict=True))
    offset = first * (1 - leak) * (zeros[0] - start) - leaked
    into = linear(
        torch.ones(len(kinks), 1, dtype=torch.float64), -torch.tensor(kinks, dtype=torch.float64)
    )
    out = linear(
        torch.tensor([jumps], dtype=torch.float64), torch.tensor([offset], dtype=torch.float64)
    )
    return nn.Sequential(into, activation(leak), out).eval()


def deep_classifier(
    width: int, depth: int, *, low: float = 0.0, high: float = 1.0, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of theorem 3.3.3: it changes sign w^l times on [low, high].

    The interval counts as [0, w^l]. Each hidden layer folds it into ``width`` pieces of slope 1 or
    -1, one upon the other, until [0, 1] is left; the one number between two layers is multiplied
    into the weights of the next, so that all hidden layers are ``width`` wide. With a ReLU all
    weights but the first are integers or halves.

    Args:
        width: Units of each hidden layer.
        depth: Number of hidden layers.
        low: Start of the interval; the network is negative there.
        high: End of the interval.
        leak: Slope of the leaky ReLU below zero.
    """
    checks.at_least(1, width=width, depth=depth)
    pieces = [float(width**k) for k in reversed(range(depth))]  # how long after each fold
    folds = [_weights(_fold(width, piece, leak)) for piece in pieces]
    scale = width**depth / (high - low)
    into, bias, out, offset = folds[0]
    modules: list[nn.Module] = [linear(into * scale, bias - into[:, 0] * (low * scale))]
    for into, bias, next_out, next_offset in folds[1:]:
        modules += [activation(leak), linear(into @ out, into @ offset + bias)]
        out, offset = next_out, next_offset
    return nn.Sequential(*modules, activation(leak), linear(out, offset - 0.5)).eval()


def _fold(width: int, piece: float, leak: float) -> nn.Sequential:
    """Return the wave (A.21): ``width`` pieces, each as high as it is long."""
    corners = torch.arange(width + 1, dtype=torch.float64)
    return through(corners * piece, (corners % 2) * piece, leak=leak)


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
    if not 0 <= leak < 1:
        raise ValueError(
            f"leak must be at least 0 and below 1, found {leak}: 0 is a ReLU, 1 is linear."
        )
    return nn.LeakyReLU(leak) if leak else nn.ReLU()


def _leaky(x: Tensor, leak: float) -> Tensor:
    return torch.maximum(x, leak * x)


def _weights(model: nn.Sequential) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return weight and bias of both layers of a network with one hidden layer."""
    into, _, out = model
    assert isinstance(into, nn.Linear)
    assert isinstance(out, nn.Linear)
    return into.weight.detach(), into.bias.detach(), out.weight.detach(), out.bias.detach()
