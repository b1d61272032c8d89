"""Figures of residuals: how they grow with the step, with a line of the power that is claimed."""

from collections.abc import Mapping, Sequence

import numpy as np

from inscape.lab.experiment import Panel
from inscape.lab.store import Record

#: What stands for zero in logarithms: less than any residual of float64.
ZERO = 1e-17


def points_and_means(
    ax: Panel, x: Sequence[float], y: Sequence[float], name: str, number: int = 0
) -> tuple[list[float], list[float]]:
    """Draw points, and a line through their geometric means at each place, which is returned."""
    from inscape.figures.style import CATEGORIES, DASHES, quiet_grid

    colour, dash = CATEGORIES[number], DASHES[number]
    at, values = np.array(x), np.maximum(np.array(y, dtype=float), ZERO)
    places = sorted(set(x))
    middle = [float(np.exp(np.log(values[at == place]).mean())) for place in places]
    ax.plot(at, values, ".", color=colour, ms=3, alpha=0.5)
    ax.plot(places, middle, color=colour, ls=dash, marker="o", ms=3, label=name)
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(places[::2], [f"{place:g}" for place in places[::2]])
    ax.set_xticks([], minor=True)
    quiet_grid(ax)
    return places, middle


def powers(ax: Panel, lines: Mapping[str, Sequence[Record]], x: str, y: str, power: float) -> None:
    """Draw ``y`` against ``x`` in logarithms for each name, and a dotted line of a power."""
    from inscape.figures.style import FAINT

    for number, (name, records) in enumerate(lines.items()):
        across = [float(record.settings[x]) for record in records]
        up = [float(record.values[y]) for record in records]
        places, middle = points_and_means(ax, across, up, name, number)
        guide = [middle[-1] * (place / places[-1]) ** power for place in places]
        ax.plot(places, guide, color=FAINT, lw=0.7, ls=":", zorder=0)
