"""Gradients of queries averaged along steps, with as many nodes as the change asks for."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.kernels.path.gradients_between import Places
from inscape.kernels.tangent.linear_chain import Average, Network

#: How often the number of nodes may double.
DOUBLINGS = 4

#: What twice the nodes must leave of the error to be doubled again; at kinks it is about half.
GAIN = 1 / 8

#: Cuts of a step at most where nodes alone do not help: kinks, of any module.
PARTS = 64

#: Kinks of all queries together that such cuts begin with at most.
KNOWN = 256

#: Residual that more parts do not make smaller, relative to the outputs.
ROUNDING = 1e-13

#: Shares of a part within which a kink is near its end, or so near that it is halved instead.
NEAR, SHORT = 0.05, 1e-6

#: Bytes of gradients of queries that are written out at once, beyond those of one query.
BLOCK = 2**24


class Slopes:
    """Gradients of all outputs of some queries, averaged along steps."""

    def __init__(self, network: Network, queries: Tensor, *, exact: bool, tolerance: float) -> None:
        self._network, self._queries = network, queries
        self._exact, self._tolerance = exact, tolerance
        self._at_first = False
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
        goal = max(1.0, size)
        edges = self._network.cuts(start, step, queries)
        found, error = self._doubled(start, step, change, edges, self._tolerance * goal)
        if error <= max(self._tolerance, ROUNDING) * goal:
            return found
        finer = self._cut(start, step, edges, max(self._tolerance, ROUNDING) * goal)
        return finer if float((finer.along() - change).abs().max()) < error else found

    def _doubled(
        self, start: Tensor, step: Tensor, change: Tensor, edges: Tensor, goal: float
    ) -> tuple[Average, float]:
        """Return averages with more nodes as long as these help, and what they miss.

        Where the first nodes were enough for the step before, gradients are made at once.
        """
        found: Average | None = None
        error, nodes = math.inf, self._network.nodes
        for _ in range(DOUBLINGS):
            likely = self._at_first and found is None
            places = replace(_places(edges, nodes), likely=likely)
            new = self._network.average(start, step, self._queries, places)
            missed = float((new.along() - change).abs().max())
            self.nodes = max(self.nodes, nodes)
            helped = missed < error * GAIN
            if missed < error or found is None:
                found, error = new, missed
            if error <= goal or not helped:
                break
            nodes *= 2
        assert found is not None
        self._at_first = error <= goal and nodes == self._network.nodes
        return found, error

    def _cut(self, start: Tensor, step: Tensor, edges: Tensor, goal: float) -> Average:
        """Return averages on parts of the step, the worst of which is cut again and again.

        It begins with the parts between the kinks that are known, of all queries, unless these are
        too many.
        """
        marks = sorted(set(edges.flatten().tolist()))
        marks = marks if len(marks) <= KNOWN else [0.0, 1.0]
        ends = {t: self._end(start, step, t) for t in marks}
        parts = {part: self._missed(start, step, part, ends) for part in pairwise(marks)}
        while len(parts) < len(marks) - 1 + PARTS:
            if float(torch.stack(list(parts.values())).abs().sum(0).max()) <= goal:
                break
            low, high = max(parts, key=lambda part: float(parts[part].abs().max()))
            worst = int(parts.pop((low, high)).abs().argmax())
            between = _corner(low, high, ends, worst)
            ends[between] = self._end(start, step, between)
            for part in ((low, between), (between, high)):
                parts[part] = self._missed(start, step, part, ends)
        places = _places(self._edges((*sorted(low for low, _ in parts), 1.0)), self._network.nodes)
        return self._network.average(start, step, self._queries, places)

    def _missed(
        self,
        start: Tensor,
        step: Tensor,
        part: tuple[float, float],
        ends: dict[float, tuple[Tensor, Tensor]],
    ) -> Float64[Tensor, "q c"]:
        """Return what the nodes on one part of the step miss of the change along it."""
        places = _places(self._edges(part), self._network.nodes)
        inside = self._network.average(start, step, self._queries, places)
        return ends[part[1]][0] - ends[part[0]][0] - inside.along()

    def _end(self, start: Tensor, step: Tensor, t: float) -> tuple[Tensor, Tensor]:
        """Return the outputs at a place of the step, and how fast they change there."""
        at = self._queries.new_full((len(self._queries), 1), t)
        places = Places(t=at, share=torch.ones_like(at))
        slope = self._network.average(start, step, self._queries, places).along()
        return self._network.values(start + t * step, self._queries), slope

    def _edges(self, at: tuple[float, ...]) -> Float64[Tensor, "q e"]:
        return torch.tensor(at, dtype=torch.float64).expand(len(self._queries), -1)


def _corner(low: float, high: float, ends: dict[float, tuple[Tensor, Tensor]], worst: int) -> float:
    """Return where the tangents of an output at both ends of a part meet, or its middle.

    Where that is near an end it is put beyond, so that a kink there has ends on both sides.
    """
    (f0, g0), (f1, g1) = ((v.flatten()[worst].item() for v in ends[t]) for t in (low, high))
    length = high - low
    if g0 == g1:
        return low + length / 2
    share = (f1 - f0 - g1 * length) / (g0 - g1) / length
    if not SHORT < share < 1 - SHORT:
        return low + length / 2
    if share < NEAR:
        share *= 2
    elif share > 1 - NEAR:
        share = 1 - 2 * (1 - share)
    return low + share * length


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
    return max(1, min(queries, BLOCK // row, memory // (2 * row)))  # half is for their average
