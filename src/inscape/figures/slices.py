"""The figure of a slice: classes in colours, paler where less sure, with the examples on it."""

from collections.abc import Sequence
from typing import Any

import matplotlib.patheffects as effects
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage

from inscape.figures.attribution import picture
from inscape.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MAGNITUDE,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    styled,
)
from inscape.piecewise.planes.slices import Anchor, SlicePicture
from inscape.regions.plane_regions import PlaneRegions

Array = npt.NDArray[Any]

#: Colours of the classes on the slice; the last of eight is grey, as all further ones are.
TINTS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, YELLOW)
#: Inches of the figure's longer side, and pixels of the picture there.
SIZE, PIXELS = 6.4, 400
#: How strong a colour is at chance and where the network is certain.
FAINTEST, STRONGEST = 0.08, 0.72
#: Points that a thumbnail is wide, and that it stands away from its mark.
THUMB, AWAY = 44.0, 40.0
#: More edges of linear regions than this are not drawn: they would be a grey veil.
MOST_EDGES = 20_000
#: Nor are those of a smaller fraction of the window, too small to be seen.
LEAST_COVERED = 0.1
#: What the axes of a plane through three examples are.
FROM_A, TOWARDS_C = "from A towards B \N{RIGHTWARDS ARROW}", "towards C \N{RIGHTWARDS ARROW}"


def draw_slice(result: SlicePicture, regions: PlaneRegions | None = None) -> Axes:
    """Draw a slice and return its axes.

    Args:
        result: The slice.
        regions: Linear regions in the same plane, drawn as faint lines.
    """
    with styled():
        ax = _axes(result)
        scores, others, sure = _finer(result)
        if result.classes:
            _classes(result, ax, scores, others, sure)
        else:
            _values(result, ax, scores[:, :, 0])
        if regions is not None and shows_edges(regions):
            _edges(regions, ax)
        _dots(result, ax)
        for anchor in result.anchors:
            _mark(result, ax, anchor)
    return ax


def shows_edges(regions: PlaneRegions) -> bool:
    """Tell whether linear regions are few enough, on enough of the window, to be seen."""
    return len(regions.edges) <= MOST_EDGES and regions.covered >= LEAST_COVERED


def name_examples(ax: Axes, anchors: Sequence[Anchor]) -> Axes:
    """Mark examples in a plane through them that is already drawn, and name its axes by them."""
    ax.set(xlabel=FROM_A, ylabel=TOWARDS_C)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    for anchor in anchors:
        if left <= anchor.u <= right and low <= anchor.v <= high:
            ax.plot(
                [anchor.u], [anchor.v], "o", color=PAPER, markeredgecolor=INK, markersize=5,
                zorder=7,
            )  # fmt: skip
            ax.annotate(
                anchor.letter, (anchor.u, anchor.v), (7, 7), textcoords="offset points",
                fontweight="bold", color=INK, zorder=8, path_effects=_halo(),
            )  # fmt: skip
    return ax


def tint(result: SlicePicture, layer: int) -> str:
    """Return the colour of a layer of scores."""
    return TINTS[layer] if 0 <= layer < len(TINTS) else FAINT


def _axes(result: SlicePicture) -> Axes:
    """Return axes with the shape of the rectangle in the input space."""
    width, height = (b - a for a, b in zip(result.low, result.high, strict=True))
    sides = np.array([width, height]) * result.frame.gram.diagonal().sqrt().numpy()
    ratio = sides[1] / sides[0]
    ratio = ratio if 1 / 4 < ratio < 4 else 0.75
    figure = Figure(figsize=(SIZE, SIZE * min(ratio, 1.2) + 0.35), layout="constrained")
    ax = figure.add_subplot()
    ax.set(
        xlim=(result.low[0], result.high[0]),
        ylim=(result.low[1], result.high[1]),
        box_aspect=ratio,
    )
    if result.whole:
        ax.set(xlabel="first input", ylabel="second input")
    else:
        ax.set(xticks=[], yticks=[])
        ax.set_xlabel(FROM_A, loc="right", color=FAINT)
        ax.set_ylabel(TOWARDS_C, loc="top", color=FAINT)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    return ax


