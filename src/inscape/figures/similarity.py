"""Figures of the similarity family: where and how much two networks differ."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from inscape.escaping import figure_label
from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, INK, ORANGE, PAPER, RULE, SKY, VERMILION, quiet_grid
from inscape.similarity import (
    Disagreement,
    LayerMatrix,
    MapAlignment,
    ProcrustesDistance,
    SliceDifference,
)

#: More cells than this are drawn without their edges.
LIMIT = 5_000


@painter.register(SliceDifference)
def _slice_difference(result: SliceDifference, ax: Axes) -> None:
    """Draw where two networks give different classes, with the decision boundary of each."""
    shapes = np.split(result.vertices.numpy()[result.corners.numpy()], result.first[1:-1].numpy())
    differ = (result.classes != result.other_classes).tolist()
    is_large = result.cells > LIMIT
    for is_other, color, alpha in ((False, SKY, 0.12), (True, VERMILION, 0.5)):
        chosen = [shape for shape, other in zip(shapes, differ, strict=True) if other == is_other]
        cells = PolyCollection(chosen, facecolors=color, alpha=alpha, edgecolors="none")
        cells.set_rasterized(is_large)
        ax.add_collection(cells, autolim=False)
    if not is_large:
        _lines(result, torch.arange(len(result.edges)), ax, colors=RULE, linewidths=0.25)
    first = {"color": BLUE, "linewidth": 1.6}
    second = {"color": ORANGE, "linewidth": 1.6, "linestyle": "--"}
    _lines(result, result.boundary("first"), ax, **first)
    _lines(result, result.boundary("second"), ax, **second)
    handles = [
        Patch(color=VERMILION, alpha=0.5, label="other class"),
        Line2D([], [], label="boundary of the first", **first),  # type: ignore[arg-type]
        Line2D([], [], label="boundary of the second", **second),  # type: ignore[arg-type]
    ]
    low, high = result.domain.amin(0).tolist(), result.domain.amax(0).tolist()
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    is_input_space = result.axes.flatten(1).tolist() == [[1, 0], [0, 1]]
    word = "input" if is_input_space else "direction"
    ax.set(xlabel=f"first {word}", ylabel=f"second {word}")
    ax.set_title(f"different classes on {result.summary().value:.2%} of the window")
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=7,
        columnspacing=1.0, handlelength=1.6,
    )  # fmt: skip


def _lines(result: SliceDifference, edges: Tensor, ax: Axes, **style: Any) -> None:
    segments = result.vertices.numpy()[result.edges.numpy()[edges.numpy()]]
    ax.add_collection(LineCollection(list(segments), **style), autolim=False)


@painter.register(Disagreement)
def _disagreement(result: Disagreement, ax: Axes) -> None:
    """Draw how far both networks' probabilities differ, over the examples in order of it."""
    order = result.distances.argsort(descending=True, stable=True)
    heights = result.distances[order].numpy()
    differ = result.per_sample()[order].bool().numpy()
    at = np.arange(1, len(heights) + 1)
    kinds = ((differ, VERMILION, "other class"), (~differ, FAINT, "same class"))
    for chosen, color, label in kinds:
        ax.vlines(at[chosen], 0, heights[chosen], color=color, linewidth=1.2, label=label)
    ax.set(xlabel="example, most different first", ylabel="distance of probabilities")
    ax.set(xlim=(0.5, len(at) + 0.5), ylim=(0, None))
    quiet_grid(ax)
    ax.legend(fontsize=7.5)


@painter.register(MapAlignment)
def _map_alignment(result: MapAlignment, ax: Axes) -> None:
    """Draw the alignment of the local maps of each output, debiased and as printed."""
    at = np.arange(len(result.debiased))
    shown = (
        (result.biased, FAINT, "biased, as printed", "s"),
        (result.debiased, BLUE, "debiased", "o"),
    )
    for values, color, label, mark in shown:
        ax.plot(at, values.numpy(), mark, color=color, label=label, markersize=4)
    ax.axhline(0, color=RULE, linewidth=0.7)
    ax.set(xlabel="output", ylabel="alignment of local maps", xticks=at, ylim=(None, 1.05))
    quiet_grid(ax)
    ax.legend(fontsize=7.5)


def likeness(result: LayerMatrix, value: float) -> float:
    """Return a number of a measure as a likeness: 1 for the same, 0 for as far apart as can be."""
    if math.isnan(value):
        return 0.0
    is_distance = isinstance(result, ProcrustesDistance)
    return max(0.0, min(1.0, 1 - value / math.sqrt(2) if is_distance else value))


@painter.register(LayerMatrix)
def _layer_matrix(result: LayerMatrix, ax: Axes) -> None:
    """Draw a measure of every layer of one network against every layer of the other."""
    strengths = [[likeness(result, value) for value in row] for row in result.values.tolist()]
    number_matrix(ax, result.values.tolist(), strengths, result.layers, result.other_layers)
    ax.set(xlabel="layer of the second network", ylabel="layer of the first network")


def number_matrix(
    ax: Axes,
    values: Sequence[Sequence[float]],
    strengths: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
) -> Axes:
    """Draw numbers in squares of a colour of that strength, from 0 to 1; NaN as "n/a"."""
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            strength = strengths[i][j]
            square = Rectangle((j - 0.5, i - 0.5), 1, 1, color=BLUE, alpha=strength, linewidth=0)
            ax.add_patch(square)
            text = "n/a" if math.isnan(value) else f"{value:.2f}"
            ink = PAPER if strength > 0.6 else INK
            ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color=ink)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), aspect="equal")
    labels = [figure_label(name) for name in columns]
    slanted = sum(map(len, labels)) > 30
    ax.set_yticks(range(len(rows)), [figure_label(name) for name in rows])
    ax.set_xticks(
        range(len(labels)), labels, rotation=35 if slanted else 0,
        ha="right" if slanted else "center", rotation_mode="anchor" if slanted else "default",
    )  # fmt: skip
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax
