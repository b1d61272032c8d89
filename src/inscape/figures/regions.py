"""Figures of linear regions in a plane: their cells, lines by layer, boundaries and duals."""

from typing import Any

import matplotlib.patheffects as effects
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection, LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.path import Path

from inscape.figures import hues
from inscape.figures.drawing import painter
from inscape.figures.hues import Color
from inscape.figures.style import CATEGORIES, FAINT, INK, RULE, new_axes, styled
from inscape.piecewise.planes.raster import raster
from inscape.regions.boundary import Boundary, decision_boundary
from inscape.regions.plane_regions import PlaneRegions

Array = npt.NDArray[Any]

#: More cells than this are drawn as pixels, and more than that many edges for each of them too,
#: unless shapes are asked for.
LIMIT, EDGES = 5_000, 3
#: Lines that are one shape where they are many.
TOGETHER = 500
#: Pixels along the longer side of a picture, and the inches that these are drawn for.
PIXELS, PAPER = 1200, 4.0
#: A window that is narrower than this fraction of its distance from zero has no ticks.
NARROW = 1e-3
#: Lines on top of colours: nearly black, whatever the paper.
DARK, LIGHT = "#15151A", "#FFFFFF"


@painter.register(PlaneRegions)
def _plane_regions(result: PlaneRegions, ax: Axes) -> None:
    """Draw the linear regions; similar activation patterns have similar colours."""
    draw_regions(result, ax)
    merged = "" if result.regions == result.cells else f", {result.regions} with a map of their own"
    ax.set_title(f"{_count(result.cells)}{merged}{_found_on(result)}")


@painter.register(Boundary)
def _boundary(result: Boundary, ax: Axes) -> None:
    """Draw the decision boundary, or the line on which the output has one value."""
    _window(result, ax)
    edge(result, ax, color=INK, halo=False)
    label = "decision boundary" if not result.level else f"line at output {result.level:.3g}"
    length = f"{label} of length {result.length:.4g}" if len(result.lengths) else f"no {label}"
    ax.set_title(f"{length}{_found_on(result)}")


def draw_regions(
    result: PlaneRegions,
    ax: Axes | None = None,
    *,
    color: Color = "pattern",
    output: int | None = None,
    lines: bool = True,
    boundary: bool = False,
    bar: bool = True,
    like: PlaneRegions | None = None,
    vector: bool = False,
) -> Axes:
    """Draw the linear regions in a plane and return the axes.

    More than 5000 cells are drawn as pixels, in PDF and SVG too, unless ``vector`` is set. What is
    found of a plane before a budget was reached says so in its title.

    Args:
        result: The regions.
        ax: Axes to draw on; new ones by default.
        color: ``"pattern"``: by activation, similar patterns in similar colours; ``"map"``: the hue
            is where the slope points, the strength how steep it is; ``"area"``; ``"value"``: the
            output itself, linear on each cell; ``"plain"``: lines alone.
        output: The output that is meant; by default the first, and for maps all together.
        lines: Whether to draw the edges of cells, those of early layers stronger.
        boundary: Whether to draw on top where the decision changes.
        bar: Whether to draw the scale of areas or values, or to name the layers of lines.
        like: Other regions whose colours are to be matched, e.g. in pictures of one training.
        vector: Whether cells and lines stay shapes however many they are; only the values of
            ``"value"`` are pixels always. 100,000 cells make a PDF or SVG of tens of megabytes.
    """
    with styled():
        ax = new_axes() if ax is None else ax
        _window(result, ax)
        if color in ("area", "value"):
            _on_a_scale(result, ax, color, output or 0, bar, like, vector=vector)
        elif color != "plain":
            _fill(result, ax, colors(result, color, output, like), vector=vector)
        if lines:
            _edges(result, ax, color, vector=vector)
        if color == "plain" and bar:
            _layers(result, ax)
        if boundary:
            edge(decision_boundary(result), ax)
        if not result.complete:
            ax.set_title(f"{_count(result.cells)}{_found_on(result)}")
    return ax


