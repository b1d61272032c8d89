"""Coefficients of the pre-activations of a layer, affine on every face of a plane."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.piecewise.graph.affine_maps import ROWS, AffineMap, MatrixColumns
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.planes import coefficient_kernels as sums
from inscape.piecewise.planes.patterns import PatternHistory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Patterns = npt.NDArray[np.integer[Any]]
Words = npt.NDArray[np.uint64]

#: Bytes of activations that the graph may hold at a time.
MEMORY = 2**26

#: Bytes that the next layer's coefficients on all faces may take.
MOST_MEMORY = 2**31

#: Bytes of lists of columns that are held at a time.
HELD = 2**21

#: Fewer functions than these are taken one by one.
FEW = 16

#: Faces are evaluated in multiples of this, so that each is bit for bit the same in any batch.
EIGHT = 8

#: Where fewer faces than these fit into the memory, each goes through the graph alone.
MANY = 32


@runtime_checkable
class Coefficients(Protocol):
    """Coefficients (x, y, constant) of the pre-activations of an operation, on every face.

    A fourth row holds the squares of the summands, from which the rounding error is estimated.
    """

    def size(self, at: int) -> int:
        """Return the number of pre-activations of operation ``at``; after the last, of outputs."""

    def coefficients(self, at: int, faces: Ints, out: Floats) -> None:
        """Write the coefficients of the pre-activations of operation ``at`` on these faces."""

    def slopes(self, at: int) -> Floats:
        """Return the slope below zero of every unit of operation ``at``."""

    def reached(self, at: int) -> Iterator[None]:
        """Prepare for the faces before operation ``at``, in small steps."""

    def begun(self, at: int, faces: int) -> None:
        """Allocate for the faces that operation ``at`` is going to cut."""

    def passed(self, at: int, faces: Ints, coef: Floats, on: Words, over: Words) -> None:
        """Receive pre-activations of operation ``at`` on some faces, and units on and crossing."""

    def passed_maxima(self, at: int, faces: Ints, coef: Floats, pattern: Patterns) -> None:
        """Receive pre-activations of operation ``at`` on some faces, and the windows' pattern."""

    def finished(self, at: int, start: Ints, unit: Ints, change: Floats) -> Iterator[None]:
        """Receive the units that cross each face, and how their states change the output.

        What the next layer needs is computed in small steps.
        """


class NearbyPoints:
    """Points near a window, at which the sizes of the pre-activations are measured.

    So a small window far from zero is not taken for a precise one.
    """

    def __init__(self, rows: Float64[Tensor, "m *d"]) -> None:
        self.rows, self.squares = rows, list[Floats]()

    def measured(self, net: Piecewise) -> Iterator[None]:
        """Evaluate the graph at the points, once."""
        if self.squares:
            return
        squares: list[Floats] = []
        for functions in net.in_turn(self.rows):
            if functions is not None:
                squares.append(functions.square().amax(0).numpy())
            yield
        self.squares = squares


