"""Time that is kept for the page: drawing its figures and writing them is part of the budget."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from inscape.report.look.watch import BudgetWatch
from inscape.runtime.deadline import now

#: Cost of a page, in the time of one plain figure: an instrument with its figure and formulas, the
#: slice, a window of linear regions with its lines, all else; a third more than pages took that
#: were timed.
FIGURE, SLICE, REGIONS, REST = 3.0, 6.0, 20.0, 10.0
#: Instruments whose figure has thousands of linear regions.
MANY_REGIONS = ("plane_regions",)
#: Up to this fraction of the budget is kept in any case, up to the larger one on a busy machine;
#: between them the seconds that a look may take longer than its budget are used up first.
SOME, MOST = 0.25, 0.4
ALLOWED = 5.0
#: Plain figures that are timed.
DRAWN = 2


def page_seconds(instruments: Iterable[str], plain: float, *, budget: float) -> float:
    """Return the seconds to keep for a page with the figures of these instruments.

    ``plain`` is what a plain figure takes now; the figures themselves are bounded, since what has
    very many corners is drawn as pixels.
    """
    names = list(instruments)
    figures = sum(REGIONS if name in MANY_REGIONS else FIGURE for name in names)
    seconds = (REST + SLICE + figures) * plain
    return min(seconds, MOST * budget, max(SOME * budget, seconds - ALLOWED))


@dataclass(frozen=True)
class PlainFigure:
    """What it takes to draw a plain figure: seconds by the clock, and of the processor."""

    seconds: float
    processor: float

    @classmethod
    def timed(cls) -> "PlainFigure":
        """Draw a plain figure, once the library and its fonts are loaded; keep the quickest.

        A single one that something else held up would keep most of the time for nothing.
        """
        plain_figure()
        took = []
        for _ in range(DRAWN):
            begun, before = now(), time.process_time()
            plain_figure()
            took.append((now() - begun, time.process_time() - before))
        seconds, processor = map(min, zip(*took, strict=True))
        return cls(seconds, processor)

    def now(self, watch: BudgetWatch, threads: int) -> float:
        """Return the seconds of a plain figure at the speed that the look has had so far.

        A few figures alone may have waited for the processor by chance, longer than a page would.
        """
        if watch.processor is None:
            return self.seconds
        wait = max(1.0, threads * watch.spent / max(watch.processor, 1e-9))
        return min(self.seconds, wait * self.processor)


def plain_figure() -> str:
    """Draw a figure as plain as most on a page, and return it as SVG."""
    from inscape.figures.style import new_axes, styled
    from inscape.report.pictures import drawn

    with styled():
        ax = new_axes()
        ax.plot(range(100))
        ax.set(xlabel="input", ylabel="output")
    return drawn(ax, prefix="plain", label="a plain figure")
