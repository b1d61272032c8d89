"""Figures of Boolean functions: their line, their spectrum, and swaps of many."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from inscape.boolean.boolean_function import BooleanFunction
from inscape.boolean.fourier import Fourier
from inscape.boolean.swaps import Swaps
from inscape.boolean.truth_table import TruthTable, points
from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, CATEGORIES, DASHES, FAINT, ORANGE, RULE, quiet_grid


@painter.register(Swaps)
def swaps(result: Swaps, ax: Axes) -> None:
    """Draw the inputs along the line, true above and false below, with a rule at each change."""
    _line(TruthTable(result.n, result.number), result.weights.numpy(), ax)
    ax.set_title(f"swaps: {result.swaps} ({result.kind})")


@painter.register(BooleanFunction)
def boolean_function(result: BooleanFunction, ax: Axes) -> None:
    """Draw the inputs along the line with the fewest changes, true above and false below."""
    _line(result.table, result.weights.numpy(), ax)
    ax.set_title(f"function {result.number} of {result.n} inputs, swaps: {result.swaps}")


def _line(table: TruthTable, weights: Any, ax: Axes) -> None:
    sums = points(table.n) @ weights
    order = np.argsort(sums, kind="stable")
    at, bits = sums[order], table.bits[order].astype(int)
    for k in np.flatnonzero(np.diff(bits)):
        ax.axvline((at[k] + at[k + 1]) / 2, color=RULE, linewidth=0.9, zorder=0)
    for value, colour, mark in ((1, BLUE, "o"), (0, ORANGE, "s")):
        ax.plot(at[bits == value], bits[bits == value], mark, color=colour, markersize=4.5)
    ax.plot(at, bits, color=FAINT, linewidth=0.6, zorder=1, drawstyle="steps-mid")
    ax.set_yticks([0, 1], ["false", "true"])
    ax.set(xlabel="weighted sum of the inputs", ylim=(-0.35, 1.35))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


@painter.register(Fourier)
def fourier(result: Fourier, ax: Axes) -> None:
    """Draw the coefficients by the size of their set, largest first within a size."""
    values, sizes = result.coefficients.numpy(), result.sizes
    start = 0
    ticks = []
    for size in range(result.n + 1):
        sorted_values = np.sort(values[sizes == size])[::-1]
        places = start + np.arange(len(sorted_values))
        ax.bar(places, sorted_values, width=0.85, color=CATEGORIES[size % len(CATEGORIES)])
        ticks.append(places.mean())
        start += len(sorted_values) + 1
    ax.axhline(0, color=FAINT, linewidth=0.7)
    ax.set_xticks(ticks, [str(size) for size in range(result.n + 1)])
    ax.set(xlabel="inputs in the set", ylabel="Fourier coefficient")
    quiet_grid(ax)
    numbers = f"degree {result.degree}, influence {result.influence:.3g}"
    ax.set_title(f"{numbers}, entropy {result.entropy:.3g}")


def _look(at: int) -> dict[str, Any]:
    return {"color": CATEGORIES[at % len(CATEGORIES)], "linestyle": DASHES[at % len(DASHES)]}


def swaps_by_inputs(histograms: Mapping[int, Sequence[int]], ax: Axes) -> None:
    """Draw the fraction of the classes with each number of swaps, a line for each n."""
    for at, (n, counts) in enumerate(sorted(histograms.items())):
        fractions = np.array(counts) / sum(counts)
        ax.plot(
            range(len(fractions)), fractions, "o", markersize=3.5, label=f"n = {n}", **_look(at)
        )
    ax.set_yscale("log")
    ax.set(xlabel="swaps", ylabel="fraction of the classes")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    quiet_grid(ax)
    ax.legend(fontsize=8)


def families_by_inputs(
    families: Mapping[int, Mapping[str, Sequence[int]]], largest: Mapping[int, int], ax: Axes
) -> None:
    """Draw the most swaps in each family against the number of inputs."""
    counts = sorted(families)
    names = list(families[counts[0]])
    for at, name in enumerate(names):
        most = [len(families[n][name]) - 1 for n in counts]
        shift = (at - len(names) / 2) * 0.03  # lines that coincide stay apart
        places = [n + shift for n in counts]
        ax.plot(places, most, "o", markersize=3, label=name.replace("_", "-"), **_look(at))
    ax.plot(list(largest), list(largest.values()), "_", color=FAINT, markersize=14, label="all")
    ax.set_xticks(counts)
    ax.set(xlabel="inputs", ylabel="swaps")
    quiet_grid(ax)
    ax.legend(fontsize=6.5)


def metric_by_swaps(ranges: Sequence[Sequence[float]], name: str, ax: Axes) -> None:
    """Draw mean and range of a metric for each number of swaps."""
    low, mean, high = np.array(ranges, dtype=float).T
    places = np.arange(len(mean))
    ax.vlines(places, low, high, color=RULE, linewidth=3)
    ax.plot(places, mean, "o-", color=BLUE, markersize=4)
    ax.set(xlabel="swaps", ylabel=name)
    ax.set_xticks(places)
    quiet_grid(ax)