def _finer(result: SlicePicture) -> tuple[Array, Array | None, Array | None]:
    """Return scores, the best other score and the confidence between the nodes, bilinearly."""
    height, width = result.scores.shape[:2]
    factor = max(1, PIXELS // max(height, width))
    shape = (1 + factor * (height - 1), 1 + factor * (width - 1))

    def finer(values: torch.Tensor) -> Array:
        planes = values.movedim(2, 0)[None]
        drawn = torch.nn.functional.interpolate(
            planes, size=shape, mode="bilinear", align_corners=True
        )
        return drawn[0].movedim(0, 2).numpy()

    others = None if result.others is None else finer(result.others[:, :, None])[:, :, 0]
    sure = None if result.confidence is None else finer(result.confidence[:, :, None])[:, :, 0]
    return finer(result.scores), others, sure


def _classes(
    result: SlicePicture, ax: Axes, scores: Array, others: Array | None, sure: Array | None
) -> None:
    """Colour every place by the class that wins there, and draw where that changes."""
    stacked = scores if others is None else np.concatenate([scores, others[:, :, None]], 2)
    winner = stacked.argmax(2)
    colors = np.array([to_rgb(tint(result, k)) for k in range(len(result.names))] + [to_rgb(FAINT)])
    image = np.ones((*winner.shape, 4))
    image[:, :, :3] = colors[np.minimum(winner, len(result.names))]
    if sure is None:
        image[:, :, 3] = (FAINTEST + STRONGEST) / 2
    else:
        chance = 1 / max(2, stacked.shape[2])
        above = ((sure - chance) / (1 - chance)).clip(0, 1)
        image[:, :, 3] = FAINTEST + (STRONGEST - FAINTEST) * above
    _image(result, ax, image)
    _boundary(result, ax, stacked)
    _names(result, ax, winner)


def _boundary(result: SlicePicture, ax: Axes, scores: Array) -> None:
    """Draw where each class is level with the best of the others."""
    u, v = (np.linspace(result.low[k], result.high[k], scores.shape[1 - k]) for k in (0, 1))
    for k in range(scores.shape[2] - (scores.shape[2] == 2)):
        rest = np.delete(scores, k, 2)
        if not rest.shape[2]:
            continue
        ahead = scores[:, :, k] - rest.max(2)
        if ahead.min() < 0 < ahead.max():
            ax.contour(u, v, ahead, levels=[0.0], colors=INK, linewidths=1.3, zorder=4)


def _names(result: SlicePicture, ax: Axes, winner: Array) -> None:
    """Write the name of each class where it has most room."""
    from scipy.ndimage import distance_transform_edt

    occupied = _occupied(result, winner.shape)
    for k, name in enumerate(result.names):
        room = distance_transform_edt(np.pad((winner == k) & ~occupied, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(int(room.argmax()), room.shape)
        if room[row, column] < 0.035 * max(winner.shape):
            continue
        at = _place(result, (int(row), int(column)), winner.shape)
        text = ax.text(*at, name, ha="center", va="center", fontsize=11, fontweight="bold")
        text.set(color=INK, zorder=6)


def _occupied(result: SlicePicture, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Tell which pixels are under the marks and thumbnails of the examples."""
    occupied = np.zeros(shape[:2], bool)
    rows, columns = np.indices(shape[:2])
    width, height = (b - a for a, b in zip(result.low, result.high, strict=True))
    for anchor in result.anchors:
        column = (anchor.u - result.low[0]) / width * (shape[1] - 1)
        row = (anchor.v - result.low[1]) / height * (shape[0] - 1)
        occupied |= np.hypot(rows - row, columns - column) < 0.1 * max(shape)
    return occupied


def _place(
    result: SlicePicture, at: tuple[int, int], shape: tuple[int, ...]
) -> tuple[float, float]:
    (row, column), (height, width) = at, shape[:2]
    u = result.low[0] + (result.high[0] - result.low[0]) * column / (width - 1)
    return u, result.low[1] + (result.high[1] - result.low[1]) * row / (height - 1)


def _values(result: SlicePicture, ax: Axes, values: Array) -> None:
    """Colour every place by the output there, with level lines."""
    image = _image(result, ax, values, cmap=MAGNITUDE)
    u, v = (np.linspace(result.low[k], result.high[k], values.shape[1 - k]) for k in (0, 1))
    if float(values.max()) > float(values.min()):
        ax.contour(
            u, v, values, 8, colors="#FFFFFF", linestyles="solid", linewidths=0.6,
            alpha=0.7, zorder=4,
        )  # fmt: skip
    figure = ax.get_figure(root=True)
    if figure is not None:
        bar = figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02, label=result.names[0])
        bar.outline.set_visible(False)


def _image(result: SlicePicture, ax: Axes, image: Array, **look: Any) -> Any:
    extent = (result.low[0], result.high[0], result.low[1], result.high[1])
    drawn = ax.imshow(
        image, extent=extent, origin="lower", aspect="auto", interpolation="none", zorder=1, **look
    )
    ax.set(xlim=extent[:2], ylim=extent[2:])
    return drawn


def _edges(regions: PlaneRegions, ax: Axes) -> None:
    """Draw the edges of linear regions as faint lines."""
    by_unit = regions.switching_units[:, 0].numpy() >= 0
    ends = regions.vertices.numpy()[regions.edges.numpy()[by_unit]]
    thin = min(1.0, (600 / max(1, len(ends))) ** 0.4)  # many lines must not hide the colours
    lines = LineCollection(list(ends), colors=INK, linewidths=0.4 * thin, alpha=0.4)
    lines.set(zorder=2)
    ax.add_collection(lines, autolim=False)


def _dots(result: SlicePicture, ax: Axes) -> None:
    """Draw the examples on or near the plane in the colours of their labels."""
    if not len(result.places):
        return
    at = result.places.numpy()
    colors = [tint(result, k) if result.labelled else INK for k in result.winners.tolist()]
    ax.scatter(
        at[:, 0], at[:, 1], s=22 if len(at) < 150 else 14, c=colors, edgecolors=INK,
        linewidths=0.7, zorder=5,
    )  # fmt: skip


def _halo() -> list[effects.AbstractPathEffect]:
    return [effects.Stroke(linewidth=2.5, foreground=PAPER), effects.Normal()]


def _mark(result: SlicePicture, ax: Axes, anchor: Anchor) -> None:
    """Mark an example that the plane goes through, with its picture beside it if it is one."""
    halo = _halo()
    ax.plot([anchor.u], [anchor.v], "o", color=PAPER, markeredgecolor=INK, markersize=7, zorder=7)
    middle = np.mean([[other.u, other.v] for other in result.anchors], 0)
    out = np.array([anchor.u, anchor.v]) - middle
    out = out / (np.linalg.norm(out) or 1.0)
    image = picture(anchor.input)
    if image is None:
        ax.annotate(
            anchor.letter, (anchor.u, anchor.v), tuple(13 * out), textcoords="offset points",
            ha="center", va="center", fontsize=12, fontweight="bold", color=INK, zorder=8,
            path_effects=halo,
        )  # fmt: skip
        return
    step = max(1, max(image.shape[:2]) // 96)
    small = image[::step, ::step]
    box = OffsetImage(
        small, zoom=THUMB / max(small.shape[:2]), cmap="gray_r", interpolation="nearest"
    )
    away = AWAY * out
    ax.add_artist(
        AnnotationBbox(
            box, (anchor.u, anchor.v), xybox=tuple(away), boxcoords="offset points", pad=0.12,
            bboxprops={"edgecolor": INK, "facecolor": "#FFFFFF", "linewidth": 1.0},
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 1.0},
            zorder=6,
        )
    )  # fmt: skip
    ax.annotate(
        anchor.letter, (anchor.u, anchor.v), tuple(-12 * out), textcoords="offset points",
        ha="center", va="center", fontsize=12, fontweight="bold", color=INK, zorder=8,
        path_effects=halo,
    )  # fmt: skip