def colors(
    result: PlaneRegions,
    color: Color = "pattern",
    output: int | None = None,
    like: PlaneRegions | None = None,
) -> Array:
    """Return the colour of every cell, on the scale of other regions if these are given."""
    if color == "pattern":
        return hues.by_pattern(result, like)
    if color == "map":
        return hues.by_map(result, output, like)
    tint, norm = hues.scale(like or result, color, output or 0)
    middles = hues.middle_values(result, output or 0)
    rgb: Array = tint(norm(result.areas.numpy() if color == "area" else middles))[:, :3]
    return rgb


def edge(
    result: Boundary, ax: Axes, *, color: str = DARK, width: float = 1.5, halo: bool = True
) -> LineCollection:
    """Draw a boundary on axes that have the plane's coordinates."""
    parts = np.split(result.points.numpy(), result.first[1:-1].numpy())
    drawn = LineCollection(
        [part for part in parts if len(part)], colors=color, linewidths=width, capstyle="round"
    )
    if halo:
        drawn.set_path_effects(
            [effects.Stroke(linewidth=width + 1.6, foreground=LIGHT), effects.Normal()]
        )
    drawn.set_zorder(4)
    ax.add_collection(drawn, autolim=False)
    return drawn


def dual(
    result: PlaneRegions,
    ax: Axes | None = None,
    *,
    color: Color = "pattern",
    output: int | None = None,
    vector: bool = False,
) -> Axes:
    """Draw every cell as a dot at its two slopes, as large as its area, and return the axes.

    Dots of neighbours are joined up to 5000 cells; of more cells the dots are smaller and, unless
    ``vector`` is set, pixels. For all of several outputs together the axes are the two directions
    in which maps differ most.
    """
    with styled():
        ax = new_axes() if ax is None else ax
        at = hues.coefficients(result, output)
        many = result.cells > LIMIT
        order = np.argsort(-result.areas.numpy(), kind="stable")
        fraction = result.areas.numpy()[order] / float(result.areas.sum())
        if not many:
            a, b = result.neighbours[(result.neighbours >= 0).all(1)].numpy().T
            pairs = list(np.stack([at[a], at[b]], 1))
            links = LineCollection(pairs, colors=FAINT, linewidths=0.3)
            links.set(alpha=0.35, zorder=1)
            ax.add_collection(links)
        ax.scatter(
            at[order, 0],
            at[order, 1],
            s=(1.0 if many else 4.0) + 1600 * fraction,
            c=colors(result, color, output)[order],
            edgecolors=LIGHT,
            linewidths=0.0 if many else 0.25,
            zorder=2,
            rasterized=many and not vector,
        )
        ax.axhline(0, color=RULE, linewidth=0.6, zorder=0)
        ax.axvline(0, color=RULE, linewidth=0.6, zorder=0)
        is_scalar = output is not None or result.slopes.shape[1] == 1
        names = (
            ("slope in the first direction", "slope in the second direction")
            if is_scalar
            else ("first component", "second component")
        )
        ax.set(xlabel=names[0], ylabel=names[1], aspect="equal", adjustable="datalim")
    return ax


def portrait(
    result: PlaneRegions,
    *,
    color: Color = "map",
    output: int | None = None,
    boundary: bool = True,
    vector: bool = False,
) -> Figure:
    """Return a figure of the regions with their boundary, and beside it the dual, in equal colours.

    The arguments are those of ``draw_regions``. Above 5000 cells the dots of the dual are pixels,
    unless ``vector`` is set, and neighbours are not joined.
    """
    with styled():
        figure = Figure(figsize=(8.4, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_regions(result, left, color=color, output=output, boundary=boundary, vector=vector)
        left.set_title(f"{_count(result.cells)}{_found_on(result)}")
        dual(result, right, color=color, output=output, vector=vector)
        joined = ", joined to its neighbours" if result.cells <= LIMIT else ""
        right.set_title(f"their slopes: a dot for each region{joined}")
    return figure


def _window(result: PlaneRegions | Boundary, ax: Axes) -> None:
    """Fit the axes to the domain, both directions in the lengths of the input space."""
    low, high = result.domain.amin(0).tolist(), result.domain.amax(0).tolist()
    gram = result.frame.gram
    aspect = float((gram[1, 1] / gram[0, 0]).sqrt())
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect=aspect)
    names = ("first input", "second input")
    if not _is_whole(result):
        names = ("first direction of the plane", "second direction of the plane")
    ax.set(xlabel=names[0], ylabel=names[1])
    if min(high[0] - low[0], high[1] - low[1]) < NARROW * max(map(abs, (*low, *high))):
        ax.set(xticks=[], yticks=[])  # their digits would all be alike
        ax.set_xlabel(f"{names[0]} (window {high[0] - low[0]:.2g} wide)")
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0)


