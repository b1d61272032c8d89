"""Cut many segments of the input space at every breakpoint of a network, in float64."""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core.anytime import stoppable
from inscape.functional.jacobians import norm
from inscape.piecewise.graph.matrix_chain import MatrixChain, layers
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.lines.evaluation import ROOM, SegmentEvaluation
from inscape.piecewise.lines.matrix_layers import BLOCK, Leaves, SegmentCutter
from inscape.piecewise.lines.prefix import (
    INSIDE,
    joined,
    refuse_off,
    sampled_pieces,
    windows,
)
from inscape.piecewise.lines.sweep import SweptSegments
from inscape.runtime.deadline import NEVER, Deadline

#: Knots nearer than this fraction of their segment are one: coincident kinks count once.
NARROW = 4000 * float(np.finfo(np.float64).eps)

#: Neighbouring slopes that differ by less than this fraction of the largest values are equal.
EQUAL = 2.0**-40

#: Units on all segments together up to which compiling does not pay.
SMALL = 2**15

#: Chunks of pieces that a thread processes before it checks the time.
LEAVES = 8

#: Pieces in which the result is checked against the network itself.
ASKED = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class CutSegments:
    """Segments from a to b, cut: f((1-t) a + t b) is linear in t between neighbouring knots.

    ``t`` and ``values`` lie flat; segment i owns the knots from ``offsets[i]`` to
    ``offsets[i + 1]``, the first at 0 and the last at 1. ``slopes`` are derivatives by t. Where the
    time ran out, the last segment ends at the last knot that is known, and others are missing.
    """

    t: Float64[Tensor, " knots"]
    offsets: Int64[Tensor, " n_and_one"]
    values: Float64[Tensor, "knots c"]
    slopes: Float64[Tensor, "pieces c"]

    @property
    def covered(self) -> Float64[Tensor, " n"]:
        """Return the t up to which each segment is cut."""
        return self.t[self.offsets[1:] - 1]

    def first(self, pieces: int) -> "CutSegments":
        """Return the first pieces alone."""
        last = int(self.segment[pieces - 1])
        knots = int(self.start[pieces - 1]) + 2
        offsets = torch.cat([self.offsets[: last + 1], torch.tensor([knots])])
        return CutSegments(
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
) -> CutSegments:
    """Return all knots of a network on the segments from ``a`` to ``b``.

    Exact up to rounding: every unit's zero is solved for on the pieces where it is affine, layer
    by layer. A chain of matrices goes from piece to piece by what flips; any other graph, and a
    small task, is evaluated at the knots, layer by layer.
    """
    cutting = cutting_of(net, a, b, memory=memory)
    for _ in cutting.steps(NEVER, watched=False):
        pass
    return cutting.lines()


@runtime_checkable
class Cutting(Protocol):
    """Segments while they are cut."""

    def steps(self, deadline: Deadline, *, watched: bool) -> Iterator[None]:
        """Work in small steps; smaller ones where the time is limited (``watched``)."""

    @property
    def pieces(self) -> int:
        """Return how many pieces are known."""

    @property
    def reached(self) -> float:
        """Return how many segments are cut, and the fraction of the next one."""

    def lines(self) -> CutSegments:
        """Return the pieces that are known: the first ones, none of which will change."""


def cutting_of(
    net: Piecewise, a: Float64[Tensor, "n *d"], b: Float64[Tensor, "n *d"], *, memory: int = ROOM
) -> Cutting:
    """Return the cutting of segments by the method that suits the network."""
    matrices = layers(net)
    if matrices and len(a) * sum(map(len, matrices.slopes)) <= SMALL:
        matrices = None
    rows = SegmentEvaluation(net, a, b, memory)
    return _GraphCutting(rows) if matrices is None else _ChainCutting(matrices, rows)


class _GraphCutting:
    """Segments that are sent through a graph, window by window."""

    def __init__(self, rows: SegmentEvaluation) -> None:
        self._rows, self._parts = rows, list[SweptSegments]()

    def steps(self, deadline: Deadline, *, watched: bool) -> Iterator[None]:
        for part in windows(self._rows, NARROW, deadline):
            if part is not None:
                self._parts.append(part)
            yield

    @property
    def pieces(self) -> int:
        return sum(len(part.slopes) for part in self._parts)

    @property
    def reached(self) -> float:
        if not self._parts:
            return 0.0
        knots = self._parts[-1].knots
        return int(knots.segment[-1]) + float(knots.t[-1])

    def lines(self) -> CutSegments:
        return CutSegments(**joined(self._parts))


