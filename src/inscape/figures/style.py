"""One look for all figures: colours that colour-blind readers can tell apart, and little ink."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Okabe and Ito's colours without yellow; black becomes white on dark paper.
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
VERMILION, PURPLE, SKY, INK = "#D55E00", "#CC79A7", "#56B4E9", "#000000"
#: Their yellow fills areas, and is too pale for lines.
YELLOW = "#F0E442"
CATEGORIES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, INK)
#: The second mark beside the colour.
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (3, 1)), (0, (8, 2)), "-")
#: Greys for what stands in the background.
FAINT, RULE = "#767676", "#C4C4C4"
#: What fills an empty mark: white, and on a page the colour of the page.
PAPER = "#FDFCFA"
#: Colour maps: of magnitudes, and of signed values (to be centred at 0).
MAGNITUDE, SIGNED = "cividis", "PuOr"

#: Inches; wide enough for a page, with text that stays legible on a phone.
SIZE = (4.6, 3.0)

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=CATEGORIES),
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "image.cmap": MAGNITUDE,
    "savefig.transparent": True,
    "savefig.dpi": 160,
    "svg.fonttype": "none",  # text stays text: small, searchable, in the reader's own font
    "svg.hashsalt": "inscape",  # the same figure gives the same file
    "pdf.fonttype": 42,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of the house within the block; the user's settings come back after."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def outputs(count: int) -> list[dict[str, Any]]:
    """Return how to draw each of ``count`` outputs: a colour and a dash while they last."""
    if count == 1:
        return [{"color": BLUE}]
    if count > len(CATEGORIES):
        return [{"color": BLUE, "alpha": 0.4, "linewidth": 0.9}] * count
    marks = zip(CATEGORIES, DASHES, range(count), strict=False)
    return [{"color": c, "linestyle": dash, "label": f"output {k}"} for c, dash, k in marks]


def new_axes() -> Axes:
    """Return the axes of a new figure that pyplot knows nothing of, so that nothing is leaked."""
    return Figure(figsize=SIZE, layout="constrained").add_subplot()


def quiet_grid(ax: Axes, axis: str = "y") -> None:
    """Draw hairlines behind the data along one axis."""
    ax.grid(axis=axis, color=RULE, linewidth=0.5, alpha=0.6)  # type: ignore[arg-type]
    ax.tick_params(axis=axis, length=0)  # type: ignore[arg-type]
    ax.spines["left" if axis == "y" else "bottom"].set_visible(False)