def _count(cells: int) -> str:
    return "1 linear region" if cells == 1 else f"{cells:,} linear regions"


def _found_on(result: PlaneRegions | Boundary) -> str:
    """Say which fraction of the window was covered, if that is not all of it."""
    if result.complete:
        return ""
    part = f"{result.covered:.1%}" if result.covered >= 5e-4 else "less than 0.1%"
    return f" on {part} of the window"


def _is_whole(result: PlaneRegions | Boundary) -> bool:
    """Tell whether the plane is the input space itself."""
    axes = result.axes.flatten(1)
    axis_aligned = axes.shape[1] == 2 and bool((axes == torch.eye(2)).all())
    return axis_aligned and not bool(result.origin.any())


def _fill(result: PlaneRegions, ax: Axes, tints: Array, *, vector: bool) -> None:
    """Fill the cells with colours: as polygons while they are few or as asked, else as pixels."""
    if result.cells > LIMIT and not vector:
        cells = _pixels(result, 2 * PIXELS)
        inks = np.zeros((result.cells + 1, 4), np.float32)  # the last one, of cell -1, is empty
        inks[:-1, :3], inks[:-1, 3] = tints, 1.0
        quarters = [inks[cells[i::2, j::2]] for i in (0, 1) for j in (0, 1)]
        _image(ax, np.add.reduce(quarters) / 4)
        return
    place, corners = result.vertices.numpy(), result.corners.numpy()
    loops = np.split(place[corners], result.first[1:-1].numpy())
    # an edge in the colour of its cell hides the seam between two neighbours
    cells_drawn = PolyCollection(loops, facecolors=tints, edgecolors=tints, linewidths=0.4)
    cells_drawn.set(joinstyle="round", zorder=1)
    ax.add_collection(cells_drawn, autolim=False)


def _lengths(result: PlaneRegions) -> tuple[float, float]:
    """Return width and height of the window in the input space."""
    extent = result.domain.amax(0) - result.domain.amin(0)
    width, height = (extent * result.frame.gram.diagonal().sqrt()).tolist()
    return width, height


def _pixels(result: PlaneRegions, longer: int) -> Array:
    """Return the cell under each pixel, with an even number of rows and of columns."""
    low, high = result.domain.amin(0), result.domain.amax(0)
    width, height = _lengths(result)
    most = max(width, height)
    shape = tuple(2 * max(1, round(longer * side / most / 2)) for side in (height, width))
    return raster(
        result.vertices.numpy(),
        result.corners.numpy(),
        result.first.numpy(),
        low.numpy(),
        high.numpy(),
        (shape[0], shape[1]),
    )


class _Picture(AxesImage):
    """Pixels that go whole into vector files, and are averaged where the screen has fewer."""

    def draw(self, renderer: Any) -> None:
        self.set_interpolation("none" if renderer.option_scale_image() else "antialiased")
        super().draw(renderer)