class _SegmentBlock:
    """A block of segments through a chain of matrices, with its own cutter until it is done."""

    def __init__(self, leaves: Iterator[Leaves]) -> None:
        self._waiting, self.leaves, self.is_whole = leaves, list[Leaves](), False

    def advance(self, most: int | None) -> None:
        """Take so many more leaves; None takes all."""
        taken = list(islice(self._waiting, most))
        self.leaves += taken
        self.is_whole = most is None or len(taken) < most


class _ChainCutting:
    """Segments through a chain of matrices, block by block; each thread has its own block."""

    def __init__(self, net: MatrixChain, rows: SegmentEvaluation) -> None:
        self._net, self._rows, n = net, rows, len(rows.a)
        self._free: list[SegmentCutter] = []
        self._blocks: list[_SegmentBlock] = []
        self._left = [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)][::-1]

    def steps(self, deadline: Deadline, *, watched: bool) -> Iterator[None]:
        most, threads = LEAVES if watched else None, torch.get_num_threads()
        first = self._next()
        first.advance(1)  # compiles before the threads start
        if threads == 1 or not self._left or stoppable():  # threads would be left between steps
            yield from self._alone(first, most)
            return
        alone = partial(torch.set_num_threads, 1)
        try:
            with ThreadPoolExecutor(threads, initializer=alone) as pool:
                yield from self._in_threads(pool, threads, first, most)
        finally:
            torch.set_num_threads(threads)

    def _next(self) -> _SegmentBlock:
        """Return the next block, with room for it."""
        chosen = self._left.pop()
        cutter = self._free.pop() if self._free else SegmentCutter(self._net, NARROW)
        a, b = self._rows.a[chosen], self._rows.b[chosen]
        block = _SegmentBlock(chain(cutter.leaves(a, b), self._given_back(cutter)))
        self._blocks.append(block)
        return block

    def _given_back(self, cutter: SegmentCutter) -> Iterator[Leaves]:
        """Yield nothing, but free the cutter after all leaves of a block."""
        self._free.append(cutter)
        yield from ()

    def _alone(self, block: _SegmentBlock, most: int | None) -> Iterator[None]:
        while True:
            while not block.is_whole:
                block.advance(most)
                yield
            if not self._left:
                return
            block = self._next()

    def _in_threads(
        self, pool: ThreadPoolExecutor, threads: int, first: _SegmentBlock, most: int | None
    ) -> Iterator[None]:
        waiting = [] if first.is_whole else [first]
        running: dict[Future[None], _SegmentBlock] = {}
        while waiting or running or self._left:
            while len(running) < threads and (waiting or self._left):
                block = waiting.pop() if waiting else self._next()
                running[pool.submit(block.advance, most)] = block
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                block = running.pop(future)
                future.result()
                waiting += [] if block.is_whole else [block]
            yield

    @property
    def pieces(self) -> int:
        leaves = (leaf for block in _until_unfinished(self._blocks) for leaf in block.leaves)
        return sum(len(leaf.lo) for leaf in leaves)

    @property
    def reached(self) -> float:
        return float(BLOCK * sum(block.is_whole for block in self._blocks))

    def lines(self) -> CutSegments:
        cuts = _joined(self._blocks)
        _refuse_curved(cuts, self._rows)
        return cuts


def _until_unfinished(blocks: Sequence[_SegmentBlock]) -> Sequence[_SegmentBlock]:
    """Return the blocks up to the first that is not finished."""
    stop = next((k + 1 for k, block in enumerate(blocks) if not block.is_whole), len(blocks))
    return blocks[:stop]


def _joined(blocks: Sequence[_SegmentBlock]) -> CutSegments:
    """Lay the pieces of all blocks one after the other, up to the first that is not finished."""
    kept = [list(block.leaves) for block in _until_unfinished(blocks)]
    stop = len(kept)
    leaves = [leaf for block in kept for leaf in block]
    firsts = np.repeat(BLOCK * np.arange(stop), [len(block) for block in kept])
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
    return CutSegments(**{name: torch.from_numpy(array) for name, array in arrays.items()})


def _refuse_curved(cuts: CutSegments, rows: SegmentEvaluation) -> None:
    """Check a chain of matrices against the graph in some pieces, to catch misread operations."""
    rise = cuts.slopes * cuts.widths[:, None]
    sample = sampled_pieces(cuts.segment, max(1, len(rise) // ASKED))
    inside = cuts.t[cuts.start[sample]] + INSIDE * cuts.widths[sample]
    expected = cuts.values[cuts.start[sample]] + INSIDE * rise[sample]
    off = float((rows.values(cuts.segment[sample], inside) - expected).abs().max())
    refuse_off(off, float(cuts.values.abs().max()))
