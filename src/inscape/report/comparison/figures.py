"""Figures of a comparison of several networks: matrices of pairs, a tree, and curves over steps."""

import itertools
import math

import numpy as np
from matplotlib.axes import Axes

from inscape.escaping import figure_label
from inscape.figures import draw
from inscape.figures.similarity import number_matrix
from inscape.figures.style import BLUE, FAINT, ORANGE, new_axes, quiet_grid, styled
from inscape.report.comparison.compare import Compare
from inscape.report.sweeps.figures import short_labels
from inscape.similarity import LayerMatrix
from inscape.similarity.invariances import ALIKE

#: Inches of one cell of a matrix, and of what is around it.
CELL, AROUND = 0.48, 1.5


def pair_values(compare: Compare, measure: str) -> list[list[float]]:
    """Return a measure of every two networks; NaN for a network and itself."""
    return [
        [math.nan if a == b else _or_nan(compare.value(measure, a, b)) for b in compare.names]
        for a in compare.names
    ]


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def pair_matrix(compare: Compare, measure: str) -> Axes:
    """Draw a measure of every two networks, the more alike the stronger."""
    values = pair_values(compare, measure)
    known = [value for row in values for value in row if math.isfinite(value)]
    largest = max(known, default=0.0) or 1.0
    strengths = [[_strength(measure, value, largest) for value in row] for row in values]
    size = AROUND + CELL * len(values)
    names, _ = short_labels(compare.names)
    with styled():
        ax = new_axes()
        ax.get_figure(root=True).set_size_inches(size, size)  # type: ignore[union-attr]
        return number_matrix(ax, values, strengths, names, names)


def layer_figure(result: LayerMatrix) -> Axes:
    """Draw every layer of one network against every layer of the other, as large as it needs."""
    with styled():
        ax = new_axes()
        rows, columns = result.values.shape
        size = AROUND + CELL * columns, 0.7 * AROUND + CELL * rows
        ax.get_figure(root=True).set_size_inches(*size)  # type: ignore[union-attr]
        draw(result, ax)
        ax.set(xlabel="", ylabel="")
    return ax


def _strength(measure: str, value: float, largest: float) -> float:
    if math.isnan(value):
        return 0.0
    return max(0.0, min(1.0, value if measure in ALIKE else 1 - value / largest))


def dendrogram(compare: Compare, measure: str = "disagreement") -> Axes | None:
    """Draw which networks are near each other, by average linkage; None where a pair is missing."""
    from scipy.cluster.hierarchy import dendrogram as tree
    from scipy.cluster.hierarchy import linkage

    values = np.array(pair_values(compare, measure))
    upper = values[np.triu_indices(len(values), 1)]
    if len(values) < 3 or not np.isfinite(upper).all():
        return None
    names, _ = short_labels(compare.names)
    with styled():
        ax = new_axes()
        height = 0.9 + 0.3 * len(names)
        ax.get_figure(root=True).set_size_inches(5.6, height)  # type: ignore[union-attr]
        tree(
            linkage(upper, "average"), ax=ax, orientation="left",
            labels=[figure_label(name) for name in names], link_color_func=lambda _: BLUE,
        )  # fmt: skip
        ax.set_xlabel("fraction of examples with different classes")
        ax.tick_params(axis="y", length=0, labelsize=8)
        for side in ("left", "right", "top"):
            ax.spines[side].set_visible(False)
        quiet_grid(ax, "x")
    return ax


def steps(names: tuple[str, ...]) -> list[float] | None:
    """Return the steps in the names of checkpoints of one training, if that is what they are.

    >>> steps(("epoch-1", "epoch-5", "epoch-20"))
    [1.0, 5.0, 20.0]
    """
    labels, start = short_labels(names)
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return None
    increasing = all(a < b for a, b in itertools.pairwise(numbers))
    return numbers if start and increasing and len(names) > 2 else None


def over_steps(compare: Compare, measure: str, at: list[float]) -> Axes:
    """Draw how alike each checkpoint is to the last one and to the next, over the steps."""
    names = compare.names
    last = [_or_nan(compare.value(measure, name, names[-1])) for name in names[:-1]]
    following = [_or_nan(compare.value(measure, a, b)) for a, b in itertools.pairwise(names)]
    with styled():
        ax = new_axes()
        ax.get_figure(root=True).set_size_inches(3.3, 2.3)  # type: ignore[union-attr]
        ax.plot(at[:-1], last, "o-", color=BLUE, markersize=4, label="with the last")
        ax.plot(at[:-1], following, "s--", color=ORANGE, markersize=3.5, label="with the next")
        ax.set_xlabel(figure_label(short_labels(names)[1]), color=FAINT)
        ax.legend(fontsize=7)
        quiet_grid(ax)
    return ax