def _image(ax: Axes, picture: Array, zorder: float = 1.0, **look: Any) -> None:
    """Fill the window with pixels, whose rows go up."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    drawn = _Picture(ax, extent=(left, right, bottom, top), origin="lower", zorder=zorder, **look)
    drawn.set_data(picture)
    drawn.set_clip_path(ax.patch)
    ax.add_image(drawn)


def _on_a_scale(
    result: PlaneRegions,
    ax: Axes,
    color: Color,
    output: int,
    bar: bool,
    like: PlaneRegions | None,
    *,
    vector: bool,
) -> None:
    """Fill the cells by area, or every pixel by the value of the output there."""
    tint, norm = hues.scale(like or result, color, output)
    if color == "area":
        _fill(result, ax, colors(result, color, like=like), vector=vector)
    else:
        cells = _pixels(result, PIXELS)
        _image(ax, _values(result, cells, output), cmap=tint, norm=norm)
    figure = ax.get_figure(root=True)
    if bar and figure is not None:
        label, beyond = ("area of the cell", "min") if color == "area" else ("output", "both")
        look: dict[str, Any] = {"shrink": 0.8, "pad": 0.02, "label": label, "extend": beyond}
        drawn = figure.colorbar(ScalarMappable(norm, tint), ax=ax, **look)
        drawn.outline.set_visible(False)


def _values(result: PlaneRegions, cells: Array, output: int) -> Array:
    """Return the output at the middle of each pixel, by the map of the cell under it."""
    (rows, columns), low = cells.shape, result.domain.amin(0).numpy()
    step = (result.domain.amax(0).numpy() - low) / (columns, rows)
    u = low[0] + step[0] * (np.arange(columns) + 0.5) - float(result.center[0])
    v = low[1] + step[1] * (np.arange(rows) + 0.5) - float(result.center[1])
    slopes = result.slopes[:, output].numpy()[cells]
    level = result.intercepts[:, output].numpy()[cells]
    values = level + slopes[:, :, 0] * u + slopes[:, :, 1] * v[:, None]
    return np.ma.masked_array(values, cells < 0)


def _edges(result: PlaneRegions, ax: Axes, color: Color, *, vector: bool) -> None:
    """Draw the edges of cells by the layer that made them, the first on top and strongest."""
    if len(result.edges) <= LIMIT * EDGES or vector:
        _add_edges(result, ax, color)
        return
    width, height = _lengths(result)
    inches = (PAPER * width / max(width, height), PAPER * height / max(width, height))
    figure = Figure(figsize=inches, dpi=PIXELS / PAPER, facecolor="none")
    canvas = FigureCanvasAgg(figure)
    sheet = figure.add_axes((0, 0, 1, 1))
    sheet.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    sheet.set_axis_off()
    _add_edges(result, sheet, color)
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
    _image(ax, np.asarray(pixels)[::-1], zorder=3)


def _add_edges(result: PlaneRegions, ax: Axes, color: Color) -> None:
    op = result.switching_units[:, 0].numpy()
    ends = result.vertices.numpy()[result.edges.numpy()]
    uncoloured = color == "plain"
    thin = min(1.0, (1500 / max(1, len(op))) ** (0.3 if uncoloured else 0.4))
    for k in sorted(set(op[op >= 0].tolist()), reverse=True):
        width = (1.3 if uncoloured else 0.8) * thin * 0.75**k
        tone = (
            CATEGORIES[k % len(CATEGORIES)] if uncoloured else DARK if color == "value" else LIGHT
        )
        strokes = _strokes(ends[op == k], tone, width)
        strokes.set(
            zorder=3 - 0.01 * k, alpha=1.0 if uncoloured else 0.3 if color == "value" else 0.8
        )
        ax.add_collection(strokes, autolim=False)


def _strokes(ends: Array, tone: str, width: float) -> Collection:
    """Return lines; of many, some hundreds at a time as one shape, which files take faster."""
    if len(ends) <= LIMIT:
        return LineCollection(list(ends), colors=tone, linewidths=width, capstyle="round")
    codes = np.tile(np.array([Path.MOVETO, Path.LINETO], Path.code_type), len(ends))
    flat, size = ends.reshape(-1, 2), 2 * TOGETHER
    starts = range(0, len(flat), size)
    paths = [Path(flat[a : a + size], codes[a : a + size]) for a in starts]
    return PathCollection(
        paths, facecolors="none", edgecolors=tone, linewidths=width, capstyle="round"
    )


def _layers(result: PlaneRegions, ax: Axes) -> None:
    """Name the colours of lines, outside the window."""
    layers = sorted(set(result.switching_units[:, 0].tolist()) - {-1})
    marks = [Line2D([], [], color=CATEGORIES[k % len(CATEGORIES)]) for k in layers]
    names = [f"nonlinear layer {k + 1}" for k in layers]
    ax.legend(marks, names, loc="upper left", bbox_to_anchor=(1.0, 1.0))
