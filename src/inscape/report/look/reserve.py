"""Time that is kept for the page: drawing its figures and writing them is part of the budget."""

from collections.abc import Iterable

from inscape.runtime.deadline import now

#: Cost of a page, in the time of one plain figure: the figure of an instrument, the slice, a window
#: of linear regions with its lines, all else; a third more than pages took that were timed.
FIGURE, SLICE, REGIONS, REST = 3.0, 5.0, 30.0, 20.0
#: Instruments whose figure has thousands of linear regions.
MANY_REGIONS = ("plane_regions",)
#: A page is given at most this fraction of the budget.
MOST = 0.25


def page_seconds(instruments: Iterable[str], *, budget: float) -> float:
    """Return the seconds to keep for a page with the figures of these instruments.

    They are foreseen from the time that one plain figure takes now, so that a busy machine keeps
    more; the figures themselves are bounded, since what has very many corners is drawn as pixels.
    """
    names = list(instruments)
    figures = sum(REGIONS if name in MANY_REGIONS else FIGURE for name in names)
    plain_figure()  # loads the library and its fonts
    begun = now()
    plain_figure()
    return min(MOST * budget, (REST + SLICE + figures) * (now() - begun))


def plain_figure() -> str:
    """Draw a figure as plain as most on a page, and return it as SVG."""
    from inscape.figures.style import new_axes, styled
    from inscape.report.pictures import drawn

    with styled():
        ax = new_axes()
        ax.plot(range(100))
        ax.set(xlabel="input", ylabel="output")
    return drawn(ax, prefix="plain", label="a plain figure")
