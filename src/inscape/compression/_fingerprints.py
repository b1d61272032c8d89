"""Activation patterns as hashes, and local maps as a few numbers that tell them apart."""

from dataclasses import dataclass
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
#: Numbers that stand for the slopes of a map.
NUMBERS = 3
#: Numbers nearer than this fraction of the largest are equal.
SAME = 1e-10
#: Rounding of a sum, as a fraction of the sizes of its terms: some thousand machine epsilons.
ROUNDING = 2.0**-42


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


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """A few numbers for the local map at each point, equal for equal maps up to their rounding."""

    values: Float64[Tensor, "n k"]
    rounding: Float64[Tensor, "n k"]

    def __getitem__(self, rows: Int64[Tensor, " m"]) -> "Fingerprints":
        """Return those of some points."""
        return Fingerprints(self.values[rows], self.rounding[rows])

    @classmethod
    def joined(cls, parts: "list[Fingerprints]") -> "Fingerprints":
        """Return those of several batches as one."""
        values, rounding = zip(*((part.values, part.rounding) for part in parts), strict=True)
        return cls(torch.cat(values), torch.cat(rounding))


def map_fingerprints(net: Piecewise, x: Float64[Tensor, "n *d"], seed: int) -> Fingerprints:
    """Return random linear functions of the local map at each point: equal for equal maps.

    One backward pass: a random sum of the rows of the Jacobian, projected, and in the last column
    that sum of the intercepts. Different maps differ with probability 1. An intercept is the
    difference of an output and of the slopes times the point, whose rounding grows with the point.
    """
    draw = generator(seed)
    f, width = differentiable(net), x[0].numel()
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        y = f(leaf)
        y = y.reshape(len(y), -1)
        weights = torch.randn(y.shape[1], generator=draw, dtype=torch.float64)
        directions = torch.randn(width, NUMBERS, generator=draw, dtype=torch.float64)
        vectors = weights.expand(len(x), 1, -1)
        products = finished(vjps(y, get_gradient_edge(leaf), vectors=vectors))
        slopes = stacked(products, (len(x), 1, width), leaf)[:, 0].detach()
    terms = slopes * x.flatten(1)
    constants = y.detach() @ weights - terms.sum(1)
    sizes = y.detach().abs() @ weights.abs() + terms.abs().sum(1)
    values = torch.cat([slopes @ directions, constants[:, None]], 1)
    largest = torch.cat([slopes.abs() @ directions.abs(), sizes[:, None]], 1)
    return Fingerprints(values, ROUNDING * largest)


def distinct_maps(fingerprints: Fingerprints, regions: Int64[Tensor, " n"]) -> Int64[Tensor, " n"]:
    """Return the number of each point's map: one for each region, and regions may share one.

    The map of a region is that at its point whose intercept has been rounded least.
    """
    order = np.lexsort((fingerprints.rounding[:, -1].numpy(), regions.numpy()))
    _, first = np.unique(regions.numpy()[order], return_index=True)
    groups = grouped(fingerprints[torch.from_numpy(order[first])])
    return in_order_met(groups[regions].tolist())


def grouped(fingerprints: Fingerprints) -> Int64[Tensor, " n"]:
    """Return the number of each row's group: rows that are equal in each number, up to rounding."""
    labels = np.zeros(len(fingerprints.values), dtype=np.int64)
    columns = zip(fingerprints.values.numpy().T, fingerprints.rounding.numpy().T, strict=True)
    for column, rounding in columns:
        known = SAME * (np.abs(column) - rounding).max(initial=0.0)
        order = np.lexsort((column, labels))
        width = rounding[order]
        width = np.maximum(known, np.maximum(width, np.roll(width, 1)))
        begins = np.diff(labels[order], prepend=-1) != 0
        begins |= np.diff(column[order], prepend=-np.inf) > width
        labels[order] = np.cumsum(begins) - 1
    return in_order_met(labels.tolist())


def in_order_met(keys: "list[bytes] | list[int]") -> Int64[Tensor, " n"]:
    """Number keys in the order in which they are met."""
    known: dict[bytes | int, int] = {}
    return torch.tensor([known.setdefault(key, len(known)) for key in keys])
