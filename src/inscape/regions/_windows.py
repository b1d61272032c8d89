"""Ever larger windows around a centre, each covered from side to side, until the time is over."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import TypeVar

from inscape._core.deadline import NEVER, Deadline
from inscape._core.pieces.plane.budget import Ending, SpentError

C = TypeVar("C")
R = TypeVar("R")

#: Side of the first window, relative to what was asked for.
FIRST = 2.0**-10

#: A window is at most so many times as wide as the one before it, which tells how long it takes.
MOST = 16.0

#: Windows that are wider by less than this are not worth their time.
LEAST = 1.1

#: Fraction of the time that is left for which the next window is chosen.
USED = 0.75


@dataclass(eq=False)
class _Pace:
    """What the last window took: all of it, and what followed the cutting."""

    side: float
    seconds: float
    after: float

    def growth(self, deadline: Deadline) -> float:
        """Return how many times as wide a window the time is going to do for."""
        if deadline.is_never:
            return MOST
        return min(MOST, sqrt(max(0.0, USED * deadline.left()) / max(self.seconds, 1e-9)))

    def cutting(self, growth: float, deadline: Deadline) -> Deadline:
        """Return when the cutting has to end, so that there is time for what follows it."""
        if deadline.is_never:
            return deadline
        later = min(self.after * growth**2, 0.5 * max(0.0, deadline.left()))
        return Deadline(deadline.until - later, deadline.clock)


def windows(
    cut: Callable[[float, Deadline], C], finish: Callable[[C], R], deadline: Deadline
) -> Iterator[tuple[R, Ending]]:
    """Yield what is found in ever larger windows, with what ended them.

    ``cut(side, deadline)`` covers a window of that side, relative to what was asked for, or raises
    ``SpentError``; ``finish`` makes a result of it. The first window is tiny, and has all the time
    that it needs; each other is chosen by what the one before it took.
    """
    side, growth, spent = FIRST, MOST, SpentError("seconds")
    pace: _Pace | None = None
    while True:
        begin = deadline.clock()
        try:
            found = cut(side, NEVER if pace is None else pace.cutting(growth, deadline))
        except SpentError as error:
            if pace is None:
                raise
            spent, growth = error, sqrt(growth)
        else:
            middle, result = deadline.clock(), finish(found)
            end = deadline.clock()
            pace, growth = _Pace(side, end - begin, end - middle), MOST
            yield result, "complete" if side == 1.0 else "seconds"
            if side == 1.0:
                return
        growth = min(growth, pace.growth(deadline))
        if growth < LEAST:
            yield result, spent.budget
            return
        side = min(1.0, pace.side * growth)
