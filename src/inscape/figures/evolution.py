"""Figures of regions during training: how layers settle, and the regions at some steps."""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inscape.figures.drawing import painter
from inscape.figures.hues import Color
from inscape.figures.panels import panels
from inscape.figures.regions import draw_regions
from inscape.figures.style import CATEGORIES, DASHES, FAINT, quiet_grid, styled
from inscape.regions.region_evolution import RegionEvolution


@painter.register(RegionEvolution)
def _region_evolution(result: RegionEvolution, ax: Axes) -> None:
    """Draw how much of each layer's activation pattern is not yet the final one."""
    steps = result.steps.numpy()
    for k in range(len(result.ops)):
        look: dict[str, Any] = {
            "color": CATEGORIES[k % len(CATEGORIES)],
            "linestyle": DASHES[k % len(DASHES)],
        }
        percents = 100 * result.differs[:, k].numpy()
        name = f"nonlinear layer {k + 1}: settled at step {int(result.settled[k])}"
        ax.plot(steps, percents, label=name, marker="o", markersize=3, **look)
    ax.axhline(100 * result.tolerance, color=FAINT, linewidth=0.8, linestyle=(0, (1, 1.5)))
    ax.set(
        xlabel="step", ylabel="percent of the pattern\nthat differs from the end", ylim=(0, None)
    )
    first, last = int(result.cells[0]), int(result.cells[-1])
    ax.set_title(f"from {first} to {last} cells; patterns compared at {result.samples} places")
    quiet_grid(ax)
    if result.ops:
        ax.legend(fontsize=7.5)


def stills(
    result: RegionEvolution, count: int = 4, *, color: Color = "pattern", boundary: bool = True
) -> Figure:
    """Return a figure of the regions at ``count`` of the steps, in colours that match."""
    count = min(count, len(result.steps))
    places = torch.linspace(0, len(result.steps) - 1, count).round().long().tolist()
    with styled():
        figure, axes = panels(count, columns=4, size=(2.6, 2.8))
        for ax, place in zip(axes, places, strict=True):
            still(result, place, ax, color=color, boundary=boundary)
    return figure


def still(
    result: RegionEvolution,
    place: int,
    ax: Axes,
    *,
    color: Color = "pattern",
    boundary: bool = True,
) -> None:
    """Draw the regions at one of the steps, in the colours of the last one."""
    draw_regions(
        result.regions_at(place),
        ax,
        color=color,
        boundary=boundary,
        bar=False,
        like=result.regions_at(-1),
    )
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    ax.set_title(f"step {int(result.steps[place])}: {int(result.cells[place])} cells")