class GraphCoefficients:
    """Coefficients from the exported graph itself, run with the pattern of each face."""

    def __init__(
        self,
        net: Piecewise,
        points: Float64[Tensor, "3 *d"],
        near: NearbyPoints,
        history: PatternHistory,
    ) -> None:
        self.net, self.points, self.history = net, points, history
        self._near = near
        self._rows = self._whole = 1

    def measured(self) -> Iterator[None]:
        """Find the numbers and sizes of all functions at the points nearby."""
        yield from self._near.measured(self.net)
        largest = max(map(len, self._near.squares))
        rows = max(1, MEMORY // (8 * 3 * (4 * largest + self.net.inputs)))
        rows = rows if rows >= MANY else 1
        self._whole = min(EIGHT, rows)
        self._rows = rows // self._whole * self._whole

    def squares(self, at: int) -> Floats:
        """Return the largest squares of an operation's pre-activations at the points nearby."""
        return self._near.squares[at]

    def size(self, at: int) -> int:
        """Return the number of pre-activations of operation ``at``; after the last, of outputs."""
        return len(self._near.squares[at])

    def coefficients(self, at: int, faces: Ints, out: Floats) -> None:
        """Evaluate each face's own affine functions at three points that are not on a line."""
        last = at == len(self.net.ops)
        for begin in range(0, len(faces), self._rows):
            part = out[begin : begin + self._rows]
            padded = np.resize(faces[begin : begin + self._rows], self._filled(len(part)))
            x = self.points.repeat(len(padded), *[1] * (self.points.ndim - 1))
            patterns = [
                torch.from_numpy(self.history.pattern(k, padded)).repeat_interleave(3, 0)
                for k in range(at)
            ]
            z = self.net.values(x, patterns) if last else self.net.functions(x, at, patterns)
            three = z.reshape(len(padded), 3, -1)[: len(part)].numpy()
            part[:, 2] = three[:, 0]
            part[:, 0] = three[:, 1] - three[:, 0]
            part[:, 1] = three[:, 2] - three[:, 0]
            part[:, 3] = self.squares(at)

    def _filled(self, faces: int) -> int:
        return -(-faces // self._whole) * self._whole

    def slopes(self, at: int) -> Floats:
        """Return zeros: the graph does not need the slopes."""
        return np.zeros(self.size(at))

    def reached(self, at: int) -> Iterator[None]:
        """Do nothing: the graph is run anew for every face."""
        yield from ()

    def begun(self, at: int, faces: int) -> None:
        """Do nothing: the graph is run anew for every face."""

    def passed(self, at: int, faces: Ints, coef: Floats, on: Words, over: Words) -> None:
        """Do nothing: the next layer runs the graph again."""

    def passed_maxima(self, at: int, faces: Ints, coef: Floats, pattern: Patterns) -> None:
        """Do nothing: the next layer runs the graph again."""

    def finished(self, at: int, start: Ints, unit: Ints, change: Floats) -> Iterator[None]:
        """Do nothing: the next layer runs the graph again."""
        yield from ()


class _Lists(NamedTuple):
    """Buffers for the columns that are added on a block of faces."""

    begin: Ints
    column: Ints
    weight: Floats


def _lists(faces: int, longest: int) -> _Lists:
    """Return buffers for as many faces as may be held, with lists up to a length."""
    block = max(1, min(faces, HELD // (8 + 40 * longest)))
    room = block * longest
    return _Lists(np.empty(block + 1, np.int64), np.empty(room, np.int64), np.empty((room, 4)))


def _blocks(faces: int, lists: _Lists) -> list[slice]:
    """Return the blocks of some faces that there is room for."""
    size = len(lists.begin) - 1
    return [slice(begin, min(begin + size, faces)) for begin in range(0, faces, size)]


class ChainCoefficients:
    """Coefficients of a chain of affine maps, by updates of low rank.

    Faces of one parent differ by the units that cross the parent. So the next affine map is taken
    once for the parent, with these units in state 0, and a column of its matrix is added for each
    unit in another state.
    """

    def __init__(
        self,
        steps: Sequence[AffineMap],
        net: Piecewise,
        graph: GraphCoefficients,
        memory: int,
    ) -> None:
        self.steps, self.net, self.history = steps, net, graph.history
        self._graph = graph
        self._memory = min(memory // 4, MOST_MEMORY)
        self._first = graph.size(0)
        self._base: Floats | None = np.empty((1, 4, self._first))
        graph.coefficients(0, np.zeros(1, np.int64), self._base)
        self._next: Floats | None = None
        self._lists = (np.zeros(2, np.int64), np.empty(0, np.int64), np.empty((0, 1, 4)))
        self._columns: MatrixColumns | None = None

    def size(self, at: int) -> int:
        """Return the number of pre-activations of operation ``at``; after the last, of outputs."""
        return self.steps[at - 1].size if at else self._first

    def coefficients(self, at: int, faces: Ints, out: Floats) -> None:
        """Add to the parent's coefficients a column for each crossing unit in another state."""
        if at == 0:
            out[:] = self._base
            return
        if self._base is None:
            self._graph.coefficients(at, faces, out)
            return
        history, step = self.history, self.steps[at - 1]
        pattern, parent = history.rows[at - 1], history.origin[at - 1]
        rows = history.ancestor[at - 1][faces]
        by_bits = pattern.dtype == np.uint64
        bits, bytes_ = (pattern, _NO_BYTES) if by_bits else (_NO_BITS, pattern)
        lists = _lists(len(rows), int(np.diff(self._lists[0]).max(initial=0)))
        for block in _blocks(len(rows), lists):
            selected = rows[block]
            sums.chosen(parent, *self._lists, bits, bytes_, selected, *lists)
            self._summed(step, self._base, parent[selected], lists, out[block])

    def _summed(
        self, step: AffineMap, base: Floats, source: Ints, lists: _Lists, out: Floats
    ) -> None:
        columns = self._columns
        if columns is None:
            assert step.dense is not None
            sums.summed(base, source, *lists, step.dense, out)
            return
        if columns.whole is not None:
            slot = columns.slot[lists.column[: lists.begin[len(source)]]]
            sums.summed(base, source, lists.begin, slot, lists.weight, columns.whole, out)
            return
        sparse = (columns.slot, columns.start, columns.index, columns.value)
        sums.summed_sparsely(base, source, *lists, *sparse, out)

    def slopes(self, at: int) -> Floats:
        """Return the slope below zero of every unit of operation ``at``."""
        return self.steps[at].slopes

    def reached(self, at: int) -> Iterator[None]:
        """Do nothing: the layer before has computed what is needed."""
        yield from ()

    def begun(self, at: int, faces: int) -> None:
        """Allocate the next layer on the faces that operation ``at`` is going to cut.

        Where that would take too much memory, the next layer runs the graph for every face.
        """
        size = self.steps[at].size
        fits = 32 * faces * size <= self._memory
        self._next = np.empty((faces, 4, size)) if fits else None

    def passed(self, at: int, faces: Ints, coef: Floats, on: Words, over: Words) -> None:
        """Apply the next affine map to the activations with crossing units off."""
        if self._next is None:
            return
        step, following = self.steps[at], self._next[faces[0] : faces[-1] + 1]  # faces are in a row
        if step.dense is None or step.size < FEW:
            sums.activated(coef, on, over, step.slopes)
            self._mapped(step, coef, following)
            return
        base = np.zeros((1, 4, step.size))
        base[0, 2], base[0, 3] = step.bias, step.bias**2
        source, lists = np.zeros(len(faces), np.int64), _lists(len(faces), step.units)
        for block in _blocks(len(faces), lists):
            sums.passing(coef[block], on[block], over[block], step.slopes, *lists)
            sums.summed(base, source[block], *lists, step.dense, following[block])

    def _mapped(self, step: AffineMap, out: Floats, following: Floats) -> None:
        """Apply the next affine map to the activations of an operation."""
        if step.dense is not None:
            sums.narrowed(out, step.dense, step.bias, following)
            return
        product = step.linear(out[:, :3].reshape(-1, out.shape[2])).reshape(len(out), 3, -1)
        following[:, :3] = product
        following[:, 2] += step.bias
        following[:, 3] = step.squares(np.ascontiguousarray(out[:, 3])) + step.bias**2

    def passed_maxima(self, at: int, faces: Ints, coef: Floats, pattern: Patterns) -> None:
        """Apply the next affine map to the maxima of the windows."""
        if self._next is None:
            return
        op = self.net.ops[at]
        assert op.windows is not None
        windows = op.windows.numpy()
        chosen = windows[np.arange(len(windows)), pattern]
        out = np.take_along_axis(coef, chosen[:, None, :], 2)
        out[:, :3] *= op.sign
        self._mapped(self.steps[at], out, self._next[faces[0] : faces[-1] + 1])

    def finished(self, at: int, start: Ints, unit: Ints, change: Floats) -> Iterator[None]:
        """Go on to the next layer."""
        self._base, self._next = self._next, None
        if self._base is None:
            return
        self._lists = (start, unit, np.ascontiguousarray(change))
        self._columns = None
        if self.steps[at].dense is None:
            self._columns = yield from self._listed(at, np.unique(unit))
            self._base = None if self._columns is None else self._base

    def _listed(self, at: int, units: Ints) -> Generator[None, None, MatrixColumns | None]:
        """Return the columns of some units; None where the graph is cheaper, or there is no room.

        A few faces go through the graph faster than many columns.
        """
        if ROWS * (at + 1) * max(self.history.faces, EIGHT) <= len(units):
            return None
        return (yield from self.steps[at].columns(units, self._memory))


_NO_BITS, _NO_BYTES = np.empty((0, 1), np.uint64), np.empty((0, 1), np.uint8)
