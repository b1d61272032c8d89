"""Activation patterns as hashes, and local maps as a few numbers that tell them apart."""

from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from inscape._core.anytime import finished
from inscape._core.sampling import generator
from inscape.functional.jacobians import stacked, vjps
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.lines.evaluation import differentiable

#: Bytes of a hash: two of 2^30 patterns collide with a probability below 2^-68.
BYTES = 16
#: Numbers that stand for a map.
NUMBERS = 3
#: Numbers nearer than this fraction of the largest are equal.
SAME = 1e-10


def pattern_hashes(net: Piecewise, x: Float64[Tensor, "n *d"]) -> list[bytes]:
    """Return a hash of the activation pattern at each point, by one forward pass."""
    functions = [values for values in net.in_turn(x) if values is not None][: len(net.ops)]
    patterns = [op.pattern(values) for op, values in zip(net.ops, functions, strict=True)]
    digests = [blake2b(digest_size=BYTES) for _ in range(len(x))]
    for op, pattern in zip(net.ops, patterns, strict=True):
        rows = pattern.expand(len(x), -1).contiguous().numpy()
        packed = np.packbits(rows, axis=1) if op.windows is None else rows
        for digest, row in zip(digests, packed, strict=True):
            digest.update(row.tobytes())
    return [digest.digest() for digest in digests]


def map_fingerprints(
    net: Piecewise, x: Float64[Tensor, "n *d"], seed: int
) -> Float64[Tensor, "n k"]:
    """Return random linear functions of the local map at each point: equal for equal maps.

    One backward pass: a random sum of the rows of Jacobian and intercept, projected. Different maps
    differ with probability 1.
    """
    draw = generator(seed)
    f, width = differentiable(net), x[0].numel()
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        y = f(leaf)
        y = y.reshape(len(y), -1)
        weights = torch.randn(y.shape[1], generator=draw, dtype=torch.float64)
        directions = torch.randn(width + 1, NUMBERS, generator=draw, dtype=torch.float64)
        vectors = weights.expand(len(x), 1, -1)
        products = finished(vjps(y, get_gradient_edge(leaf), vectors=vectors))
        slopes = stacked(products, (len(x), 1, width), leaf)[:, 0].detach()
    constants = (y.detach() @ weights) - (slopes * x.flatten(1)).sum(1)
    return slopes @ directions[:-1] + constants[:, None] * directions[-1]


def grouped(fingerprints: Float64[Tensor, "n k"]) -> Int64[Tensor, " n"]:
    """Return the number of each row's group: rows that are equal in each number, up to rounding."""
    values = fingerprints.numpy()
    tolerance = SAME * np.abs(values).max(axis=0, initial=0.0)
    labels = np.zeros(len(values), dtype=np.int64)
    for column, width in zip(values.T, tolerance, strict=True):
        order = np.lexsort((column, labels))
        begins = np.diff(labels[order], prepend=-1) != 0
        begins |= np.diff(column[order], prepend=np.inf) > width
        labels[order] = np.cumsum(begins) - 1
    return in_order_met(labels.tolist())


def in_order_met(keys: "list[bytes] | list[int]") -> Int64[Tensor, " n"]:
    """Number keys in the order in which they are met."""
    known: dict[bytes | int, int] = {}
    return torch.tensor([known.setdefault(key, len(known)) for key in keys])
