"""Growing windows around a centre, each covered completely, until the time is over."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from inscape._core.anytime import stoppable
from inscape.piecewise.planes.budget import Ending, SpentError
from inscape.piecewise.stepping import StepClock

C = TypeVar("C")
R = TypeVar("R")

#: Side of the first window relative to that of the centre's own region, and of what was asked for.
INSIDE, FIRST = 0.5, 2.0**-4

#: Half side below which the first window is not made, relative to what was asked for.
NARROWEST = 2.0**-30

#: A window takes at most so many times as long as the one before it, which tells how long.
MOST = 16.0

#: How many times as many cells the next window has where the caller may stop.
STEADY = 4.0

#: Least seconds of a window, whatever the resolution of the clock.
TICK = 1e-6

#: Windows that are wider by less than this are not worth their time.
LEAST = 1.1

#: Fraction of the time that is left for which the last window is chosen.
USED = 0.8


@dataclass(frozen=True, eq=False)
class _Window:
    """A window that was covered: its side, its cells, and its seconds (some after the cutting)."""

    side: float
    cells: int
    seconds: float
    after: float


@dataclass(eq=False)
class Forecast:
    """A forecast of the time of windows, from those before them.

    ``radii`` are the half sides, relative to what was asked for, from which on the lines of units
    cut a window, sorted for each operation.
    """

    radii: Sequence[npt.NDArray[np.float64]]
    covered: list[_Window] = field(default_factory=list)

    @property
    def first(self) -> float:
        """Return the side of the first window: about one cell."""
        near = [
            float(halves[halves > 0][0]) for halves in self.radii if halves.max(initial=0.0) > 0
        ]
        side = INSIDE * min(near, default=1.0 / INSIDE)
        return min(FIRST, max(NARROWEST, side))

    def cells(self, side: float) -> float:
        """Return about how many cells a window is going to have."""
        last = self.covered[-1]
        return last.cells * self._cells(side) / self._cells(last.side)

    def _cells(self, side: float) -> float:
        lines = float(sum(np.searchsorted(halves, side) for halves in self.radii))
        return 1.0 + lines + lines**2 / 4

    def seconds(self, side: float) -> float:
        """Return about how long a window is going to take."""
        last = self.covered[-1]
        return last.seconds + self._each() * max(0.0, self.cells(side) - last.cells)

    def after(self, side: float) -> float:
        """Return about how long is needed once a window is cut."""
        last = self.covered[-1]
        return last.after * self.cells(side) / last.cells

    def _each(self) -> float:
        """Return the seconds of one more cell."""
        last = self.covered[-1]
        if len(self.covered) > 1:
            before = self.covered[-2]
            if last.cells > before.cells and last.seconds > before.seconds:
                return (last.seconds - before.seconds) / (last.cells - before.cells)
        return last.seconds / last.cells

    def next(self, seconds: float) -> float:
        """Return the side of the widest window that takes at most so long."""
        return self._widest(lambda side: self.seconds(side) <= seconds)

    def with_cells(self, cells: float) -> float:
        """Return the side of the widest window that has about so many cells at most."""
        return self._widest(lambda side: self.cells(side) <= cells)

    def _widest(self, fits: Callable[[float], bool]) -> float:
        low, high = self.covered[-1].side, 1.0
        if fits(high):
            return high
        for _ in range(40):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def windows(
    cut: Callable[[float], Generator[None, None, C]],
    finish: Callable[[C], R],
    count: Callable[[C], int],
    forecast: Forecast,
    turn: StepClock,
) -> Iterator[tuple[R, Ending] | None]:
    """Yield the results of growing windows, with what ended them; None where a step is over.

    ``cut(side)`` covers a window of that side, relative to what was asked for, in small steps, or
    raises ``SpentError``; ``finish`` makes a result of it. The first window is tiny. Each other is
    chosen by what those before it took; where the caller may stop, by their cells alone: then the
    k-th window does not depend on the load of the machine.
    """
    side: float = forecast.first
    too_wide: float | None = None
    best: R | None = None
    spent: Ending = "seconds"
    while True:
        begin = turn.deadline.clock()
        after = forecast.after(side) if forecast.covered else 0.0
        try:
            yield from (work := TimedSteps(cut(side), turn, after))
            covering = work.result
        except SpentError as error:
            if best is None:
                raise
            if error.budget == "seconds":
                yield best, "seconds"
                return
            spent, too_wide = error.budget, side
        else:
            middle = turn.deadline.clock()
            best = finish(covering)
            end = turn.deadline.clock()
            seconds = max(end - begin, TICK)
            forecast.covered.append(_Window(side, count(covering), seconds, end - middle))
            yield best, "complete" if side == 1.0 else "seconds"
            turn.begin()
            if side == 1.0:
                return
        following = _following(forecast, turn, too_wide)
        if following is None:
            yield best, spent
            return
        side = following


def _following(forecast: Forecast, turn: StepClock, too_wide: float | None) -> float | None:
    """Return the side of the next window; None where none is worth its time."""
    last, deadline = forecast.covered[-1], turn.deadline
    if too_wide is not None:  # for a budget other than the time
        side = (last.side * too_wide) ** 0.5
        return side if side >= LEAST * last.side and not deadline.passed() else None
    if stoppable():
        return max(min(1.0, LEAST * last.side), forecast.with_cells(STEADY * last.cells))
    final = USED * deadline.left()
    seconds = final
    if final > MOST * last.seconds:  # too far to foresee: a window in between tells more
        seconds = min(MOST * last.seconds, max(2 * last.seconds, final / MOST))
    side = forecast.next(seconds)
    if final > MOST * last.seconds:
        side = max(side, min(1.0, LEAST * last.side))
    return side if side >= min(1.0, LEAST * last.side) and seconds > 0 else None


class TimedSteps(Generic[C]):
    """Work within a time limit, paused whenever a step is over; then its ``result``."""

    def __init__(self, work: Generator[None, None, C], turn: StepClock, after: float = 0.0) -> None:
        self._work, self._turn, self._after = work, turn, after
        self.result: C

    def __iter__(self) -> Iterator[None]:
        """Yield where a step is over; raise ``SpentError`` where the time is."""
        shows, turn = stoppable(), self._turn
        try:
            while True:
                try:
                    next(self._work)
                except StopIteration as end:
                    self.result = end.value
                    return
                if not turn.deadline.is_never and turn.deadline.left() <= self._after:
                    raise SpentError("seconds")
                if shows and turn.is_over():
                    yield
                    turn.begin()
        finally:
            self._work.close()
