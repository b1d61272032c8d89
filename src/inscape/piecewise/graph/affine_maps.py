"""The affine maps between the piecewise-linear operations of a chain, dense or by columns."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, fx

from inscape._core.inference import no_grad
from inscape.piecewise.graph.matrix_chain import LARGEST, is_chain, plain_weight, slopes_of
from inscape.piecewise.graph.network import Piecewise

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Rows that go through the graph at a time.
ROWS = 96

#: Batches are padded to multiples of this: a product rounds the rows of a small batch differently.
WHOLE = 24

#: Matrices with a greater fraction of nonzero entries are kept dense.
FULL = 1 / 8

#: Columns from which the fraction of nonzero entries is estimated.
PROBES = 16

#: No limit on bytes.
ENDLESS = float("inf")


@dataclass(frozen=True, eq=False, kw_only=True)
class MatrixColumns:
    """Selected columns of a matrix: that of unit j is number ``slot[j]``.

    Sparse ones are those from ``start[slot[j]]`` on; ``whole`` has others as its rows.
    """

    slot: Ints
    start: Ints
    index: Ints
    value: Floats
    whole: Floats | None


class AffineMap:
    """The affine map from the output of one piecewise-linear operation to the input of the next.

    ``dense`` is its transposed matrix where that is dense and was built; otherwise the graph itself
    is run.
    """

    def __init__(self, net: Piecewise, at: int) -> None:
        self._net, self._at = net, at
        self._shape = tuple(int(n) for n in net.ops[at].node.meta["val"].shape[1:])
        op = net.ops[at]
        self.units = prod(self._shape)
        self.slopes = slopes_of(net, at) if op.slope is not None else np.zeros(self.units)
        self.bias = self._run(np.zeros((WHOLE, self.units)))[0]
        self.size = len(self.bias)
        self._signs = np.random.default_rng(0).choice([-1.0, 1.0], (2, self.units))
        probe = np.random.default_rng(1).standard_normal((1, self.units))
        self._is_same = self.size == self.units and np.array_equal(self._some(probe), probe)
        self.dense: Floats | None = None

    def prepared(self, room: float) -> Iterator[None]:
        """Build the matrix in small steps, where it fits into ``room`` bytes."""
        fits = self._net.ops[self._at].windows is None and 8 * self.units * self.size <= room
        if fits:
            self.dense = yield from self._matrix(room)

    def _matrix(self, room: float) -> Generator[None, None, Floats | None]:
        """Return the transposed matrix; None where it is sparse or too costly to build."""
        net, at = self._net, self._at
        last = at + 1 == len(net.ops)
        if not last and net.ops[at + 1].slope is None:
            return None
        end: Any = net.program.output if last else net.ops[at + 1].node.args[0]
        weight = plain_weight(net, net.ops[at].node, end)
        if weight is not None:
            full = int(weight.count_nonzero()) > FULL * weight.numel()
            return np.ascontiguousarray(weight.T.numpy()) if full else None
        if self.units * self.size > LARGEST:
            return None
        units = np.arange(self.units)
        if self._density(units) <= FULL:
            return None
        columns = yield from self.columns(units, room)
        return None if columns is None else columns.whole

    def linear(self, rows: Floats) -> Floats:
        """Return the matrix times each row, bit for bit the same in every batch."""
        parts = [self._some(rows[begin : begin + ROWS]) for begin in range(0, len(rows), ROWS)]
        return np.concatenate(parts)

    def squares(self, rows: Floats) -> Floats:
        """Return an estimate of the squares of the matrix times each row.

        Two random sign vectors are averaged (Hutchinson's estimator): the expected square of a sum
        of numbers with random signs is the sum of their squares.
        """
        roots = np.sqrt(rows)
        both = self.linear(np.concatenate([roots * signs for signs in self._signs])) ** 2
        return (both[: len(rows)] + both[len(rows) :]) / 2

    def columns(self, units: Ints, room: float) -> Generator[None, None, MatrixColumns | None]:
        """Return the columns of given units, or None where they exceed ``room`` bytes."""
        slot, start = np.zeros(self.units, np.int64), [0]
        slot[units] = np.arange(len(units))
        if self._is_same:
            return MatrixColumns(
                slot=slot, start=np.arange(len(units) + 1), index=units,
                value=np.ones(len(units)), whole=None,
            )  # fmt: skip
        index, value = [np.empty(0, np.int64)], [np.empty(0)]
        is_full = self._density(units) > FULL
        whole = np.empty((len(units), self.size) if is_full else (0, self.size))
        taken = whole.nbytes
        for begin in range(0, len(units), ROWS):
            if taken > room:
                return None
            yield
            entries = self._columns(units[begin : begin + ROWS])
            if is_full:
                whole[begin : begin + ROWS] = entries
                continue
            at = np.flatnonzero(entries)
            index.append(at % self.size)
            value.append(entries.ravel()[at])
            start.extend((start[-1] + np.cumsum(np.count_nonzero(entries, axis=1))).tolist())
            taken += 16 * len(at)
        return MatrixColumns(
            slot=slot,
            start=np.array(start),
            index=np.concatenate(index),
            value=np.concatenate(value),
            whole=whole if is_full else None,
        )

    def _density(self, units: Ints) -> float:
        """Estimate the fraction of nonzero entries in the columns of given units."""
        if not len(units):
            return 0.0
        probed = self._columns(units[np.linspace(0, len(units) - 1, PROBES).astype(np.int64)])
        return float(np.count_nonzero(probed)) / probed.size

    def _columns(self, units: Ints) -> Floats:
        rows = np.zeros((len(units), self.units))
        rows[np.arange(len(units)), units] = 1.0
        return self._some(rows)

    def _some(self, rows: Floats) -> Floats:
        more = np.zeros((-len(rows) % WHOLE, self.units))
        filled = np.concatenate([rows, more]) if len(more) else rows
        product: Floats = self._run(filled)[: len(rows)] - self.bias
        return product

    @torch.no_grad()
    def _run(self, rows: Floats) -> Floats:
        """Run the graph from this piecewise-linear operation to the next, or to the outputs."""
        net, start = self._net, self._net.ops[self._at].node
        x = torch.from_numpy(rows).reshape(len(rows), *self._shape)
        zeros = x.new_zeros(len(rows), *net.input_shape)
        known: dict[fx.Node, Any] = {start: x, net.program.input: zeros}
        if self._at + 1 == len(net.ops):
            (out,) = net.program.run(known, [net.program.output])
            return _flat(out, len(rows))
        after = net.ops[self._at + 1]
        wanted = list(after.node.all_input_nodes)
        values = dict(zip(wanted, net.program.run(known, wanted), strict=True))
        args = fx.node.map_arg(after.node.args, values.__getitem__)
        kwargs = fx.node.map_arg(after.node.kwargs, values.__getitem__)
        return _flat(after.source(*args, **kwargs), len(rows))


def _flat(values: Tensor, rows: int) -> Floats:
    flat: Floats = values.reshape(len(values), -1).expand(rows, -1).numpy()
    return flat


@no_grad
def affine_steps(
    net: Piecewise, room: float = ENDLESS
) -> Generator[None, None, list[AffineMap] | None]:
    """Return the affine map after each piecewise-linear operation; None if the graph is no chain.

    All matrices together take at most ``room`` bytes; they are built in small steps.
    """
    simple = all(op.slope is not None or op.windows is not None for op in net.ops)
    if not net.ops or not simple or not is_chain(net):
        return None
    steps: list[AffineMap] = []
    for at in range(len(net.ops)):
        steps.append(AffineMap(net, at))
        yield from steps[-1].prepared(room)
        room -= 0 if (dense := steps[-1].dense) is None else dense.nbytes
    return steps
