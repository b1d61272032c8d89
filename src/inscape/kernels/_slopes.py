"""Gradients of queries averaged along steps, with as many nodes as the change asks for."""

import math
from functools import cache

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.kernels._between import Places
from inscape.kernels._chain import Average, Network

#: How often the number of nodes may double.
DOUBLINGS = 4

#: Bytes of gradients of queries that are written out at once, beyond those of one query.
BLOCK = 2**24


class Slopes:
    """Gradients of all outputs of some queries, averaged along steps."""

    def __init__(self, network: Network, queries: Tensor, *, exact: bool, tolerance: float) -> None:
        self._network, self._queries = network, queries
        self._exact, self._tolerance = exact, tolerance
        self.nodes = 0

    def along(
        self,
        start: Float64[Tensor, " p"],
        end: Float64[Tensor, " p"],
        change: Float64[Tensor, "q c"],
        size: float,
    ) -> Average:
        """Return the averages along one step.

        Args:
            start: Weights before it.
            end: Weights after it.
            change: How far it moved the outputs.
            size: Largest output.
        """
        step, queries = end - start, self._queries
        if not self._exact:
            zero = queries.new_zeros(len(queries), 1)
            return self._network.average(start, step, queries, Places(t=zero, share=zero + 1))
        edges = self._network.cuts(start, step, queries)
        found: Average | None = None
        error, nodes = math.inf, self._network.nodes
        for _ in range(DOUBLINGS):
            new = self._network.average(start, step, queries, _places(edges, nodes))
            missed = float((new.along() - change).abs().max())
            self.nodes = max(self.nodes, nodes)
            if missed > error / 2 and found is not None:
                break
            found, error = new, missed
            if error <= self._tolerance * max(1.0, size):
                break
            nodes *= 2
        assert found is not None
        return found


def _places(edges: Float64[Tensor, "q e"], nodes: int) -> Places:
    """Return the nodes of Gauss and Legendre on all parts of every query."""
    at, weights = _rule(nodes)
    low, length = edges[:, :-1, None], edges.diff(dim=1)[:, :, None]
    return Places(t=(low + length * at).flatten(1), share=(length * weights).flatten(1))


@cache
def _rule(nodes: int) -> tuple[Float64[Tensor, " m"], Float64[Tensor, " m"]]:
    """Return nodes and weights between 0 and 1."""
    at, weights = np.polynomial.legendre.leggauss(nodes)
    return torch.from_numpy((at + 1) / 2), torch.from_numpy(weights / 2)


def per_block(row: int, memory: int, queries: int) -> int:
    """Return for how many queries, of so many bytes each, gradients are written out at once."""
    return max(1, min(queries, BLOCK // row, memory // row))
