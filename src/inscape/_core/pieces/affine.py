"""The affine maps between the bends of a chain: as matrices, or as columns of one where asked."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, fx

from inscape._core.pieces.layers import LARGEST, is_chain, matrix, slopes_of
from inscape._core.pieces.piecewise import Piecewise

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Rows that go through the graph at a time.
ROWS = 96


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Some columns of a sparse matrix; unit j has those from ``start[slot[j]]`` on."""

    slot: Ints
    start: Ints
    index: Ints
    value: Floats


class Step:
    """The affine map from what comes out of one bend to what the next looks at.

    ``dense`` is its transposed matrix where that is small; else the graph itself is run.
    """

    def __init__(self, net: Piecewise, at: int) -> None:
        self._net, self._at = net, at
        self._shape = tuple(int(n) for n in net.bends[at].node.meta["val"].shape[1:])
        one, last = net.bends[at], at + 1 == len(net.bends)
        self.units = prod(self._shape)
        self.slopes = slopes_of(net, at) if one.slope is not None else np.zeros(self.units)
        self.bias = self._run(np.zeros((1, self.units)))[0]
        self.size = len(self.bias)
        self.dense: Floats | None = None
        self._signs = np.random.default_rng(0).choice([-1.0, 1.0], (2, self.units))
        is_plain = last or net.bends[at + 1].slope is not None
        if is_plain and one.windows is None and self.units * self.size <= LARGEST:
            end: Any = net.program.output if last else net.bends[at + 1].node.args[0]
            weight, _ = matrix(net, one.node, end)
            if np.count_nonzero(weight) > weight.size / 8:
                self.dense = np.ascontiguousarray(weight.T)
                self._dense_squares = self.dense**2

    def linear(self, rows: Floats) -> Floats:
        """Return the matrix times each row."""
        if self.dense is not None:
            return _product(rows, self.dense)
        parts = [
            self._run(rows[begin : begin + ROWS]) - self.bias for begin in range(0, len(rows), ROWS)
        ]
        return np.concatenate(parts)

    def squares(self, rows: Floats) -> Floats:
        """Return the squares of the matrix times each row, or an estimate of that.

        Where the matrix is not at hand, two random choices of signs stand for all: the square of
        a sum of numbers with random signs is on the mean the sum of their squares.
        """
        if self.dense is not None:
            return _product(rows, self._dense_squares)
        roots = np.sqrt(rows)
        one, two = (self.linear(roots * signs) ** 2 for signs in self._signs)
        return (one + two) / 2

    def columns(self, units: Ints) -> Columns | None:
        """Return the columns of some units, sparse; None where the whole matrix is at hand."""
        if self.dense is not None:
            return None
        slot, start = np.zeros(self.units, np.int64), [0]
        slot[units] = np.arange(len(units))
        index, value = [np.empty(0, np.int64)], [np.empty(0)]
        for begin in range(0, len(units), ROWS):
            some = units[begin : begin + ROWS]
            rows = np.zeros((len(some), self.units))
            rows[np.arange(len(some)), some] = 1.0
            found = self._run(rows) - self.bias
            row, where = np.nonzero(found)
            index.append(where)
            value.append(found[row, where])
            counts = np.bincount(row, minlength=len(some))
            start.extend((start[-1] + np.cumsum(counts)).tolist())
        return Columns(
            slot=slot,
            start=np.array(start),
            index=np.concatenate(index),
            value=np.concatenate(value),
        )

    @torch.no_grad()
    def _run(self, rows: Floats) -> Floats:
        """Run the graph from this bend to the next, or to the outputs."""
        net, start = self._net, self._net.bends[self._at].node
        x = torch.from_numpy(rows).reshape(len(rows), *self._shape)
        zeros = x.new_zeros(len(rows), *net.input_shape)
        known: dict[fx.Node, Any] = {start: x, net.program.input: zeros}
        if self._at + 1 == len(net.bends):
            (out,) = net.program.run(known, [net.program.output])
            return _flat(out, len(rows))
        after = net.bends[self._at + 1]
        wanted = list(after.node.all_input_nodes)
        values = dict(zip(wanted, net.program.run(known, wanted), strict=True))
        args = fx.node.map_arg(after.node.args, values.__getitem__)
        kwargs = fx.node.map_arg(after.node.kwargs, values.__getitem__)
        return _flat(after.source(*args, **kwargs), len(rows))


def _product(rows: Floats, matrix: Floats) -> Floats:
    """Return a matrix product by torch, so that it keeps to the number of threads set there."""
    product: Floats = (torch.from_numpy(rows) @ torch.from_numpy(matrix)).numpy()
    return product


def _flat(values: Tensor, rows: int) -> Floats:
    flat: Floats = values.reshape(len(values), -1).expand(rows, -1).numpy()
    return flat


@torch.no_grad()
def affine_steps(net: Piecewise) -> list[Step] | None:
    """Return the affine maps after each bend; None where the graph is no chain of simple bends."""
    simple = all(one.slope is not None or one.windows is not None for one in net.bends)
    if not net.bends or not simple or not is_chain(net):
        return None
    return [Step(net, at) for at in range(len(net.bends))]
