"""Cut many segments at once through a chain of matrices, each piece from its neighbour."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.piecewise.graph.matrix_chain import MatrixChain
from inscape.piecewise.lines.rounding import NOISE, with_sizes

Array = npt.NDArray[Any]

#: Segments that one thread takes at a time.
BLOCK = 64

#: Coefficients of one chunk of pieces: as many as fit into the cache of a core.
CHUNK = 2**17


@dataclass(frozen=True, eq=False, kw_only=True)
class Leaves:
    """Finished pieces in order: the segment of each, its ends, the values there and the slope."""

    segment: Array
    lo: Array
    hi: Array
    values: Array
    ends: Array
    slopes: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class _Level:
    """One hidden layer: its matrices, and buffers for the pieces of one chunk."""

    columns: Array
    slopes: Array
    weight: Tensor
    size: Tensor
    bias: Array
    rows: int
    state: Array
    hidden: Array
    bases: Array
    parts: tuple[Array, ...]

    @classmethod
    def of(cls, net: MatrixChain, at: int) -> "_Level":
        m, after = len(net.slopes[at]), len(net.biases[at])
        before = net.weights[at - 1] if at else np.zeros((m, 0))
        rows = max(16, CHUNK // (2 * m))
        most = rows * (m + 1)
        return cls(
            columns=np.ascontiguousarray(before.T),
            slopes=net.slopes[at],
            weight=torch.from_numpy(net.weights[at]).T,
            size=torch.from_numpy(net.weights[at]).T.abs(),
            bias=net.biases[at],
            rows=rows,
            state=np.empty((2, m)),
            hidden=np.empty((rows, 2, m)),
            bases=np.empty((rows, 2, after)),
            parts=_room(most, rows * m),
        )

    def onward(self, count: int, scale: Array) -> tuple[Array, Array]:
        """Return the next layer's coefficients at ``count`` pieces, and their rounding error."""
        rows, (m, after) = 2 * count, (self.hidden.shape[2], self.bases.shape[2])
        out = torch.from_numpy(self.bases).view(-1, after)[:rows]
        hidden = torch.from_numpy(self.hidden).view(-1, m)[:rows]
        torch.mm(hidden, self.weight, out=out)
        bases = self.bases[:count]
        bases[:, 0] += self.bias
        reach = torch.mm(torch.from_numpy(scale), self.size).numpy()
        return bases, NOISE * (reach + np.abs(self.bias))


def _room(pieces: int, flips: int) -> tuple[Array, ...]:
    """Return empty buffers (lo, hi, base, flip_at, flip_unit, flip_by, segment)."""
    whole = np.int64
    return (
        np.empty(pieces),
        np.empty(pieces),
        np.empty(pieces, whole),
        np.empty(pieces + 1, whole),
        np.empty(flips, whole),
        np.empty((flips, 2)),
        np.empty(pieces, whole),
    )


class SegmentCutter:
    """Cuts blocks of segments; one for each thread."""

    def __init__(self, net: MatrixChain, narrow: float) -> None:
        self._net, self._narrow = net, narrow
        self._levels = [_Level.of(net, at) for at in range(len(net.slopes))]
        self._last = np.ascontiguousarray(net.weights[-1].T)

    def leaves(self, a: Float64[Tensor, "m *d"], b: Float64[Tensor, "m *d"]) -> Iterator[Leaves]:
        """Yield the pieces of the segments from ``a`` to ``b``, in order, some at a time."""
        n = len(a)
        ends = torch.stack([a, b], 1).flatten(0, 1)
        group = torch.arange(n).repeat_interleave(2)
        functions, sizes = with_sizes(self._net.net, ends, 0, group)
        start, stop = functions.reshape(n, 2, -1).numpy().swapaxes(0, 1)
        bases = np.ascontiguousarray(np.stack([start, stop - start], 1))
        whole = np.arange(n)
        pieces = (
            np.zeros(n),
            np.ones(n),
            whole,
            np.zeros(n + 1, np.int64),
            np.zeros(0, np.int64),
            np.zeros((0, 2)),
            whole,
        )
        noise = NOISE * sizes.numpy()
        yield from self._descend(0, pieces, bases, noise)

    def _descend(
        self, at: int, pieces: tuple[Array, ...], bases: Array, noise: Array
    ) -> Iterator[Leaves]:
        """Cut at one layer after the other, depth first, so that only chunks are in memory."""
        if at == len(self._levels):
            yield self._finished(pieces, bases)
            return
        from inscape.piecewise.lines.kernels import cut_layer

        level, segment = self._levels[at], pieces[6]
        for first in range(0, len(segment), level.rows):
            stop = min(first + level.rows, len(segment))
            seen = slice(segment[first] - segment[0], segment[stop - 1] - segment[0] + 1)
            scale = np.zeros((seen.stop - seen.start, len(level.slopes)))
            size = np.zeros(2, np.int64)
            cut_layer(
                *(first, stop, pieces, bases, level.columns, level.slopes),
                *(noise[seen], scale, self._narrow, level.state, level.hidden),
                (level.parts, size),
            )
            parts = _filled(level.parts, *size.tolist())
            yield from self._descend(at + 1, parts, *level.onward(stop - first, scale))

    def _finished(self, pieces: tuple[Array, ...], bases: Array) -> Leaves:
        from inscape.piecewise.lines.kernels import follow_outputs

        lo, hi, segment = pieces[0].copy(), pieces[1].copy(), pieces[6].copy()
        values, ends, slopes = (np.empty((len(lo), self._last.shape[1])) for _ in range(3))
        follow_outputs(pieces, bases, self._last, values, slopes, ends)
        return Leaves(segment=segment, lo=lo, hi=hi, values=values, ends=ends, slopes=slopes)


def _filled(room: tuple[Array, ...], pieces: int, flips: int) -> tuple[Array, ...]:
    """Return the filled part of the buffers."""
    counts = (pieces, pieces, pieces, pieces + 1, flips, flips, pieces)
    return tuple(array[:count] for array, count in zip(room, counts, strict=True))
