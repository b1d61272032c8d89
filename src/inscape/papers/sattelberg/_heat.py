"""Heat maps of success by width and depth."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Panel

if TYPE_CHECKING:
    from matplotlib.image import AxesImage

#: Words on bright cells; unlike ink it stays dark on dark paper.
DARK = "#1a1a1a"


def heat_map(
    ax: Panel,
    values: Mapping[tuple[int, int], float],
    *,
    outlined: Collection[tuple[int, int]] = (),
    top: float = 100.0,
) -> "AxesImage":
    """Draw one number for each size, larger networks further up and to the right.

    Args:
        ax: Where to draw.
        values: The numbers, by width and depth.
        outlined: Sizes that get a white frame.
        top: The number that has the brightest colour.
    """
    widths, depths = (sorted({size[k] for size in values}) for k in (0, 1))
    grid = np.full((len(widths), len(depths)), np.nan)
    for (width, depth), value in values.items():
        grid[widths.index(width), depths.index(depth)] = value
    image = ax.imshow(grid, origin="lower", vmin=0, vmax=top, cmap="cividis", aspect="auto")
    for (width, depth), value in values.items():
        place = depths.index(depth), widths.index(width)
        colour = DARK if value > 0.55 * top else "white"
        ax.text(*place, _word(value), ha="center", va="center", fontsize=7, color=colour)
        if (width, depth) in outlined:
            _frame(ax, *place)
    ax.set_xticks(range(len(depths)), [str(depth) for depth in depths])
    ax.set_yticks(range(len(widths)), [str(width) for width in widths])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="hidden layers", ylabel="width")
    return image


def _word(value: float) -> str:
    """Return a number as it fits a cell: only what is 0 or 100 reads so."""
    if 0 < value < 0.5:
        return "<1"
    if 99.5 <= value < 100:
        return ">99"
    return f"{value:.0f}"


def _frame(ax: Any, column: int, row: int) -> None:
    from matplotlib.patches import Rectangle

    corner = (column - 0.46, row - 0.46)
    ax.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, edgecolor="white", lw=1.3))
