"""Drawing of two classes on a line, and of functions that tell them apart."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The example of figures 3.3, A.1 and A.2: five regions of alternating class, four changes.
REGIONS = ((0.0, 0.1), (0.16, 0.34), (0.42, 0.58), (0.64, 0.86), (0.9, 1.0))
#: The first region of the example is negative, as the networks of theorem 3.3.3 begin.
FIRST = -1.0


def bands(ax: "Axes", regions: Sequence[Sequence[float]], first: float) -> None:
    """Draw the regions as bands in the colours of their class."""
    from inscape.figures.style import BLUE, VERMILION

    for k, (low, high) in enumerate(regions):
        positive = (first > 0) == (k % 2 == 0)
        ax.axvspan(low, high, color=BLUE if positive else VERMILION, alpha=0.18, lw=0)


def curve(ax: "Axes", line: Mapping[str, Any], **looks: Any) -> None:
    """Draw a broken line and its corners above a line at zero."""
    from inscape.figures.style import INK, RULE

    ax.axhline(0, color=RULE, lw=0.7)
    ax.plot(line["knots"], line["values"], **{"color": INK, **looks})
    ax.plot(line["knots"][1:-1], line["values"][1:-1], ".", color=looks.get("color", INK), ms=4)
