"""Cut many segments of the input space at every place where a network bends, in float64."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import local

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core.deadline import NEVER, Deadline
from inscape._core.functional import norm
from inscape._core.pieces.layers import Layers, layers
from inscape._core.pieces.line_graph import ROOM, Rows
from inscape._core.pieces.line_layers import BLOCK, Cutter, Leaves
from inscape._core.pieces.line_prefix import INSIDE, cut_graph, refuse_off
from inscape._core.pieces.piecewise import Piecewise

#: Knots nearer than this share of their segment are one: coincident bends count once.
NARROW = 4000 * float(np.finfo(np.float64).eps)

#: Neighbouring slopes that differ by less than this share of the largest numbers are equal.
EQUAL = 2.0**-40

#: Units on all segments together up to which the compiled way does not pay for being compiled.
SMALL = 2**15

#: Pieces in which the network itself is asked whether it is as straight as it should be.
ASKED = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Lines:
    """Segments from a to b, cut: f((1-t) a + t b) is linear in t between neighbouring knots.

    ``t`` and ``values`` lie flat; segment i owns the knots from ``offsets[i]`` to
    ``offsets[i + 1]``, the first at 0 and the last at 1. ``slopes`` are derivatives by t. Where the
    time did not do, the last segment ends at the last knot that is known, and others are missing.
    """

    t: Float64[Tensor, " knots"]
    offsets: Int64[Tensor, " n_and_one"]
    values: Float64[Tensor, "knots c"]
    slopes: Float64[Tensor, "pieces c"]

    @property
    def covered(self) -> Float64[Tensor, " n"]:
        """Return the t up to which each segment is cut."""
        return self.t[self.offsets[1:] - 1]

    def first(self, pieces: int) -> "Lines":
        """Return the first pieces alone."""
        last = int(self.segment[pieces - 1])
        knots = int(self.start[pieces - 1]) + 2
        offsets = torch.cat([self.offsets[: last + 1], torch.tensor([knots])])
        return Lines(
            t=self.t[:knots],
            offsets=offsets,
            values=self.values[:knots],
            slopes=self.slopes[:pieces],
        )

    @cached_property
    def pieces(self) -> Int64[Tensor, " n"]:
        """Return how many pieces each segment has: cells of constant activation pattern."""
        return self.offsets.diff() - 1

    @cached_property
    def segment(self) -> Int64[Tensor, " pieces"]:
        """Return the segment of each piece."""
        return torch.repeat_interleave(torch.arange(len(self.pieces)), self.pieces)

    @cached_property
    def start(self) -> Int64[Tensor, " pieces"]:
        """Return the knot where each piece starts."""
        return torch.arange(len(self.segment)) + self.segment

    @cached_property
    def widths(self) -> Float64[Tensor, " pieces"]:
        """Return the length of each piece in t."""
        return self.t[self.start + 1] - self.t[self.start]

    @cached_property
    def middles(self) -> Float64[Tensor, " pieces"]:
        """Return the t in the middle of each piece."""
        return (self.t[self.start] + self.t[self.start + 1]) / 2

    @property
    def inner(self) -> Int64[Tensor, " inner"]:
        """Return the pieces that follow another piece of their segment."""
        return torch.nonzero(self.segment.diff() == 0)[:, 0] + 1

    def variation(self) -> Float64[Tensor, " n"]:
        """Return the total variation of f along each segment, exactly."""
        return self.total(norm(self.slopes, dim=1) * self.widths, self.segment)

    def turning(self) -> Float64[Tensor, " n"]:
        """Return the total variation of df/dt along each segment, exactly."""
        inner = self.inner
        jumps = norm(self.slopes[inner] - self.slopes[inner - 1], dim=1)
        return self.total(jumps, self.segment[inner])

    def merged(self) -> Int64[Tensor, " n"]:
        """Return how many pieces are left when neighbours with equal slopes become one."""
        largest = torch.maximum(self.slopes.abs(), self.values[self.start].abs()).amax(1)
        firsts = self.offsets[:-1] - torch.arange(len(self.pieces))
        size = torch.from_numpy(np.maximum.reduceat(largest.numpy(), firsts.numpy()))
        inner = self.inner
        jumps = (self.slopes[inner] - self.slopes[inner - 1]).abs().amax(1)
        differ = (jumps > EQUAL * size[self.segment[inner]]).double()
        return 1 + self.total(differ, self.segment[inner]).long()

    def total(
        self, numbers: Float64[Tensor, " k"], segment: Int64[Tensor, " k"]
    ) -> Float64[Tensor, " n"]:
        """Return the sum of some numbers for each segment."""
        zeros = torch.zeros(len(self.pieces), dtype=torch.float64)
        return zeros.index_add_(0, segment, numbers)


@torch.no_grad()
def lines(
    net: Piecewise,
    a: Float64[Tensor, "n *d"],
    b: Float64[Tensor, "n *d"],
    *,
    memory: int = ROOM,
    deadline: Deadline = NEVER,
) -> Lines:
    """Return all knots of a network on the segments from ``a`` to ``b``, or those in time.

    Exact up to rounding: every unit's zero is solved for on the pieces where it is affine, layer
    by layer. A chain of matrices goes from piece to piece by what flips; any other graph, and a
    small task, is evaluated at the knots, layer by layer.
    """
    chain = layers(net)
    if chain and len(a) * sum(map(len, chain.slopes)) <= SMALL:
        chain = None
    rows = Rows(net, a, b, memory)
    if chain is None:
        return Lines(**cut_graph(rows, NARROW, deadline))
    found = _through_layers(chain, a, b, deadline)
    _refuse_curved(found, rows)
    return found


def _through_layers(net: Layers, a: Tensor, b: Tensor, deadline: Deadline) -> Lines:
    """Cut blocks of segments, each thread with its own room."""
    own, threads = local(), torch.get_num_threads()

    def cut(block: slice) -> tuple[list[Leaves], bool]:
        if not hasattr(own, "cutter"):
            own.cutter = Cutter(net, NARROW)
        return _in_time(own.cutter.leaves(a[block], b[block]), deadline, least=block.start == 0)

    blocks = [slice(first, min(first + BLOCK, len(a))) for first in range(0, len(a), BLOCK)]
    if threads == 1 or len(blocks) == 1:
        return _joined([cut(block) for block in blocks])
    cut(slice(0, 1))  # compiles before the threads start
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return _joined(list(pool.map(cut, blocks)))
    finally:
        torch.set_num_threads(threads)


def _in_time(
    leaves: Iterator[Leaves], deadline: Deadline, *, least: int
) -> tuple[list[Leaves], bool]:
    """Return the leaves that there is time for, at least so many, and whether these are all."""
    taken: list[Leaves] = []
    while len(taken) < least or not deadline.passed():
        leaf = next(leaves, None)
        if leaf is None:
            return taken, True
        taken.append(leaf)
    return taken, False


def _joined(blocks: Sequence[tuple[list[Leaves], bool]]) -> Lines:
    """Lay the pieces of all blocks one after the other, up to the first that is not finished."""
    stop = next((k + 1 for k, (_, is_whole) in enumerate(blocks) if not is_whole), len(blocks))
    leaves = [leaf for block, _ in blocks[:stop] for leaf in block]
    firsts = np.repeat(BLOCK * np.arange(stop), [len(block) for block, _ in blocks[:stop]])
    segment = np.concatenate([f + leaf.segment for f, leaf in zip(firsts, leaves, strict=True)])
    lo, hi, values, ends, slopes = (
        np.concatenate([getattr(leaf, name) for leaf in leaves])
        for name in ("lo", "hi", "values", "ends", "slopes")
    )
    n, start = int(segment[-1]) + 1, np.arange(len(segment)) + segment
    last = np.flatnonzero(np.diff(segment, append=n))
    knots = len(segment) + n
    t, at_knots = np.empty(knots), np.empty((knots, values.shape[1]))
    t[start], at_knots[start] = lo, values
    t[start[last] + 1], at_knots[start[last] + 1] = hi[last], ends[last]
    offsets = np.concatenate([[0], start[last] + 2])
    arrays = {"t": t, "offsets": offsets, "values": at_knots, "slopes": slopes}
    return Lines(**{name: torch.from_numpy(array) for name, array in arrays.items()})


def _refuse_curved(found: Lines, rows: Rows) -> None:
    """Hold a chain of matrices against the graph in some pieces, so that no misread one passes."""
    rise = found.slopes * found.widths[:, None]
    some = torch.arange(len(rise))[:: max(1, len(rise) // ASKED)]
    inside = found.t[found.start[some]] + INSIDE * found.widths[some]
    expected = found.values[found.start[some]] + INSIDE * rise[some]
    off = float((rows.values(found.segment[some], inside) - expected).abs().max())
    refuse_off(off, float(found.values.abs().max()))
