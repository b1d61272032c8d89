"""Figures of regions along lines."""

import torch
from matplotlib.axes import Axes

from inscape.figures.distribution import distribution
from inscape.figures.drawing import painter
from inscape.figures.style import CATEGORIES, RULE, outputs, quiet_grid
from inscape.regions.line_regions import LineRegions

#: More segments than this are counted instead of being followed.
FOLLOWED = 12
#: More knots than this are not marked one by one.
KNOTS = 150


@painter.register(LineRegions)
def line_regions(result: LineRegions, ax: Axes) -> None:
    """Draw the number of linear regions along each line; of a few lines, the breakpoints."""
    if len(result.cells) > FOLLOWED:
        distribution(ax, result.cells.double(), result.summary())
        ax.set(xlabel="linear regions on a line between two points", ylabel="lines")
        return
    ends = torch.cat([result.lengths.new_zeros(1), result.lengths.cumsum(0)])
    segment = torch.repeat_interleave(torch.arange(len(result.cells)), result.offsets.diff())
    distance = (ends[segment] + result.t * result.lengths[segment]).numpy()
    dot = "o" if len(distance) <= KNOTS else ""
    for k, look in enumerate(outputs(result.values.shape[1])):
        ax.plot(distance, result.values[:, k].numpy(), marker=dot, markersize=3, **look)
    for at in ends[1:-1].tolist():
        ax.axvline(at, color=RULE, linewidth=0.8)
    ax.set(xlabel="distance along the line", ylabel="output")
    quiet_grid(ax)
    if 1 < result.values.shape[1] <= len(CATEGORIES):
        ax.legend(loc="best", fontsize=8)
