"""Figures of the similarity family: where and how much two networks differ."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, ORANGE, RULE, SKY, VERMILION, quiet_grid
from inscape.similarity import Disagreement, MapAlignment, SliceDifference

#: More cells than this are drawn without their edges.
LIMIT = 5_000


@painter.register(SliceDifference)
def _slice_difference(result: SliceDifference, ax: Axes) -> None:
    """Draw where two networks give different classes, with the decision boundary of each."""
    shapes = np.split(result.vertices.numpy()[result.corners.numpy()], result.first[1:-1].numpy())
    differ = (result.classes != result.other_classes).numpy()
    edges = "none" if result.cells > LIMIT else RULE
    for is_different, color, alpha in ((False, SKY, 0.12), (True, VERMILION, 0.45)):
        chosen = [shape for shape, one in zip(shapes, differ, strict=True) if one == is_different]
        cells = PolyCollection(chosen, facecolors=color, alpha=alpha, edgecolors="none")
        cells.set_rasterized(result.cells > LIMIT)
        ax.add_collection(cells, autolim=False)
    if edges != "none":
        lines = LineCollection(_segments(result, slice(None)), colors=edges, linewidths=0.25)
        ax.add_collection(lines, autolim=False)
    handles: list[Patch | Line2D] = [Patch(color=VERMILION, alpha=0.45, label="they differ")]
    for which, color, dash in (("first", BLUE, "-"), ("second", ORANGE, (0, (5, 2)))):
        chosen_edges = _segments(result, result.boundary(which).numpy())
        lines = LineCollection(chosen_edges, colors=color, linewidths=1.6, linestyles=[dash])
        ax.add_collection(lines, autolim=False)
        handles.append(
            Line2D([], [], color=color, linestyle=dash, label=f"boundary of the {which}")
        )
    low, high = result.domain.amin(0).tolist(), result.domain.amax(0).tolist()
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    if result.origin.numel() == 2 and result.axes.flatten(1).tolist() == [[1, 0], [0, 1]]:
        ax.set(xlabel="first input", ylabel="second input")
    else:
        ax.set(xlabel="first direction", ylabel="second direction")
    summary = result.summary()
    ax.set_title(f"different classes on {summary.value:.2%} of the window")
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=7,
        columnspacing=1.0, handlelength=1.6,
    )  # fmt: skip


def _segments(result: SliceDifference, chosen: object) -> list[np.ndarray]:  # type: ignore[type-arg]
    ends = result.edges.numpy()[chosen]  # type: ignore[index]
    return list(result.vertices.numpy()[ends])


@painter.register(Disagreement)
def _disagreement(result: Disagreement, ax: Axes) -> None:
    """Draw how far both networks' probabilities differ, over the examples in order of it."""
    order = result.distances.argsort(descending=True, stable=True)
    heights = result.distances[order].numpy()
    differ = result.per_sample()[order].bool().numpy()
    at = np.arange(1, len(heights) + 1)
    for chosen, color, label in (
        (differ, VERMILION, "other class"),
        (~differ, FAINT, "same class"),
    ):
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
