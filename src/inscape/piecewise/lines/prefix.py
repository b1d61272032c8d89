"""Cut segments window by window, each exact through all layers: a prefix is always exact."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from inscape._core.anytime import stoppable
from inscape.errors import UnsupportedModelError
from inscape.piecewise.lines.evaluation import SegmentEvaluation
from inscape.piecewise.lines.sweep import Knots, SegmentSweep, SweptSegments
from inscape.runtime.deadline import NEVER, Clock, Deadline

R = TypeVar("R")

#: Seconds for a window where there is a time limit.
STEP = 0.25

#: Rows that are worth a longer time, since some of each batch are no knots.
WORTH = 16

#: How often the number of rows is doubled at most.
DOUBLINGS = 20

#: Rows of a batch for one piece of one segment: two values, a derivative, and zero.
ONE_PIECE = 4

#: One in so many pieces of a window is checked against the network itself.
ASKED = 64

#: Where inside a piece it is checked, as a fraction.
INSIDE = 0.381966


@dataclass(eq=False)
class _Pace:
    """The size of the next window, estimated from the windows before it."""

    most: int
    per_row: float | None = None
    pieces: int = 0
    length: float = 0.0
    stretch: float = 1.0
    windows: int = 0

    def rows(self, deadline: Deadline) -> int:
        """Return how many rows the next batch may have.

        Where the caller may stop, by the number of batches alone: what the k-th of them finds must
        not depend on the load of the machine.
        """
        if stoppable():
            return min(
                self.most, ONE_PIECE if not self.windows else WORTH * 2 ** (self.windows - 1)
            )
        if deadline.is_never:
            return self.most
        if self.per_row is None:
            return ONE_PIECE
        rows = max(float(WORTH), STEP / self.per_row)
        return int(max(ONE_PIECE, min(self.most, rows, deadline.left() / self.per_row)))

    def reach(self, rows: int) -> float:
        """Return how many segments, or which fraction of one, are likely to fill so many rows."""
        if not self.pieces:
            return max(1.0, rows / 8)
        return self.stretch * rows / (2 * self.pieces / self.length + 1)

    def went(self, swept: SweptSegments, length: float, seconds: float) -> None:
        """Record the size and time of a window."""
        self.per_row = seconds / (len(swept.knots.t) + len(swept.slopes) + 1)
        self.pieces, self.length = self.pieces + len(swept.slopes), self.length + length
        self.stretch = 1.0
        self.windows = min(self.windows + 1, DOUBLINGS)


def windows(
    rows: SegmentEvaluation, narrow: float, deadline: Deadline = NEVER
) -> Iterator[SweptSegments | None]:
    """Yield parts of the segments, one after the other, and None after each operation of one.

    A part ends at a knot, or where its segment does. How much goes into one depends on the time
    that is left; where the caller may stop, it grows.
    """
    sweep, pace, segment, t = SegmentSweep(rows, narrow), _Pace(rows.most), 0, 0.0
    while segment < len(rows.a):
        most = pace.rows(deadline)
        knots = _window(len(rows.a), segment, t, pace.reach(most), most)
        pieces = max(1, (most - knots.groups - 1) // 2)
        watch = _Stopwatch(deadline.clock)
        swept = _until_a_knot((yield from watch.timed(sweep.steps(knots, pieces))), knots)
        if swept is None:
            pace.stretch *= 4.0
            continue
        _refuse_curved(swept, rows)
        last, end = int(swept.knots.segment[-1]), float(swept.knots.t[-1])
        pace.went(swept, last + end - segment - t, watch.seconds)
        yield swept
        segment, t = (last, end) if end < 1.0 else (last + 1, 0.0)


class _Stopwatch:
    """Measures how long a generator takes, without the time that passes between its steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.seconds = clock, 0.0

    def timed(self, steps: Generator[None, None, R]) -> Generator[None, None, R]:
        """Run the steps, and return their result."""
        while True:
            begin = self._clock()
            try:
                next(steps)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                self.seconds += self._clock() - begin
            yield


def _window(segments: int, segment: int, t: float, reach: float, rows: int) -> Knots:
    """Return the ends of the segments, or of the part of one, that a window is begun with."""
    if t + reach < 1.0:
        return Knots(torch.full((2,), segment), torch.tensor([t, t + reach], dtype=torch.float64))
    count = max(1, min(segments - segment, int(t + reach), (rows - 1) // 3))
    numbers = torch.arange(segment, segment + count).repeat_interleave(2)
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(count)
    ends[0] = t
    return Knots(numbers, ends)


def _until_a_knot(swept: SweptSegments, asked: Knots) -> SweptSegments | None:
    """Leave out a last piece that ends inside a segment without a knot; None if it is the only."""
    end = float(swept.knots.t[-1])
    if end == 1.0 or end != float(asked.t[-1]):
        return swept
    if len(swept.slopes) == 1:
        return None
    knots = Knots(swept.knots.segment[:-1], swept.knots.t[:-1])
    return SweptSegments(knots, swept.values[:-1], swept.slopes[:-1])


def joined(parts: Sequence[SweptSegments]) -> dict[str, Tensor]:
    """Return t, offsets, values and slopes of parts that follow one another."""
    t, segment, values = [], [], []
    last = (-1, 0.0)
    for part in parts:
        knots = part.knots
        again = int((int(knots.segment[0]), float(knots.t[0])) == last)  # it ended the part before
        t.append(knots.t[again:])
        segment.append(knots.segment[again:])
        values.append(part.values[again:])
        last = (int(knots.segment[-1]), float(knots.t[-1]))
    counts = torch.cat(segment).bincount()
    return {
        "t": torch.cat(t),
        "offsets": torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]),
        "values": torch.cat(values),
        "slopes": torch.cat([part.slopes for part in parts]),
    }


def cut_graph(rows: SegmentEvaluation, narrow: float) -> dict[str, Tensor]:
    """Return t, offsets, values and slopes of all segments."""
    return joined([part for part in windows(rows, narrow) if part is not None])


def _refuse_curved(swept: SweptSegments, rows: SegmentEvaluation) -> None:
    """Check slopes against values, and some against the network, to catch misread operations."""
    knots, left = swept.knots, swept.knots.left
    widths = (knots.t[left + 1] - knots.t[left])[:, None]
    rise = swept.slopes * widths
    off = (swept.values[left + 1] - swept.values[left] - rise).abs().max()
    sample = sampled_pieces(knots.segment[left], min(ASKED, len(left)))
    inside = knots.t[left[sample]] + INSIDE * widths[sample, 0]
    asked = rows.values(knots.segment[left[sample]], inside)
    off = torch.maximum(
        off, (asked - swept.values[left[sample]] - INSIDE * rise[sample]).abs().max()
    )
    refuse_off(float(off), float(swept.values.abs().max()))


def sampled_pieces(segment: Int64[Tensor, " pieces"], step: int) -> Int64[Tensor, " m"]:
    """Return one in ``step`` pieces and the last of each segment, which shows what was lost."""
    last = torch.cat([segment.diff() != 0, torch.ones(1, dtype=torch.bool)])
    last[(len(last) - 1) % step :: step] = True
    return torch.nonzero(last)[:, 0]


def refuse_off(off: float, largest: float) -> None:
    """Refuse values that differ by more than rounding can explain."""
    if not off <= (1 + largest) * float(np.finfo(np.float64).eps) ** 0.5:
        raise UnsupportedModelError(
            "the network must be linear between its knots, but it is not: a value is off by "
            f"{off:.2g}. Where linear regions are narrower than rounding, take a shorter line, "
            "else ask for an estimate."
        )
