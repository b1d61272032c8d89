"""Figures of the controls family."""

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from inscape.controls import Lipschitz
from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, VERMILION, quiet_grid


@painter.register(Lipschitz)
def lipschitz(result: Lipschitz, ax: Axes) -> None:
    """Draw the steepest chord that was found and every bound that none exceeds.

    The truth lies between the dot and the square nearest to it.
    """
    order = sorted(zip(result.bounds, result.methods, strict=True))
    ax.plot([result.lower], [0], "o", color=BLUE, markersize=7)
    names = ["steepest chord found"]
    for place, (bound, method) in enumerate(order, 1):
        ax.plot([bound], [place], "s", color=VERMILION, markersize=6)
        names.append(method)
    if result.upper is not None:
        ax.axvspan(result.lower, result.upper, color=BLUE, alpha=0.12, linewidth=0)
    for place, value in enumerate([result.lower, *(bound for bound, _ in order)]):
        ax.annotate(f"{value:.3g}", (value, place), (8, 0), textcoords="offset points", va="center")
    values = [result.lower, *result.bounds]
    ax.set(xscale="log", xlim=(min(values) / 1.5, max(values) * 2.2))
    ax.xaxis.set_major_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    ax.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel="change of output for each unit of input")
    quiet_grid(ax, "x")
