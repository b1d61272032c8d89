"""The figure of a window in the colours of the page, drawn by the library: for PDF and films."""

import io
from contextlib import suppress
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from inscape.explorer.cells import at_centroids
from inscape.explorer.class_pieces import class_pieces
from inscape.explorer.colours import answer_colours, cell_colours, class_colour, on_paper
from inscape.explorer.subject import ExploredSubject
from inscape.figures.regions import draw_regions, edge
from inscape.figures.style import CATEGORIES, PAPER, styled
from inscape.regions import PlaneRegions, decision_boundary

Colour = Literal["class", "confidence", "pattern", "map"]
Edges = Literal["plain", "layer", "none"]
Format = Literal["pdf", "svg", "png"]

#: Side of a figure in inches, and dots of an inch where it is made of pixels.
INCHES, DOTS = 5.0, 200
#: More cells than this are drawn as pixels in PDF and SVG as well.
MOST = 40_000


def drawn_window(
    subject: ExploredSubject,
    regions: PlaneRegions,
    ax: Axes,
    *,
    colour: Colour = "class",
    edges: Edges = "plain",
    like: PlaneRegions | None = None,
) -> Axes:
    """Draw cells in the colours of the page, their edges and the decision boundary."""
    draw_regions(regions, ax, color="plain", lines=False, bar=False)
    is_vector = regions.cells <= MOST
    if colour in ("class", "confidence") and subject.is_competing:
        _answers(subject, regions, ax, colour, is_vector=is_vector)
    elif colour in ("pattern", "map"):
        rgb = cell_colours(regions, colour, like).reshape(-1, 3) / 255
        _polygons(ax, [regions.polygon(i).numpy() for i in range(regions.cells)], rgb, is_vector)
    else:
        draw_regions(regions, ax, color="value", lines=False, bar=False)
    if edges != "none":
        _edges(regions, ax, edges, is_vector=is_vector)
    if subject.is_competing:
        with suppress(ValueError):  # regions too narrow for float64
            edge(decision_boundary(regions), ax, halo=False, width=1.6)
    return ax


def _answers(
    subject: ExploredSubject, regions: PlaneRegions, ax: Axes, colour: str, *, is_vector: bool
) -> None:
    outputs = at_centroids(regions)
    scores = subject.scores(outputs)
    confidence = subject.confidence(outputs).clamp(0, 1).numpy()
    rgb = answer_colours(subject, scores.argmax(1).numpy(), confidence, colour, scores.shape[1])
    cells = [regions.polygon(i).numpy() for i in range(regions.cells)]
    if colour == "class":
        pieces = class_pieces(subject, regions)
        parts = (
            np.split(pieces.vertices, np.cumsum(pieces.counts)[:-1]) if len(pieces.cells) else []
        )
        cells += list(parts)
        more = [on_paper(class_colour(int(number))) for number in pieces.classes]
        rgb = np.concatenate([rgb, np.array(more).reshape(-1, 3)])
    _polygons(ax, cells, rgb, is_vector)


def _polygons(ax: Axes, cells: list[Any], rgb: Any, is_vector: bool) -> None:
    shapes = PolyCollection(
        cells, facecolors=rgb, edgecolors=rgb, linewidths=0.2, rasterized=not is_vector, zorder=2
    )
    ax.add_collection(shapes, autolim=False)


def _edges(regions: PlaneRegions, ax: Axes, edges: Edges, *, is_vector: bool) -> None:
    ends = list(regions.vertices[regions.edges.long()].numpy())
    layer = regions.switching_units[:, 0].numpy()
    colours: Any = "#1b1c1e"
    if edges == "layer":
        colours = [CATEGORIES[k % len(CATEGORIES)] if k >= 0 else "#1b1c1e" for k in layer]
    strength = min(0.7, max(0.1, 40 / max(1.0, len(ends)) ** 0.5))
    lines = LineCollection(
        ends, colors=colours, linewidths=0.45, alpha=strength, rasterized=not is_vector, zorder=3
    )
    ax.add_collection(lines, autolim=False)


def window_figure(
    subject: ExploredSubject,
    regions: PlaneRegions,
    *,
    colour: Colour,
    edges: Edges,
    format: Format,
    title: str = "",
) -> bytes:
    """Return the figure of a window as PDF, SVG or PNG."""
    out = io.BytesIO()
    with styled():
        figure = Figure(figsize=(INCHES, INCHES + 0.5), facecolor=PAPER, layout="constrained")
        ax = figure.add_subplot()
        drawn_window(subject, regions, ax, colour=colour, edges=edges)
        u, v = "u, from the centre of the window", "v, from the centre of the window"
        ax.set(xlabel=u, ylabel=v, title=title)
        figure.savefig(out, format=format, dpi=DOTS, metadata=_metadata(format), transparent=False)
    return out.getvalue()


def _metadata(format: Format) -> dict[str, Any]:
    """Return no date, so that the same window makes the same file."""
    return {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[format]


def window_picture(
    subject: ExploredSubject,
    regions: PlaneRegions,
    *,
    colour: Colour,
    edges: Edges,
    like: PlaneRegions | None,
    title: str,
    pixels: int,
) -> Any:
    """Return the figure of a window as an image of pixels, for a film."""
    from PIL import Image

    with styled():
        figure = Figure(figsize=(4.0, 4.3), facecolor=PAPER)
        ax = figure.add_axes((0.02, 0.02, 0.96, 0.9))
        drawn_window(subject, regions, ax, colour=colour, edges=edges, like=like)
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[], title=title)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=pixels / 4.0, transparent=False)
    return Image.open(out).convert("RGB")
