"""Figure of closed regions: the outline in the plane, else the corners by their distance."""

import numpy as np
from matplotlib.axes import Axes

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, VERMILION, quiet_grid
from inscape.regions.closed_regions import ClosedRegions


@painter.register(ClosedRegions)
def closed_regions(result: ClosedRegions, ax: Axes) -> None:
    """Draw what is enclosed: its outline in the plane, else how far its corners are out."""
    if not result.count:
        ax.set_axis_off()
        text = "every region reaches to infinity"
        ax.text(0.5, 0.5, text, ha="center", va="center", color=FAINT, transform=ax.transAxes)
        return
    if result.inputs == 2:
        _outline(result, ax)
    else:
        _distances(result, ax)


def _outline(result: ClosedRegions, ax: Axes) -> None:
    ring = result.region().numpy()
    colour = BLUE if int(result.sides[0]) > 0 else VERMILION
    ax.fill(*ring.T, facecolor=colour, alpha=0.2)
    around = np.linspace(0, 2 * np.pi, 181)
    circle = np.stack([np.cos(around), np.sin(around)])
    middle = ring.mean(0)[:, None]
    for radius in (float(result.inner[0]), float(result.outer[0])):
        ax.plot(*(middle + radius * circle), color=FAINT, linestyle="--", linewidth=0.8)
    ax.plot(*np.concatenate([ring, ring[:1]]).T, color=colour, marker="o", markersize=3)
    kind = "quadrilateral" if len(ring) == 4 else "hexagon"
    ax.set(aspect="equal", xlabel="x₁", ylabel="x₂", title=f"{kind}, {_ratio(result)}")


def _distances(result: ClosedRegions, ax: Axes) -> None:
    corners = result.region().numpy()
    distances = np.sort(np.linalg.norm(corners - corners.mean(0), axis=1))
    ax.bar(np.arange(len(distances)), distances, color=BLUE, width=0.8)
    if not result.inner[0].isnan():
        inner = float(result.inner[0])
        ax.axhline(inner, color=VERMILION, linestyle="--", label="nearest face")
        ax.legend(fontsize=7)
    ax.set(xlabel="corner", ylabel="distance from the centre", xticks=[])
    ax.set_title(f"{result.shape}, {_ratio(result)}")
    quiet_grid(ax)


def _ratio(result: ClosedRegions) -> str:
    if result.inner[0].isnan():
        return f"R = {float(result.outer[0]):.3g}"
    return f"R = {float(result.outer[0] / result.inner[0]):.2f} \N{GREEK SMALL LETTER RHO}"
