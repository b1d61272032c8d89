"""Figures of local maps, of the region at a point, of regions on a grid and of tropical forms."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from inscape.figures.drawing import painter
from inscape.figures.style import (
    BLUE,
    CATEGORIES,
    FAINT,
    INK,
    ORANGE,
    RULE,
    SIGNED,
    VERMILION,
    quiet_grid,
)
from inscape.regions.grid_regions import GridRegions
from inscape.regions.local_maps import LocalMaps
from inscape.regions.region_at import RegionAt
from inscape.regions.region_bounds import RegionBounds
from inscape.regions.tropical import Tropical

#: More outputs than this are not shown side by side.
TILES = 10
#: More points than this are not shown as rows of coefficients.
LINES = 200


@painter.register(LocalMaps)
def local_maps(result: LocalMaps, ax: Axes) -> None:
    """Draw the coefficients of the map at the first point as images, or those of all as rows."""
    if len(result.shape) >= 2:
        picture = _tiles(result.images[0, :TILES])
        _signed(ax, picture)
        ax.set_axis_off()
        ax.set_title(f"what each pixel adds to {_outputs(result)}, at the first point")
        return
    order = result.labels[:LINES].sort(stable=True).indices
    _signed(ax, result.jacobians[:LINES][order, 0].numpy(), aspect="auto")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="input", ylabel="points, sorted by their map")
    ax.set_title("slope of the first output in each input")


def _outputs(result: LocalMaps) -> str:
    count = result.jacobians.shape[1]
    if count == 1:
        return "the output"
    return f"outputs 0 to {min(count, TILES) - 1}"


def _tiles(images: Tensor) -> npt.NDArray[Any]:
    """Return images side by side, channels added up, with a gap of nothing between them."""
    flat = images.reshape(len(images), -1, *images.shape[-2:]).sum(1)
    gap = torch.full((flat.shape[1], 1), math.nan, dtype=flat.dtype)
    half = -(-len(flat) // 2) if len(flat) > 5 else len(flat)
    rows = [flat[:half], flat[half:]] if half < len(flat) else [flat]
    lines = []
    for row in rows:
        tiles = [part for image in row for part in (image, gap)][:-1]
        lines.append(torch.cat(tiles, 1))
    width = max(line.shape[1] for line in lines)
    padded = []
    for line in lines:
        wide = torch.full((line.shape[0] + 1, width), math.nan, dtype=flat.dtype)
        wide[:-1, : line.shape[1]] = line
        padded.append(wide)
    pixels: npt.NDArray[Any] = torch.cat(padded)[:-1].numpy()
    return pixels


def _signed(ax: Axes, picture: npt.NDArray[Any], **look: Any) -> None:
    """Draw numbers of both signs around white zero, with their scale."""
    high = float(np.nanmax(np.abs(picture))) or 1.0
    image = ax.imshow(picture, cmap=SIGNED, vmin=-high, vmax=high, interpolation="nearest", **look)
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)


@painter.register(RegionAt)
def region_at(result: RegionAt, ax: Axes) -> None:
    """Draw the linear region as a polygon of a plane, else the distances of its faces."""
    if len(result.point) == 2 and len(result.distances):
        _polygon(result, ax)
    else:
        _distances(result, ax)


def _polygon(result: RegionAt, ax: Axes) -> None:
    size = result.radius if math.isfinite(result.radius) else 0.0
    reach = 3.0 * max(size, float(result.distances.max()))
    corners = result.polygon(reach).numpy()
    ax.add_patch(Polygon(corners, facecolor=to_rgba(BLUE, 0.12), edgecolor="none"))
    sides = zip(corners, np.roll(corners, -1, axis=0), strict=True)
    for start, end in sides:
        middle = torch.from_numpy((start + end) / 2)
        gaps = (result.offsets - result.normals @ middle).abs()
        if float(gaps.min()) <= 1e-9 * (1.0 + reach):
            layer = int(result.layers[int(gaps.argmin())])
            color = CATEGORIES[layer % len(CATEGORIES)] if layer >= 0 else FAINT
            label = f"made by nonlinear layer {layer + 1}" if layer >= 0 else "side of the box"
            ax.plot(*zip(start, end, strict=True), color=color, label=label)
    ax.plot(*result.point.tolist(), marker="o", markersize=4, color=INK, linestyle="")
    ax.add_patch(_circle(result.point, result.ball, VERMILION))
    ax.set(xlabel="first input", ylabel="second input", aspect="equal")
    _legend_once(ax)


def _circle(centre: Tensor, radius: float, color: str) -> Polygon:
    turn = torch.linspace(0, 2 * math.pi, 91, dtype=torch.float64)
    ring = centre + radius * torch.stack([turn.cos(), turn.sin()], 1)
    return Polygon(ring.numpy(), fill=False, edgecolor=color, linestyle=(0, (5, 2)), linewidth=1)


def _legend_once(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        names = sorted(once)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend([once[name] for name in names], names, fontsize=8, **place)


def _distances(result: RegionAt, ax: Axes) -> None:
    """Mark each face at its distance, one line for each nonlinear layer."""
    if not len(result.distances):
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no faces: the region has no end", ha="center", color=FAINT)
        return
    present = sorted(set(result.layers.tolist()))
    for line, layer in enumerate(present):
        in_layer = result.layers == layer
        distances = result.distances[in_layer].numpy()
        ax.plot(distances, np.full(len(distances), line), "|", color=BLUE, markersize=13)
        if result.facet_distances is not None:
            facets = result.facet_distances[in_layer].numpy()
            ax.plot(facets, np.full(len(facets), line), ".", color=ORANGE, markersize=4)
    names = [f"nonlinear layer {layer + 1}" if layer >= 0 else "box" for layer in present]
    counts = [result.by_layer()[layer] for layer in present]
    labels = [f"{name}\n{count} faces" for name, count in zip(names, counts, strict=True)]
    ax.set_yticks(range(len(present)), labels)
    ax.set(ylim=(len(present) - 0.5, -0.5), xlim=(0, None))
    ax.set_xlabel("distance to a face (dot) and to its hyperplane (bar)")
    quiet_grid(ax, "x")


@painter.register(GridRegions)
def grid_regions(result: GridRegions, ax: Axes) -> None:
    """Draw each point of the grid in the colour of its region."""
    count = result.count
    draw = np.random.default_rng(0)
    hues = ListedColormap(0.35 + 0.6 * draw.random((max(count, 2), 3)))
    (left, right), (bottom, top) = (_edges(ticks) for ticks in (result.u.numpy(), result.v.numpy()))
    ax.imshow(
        result.labels.numpy(),
        origin="lower",
        extent=(left, right, bottom, top),
        cmap=hues,
        vmin=-0.5,
        vmax=max(count, 2) - 0.5,
        interpolation="nearest",
        aspect="equal",
    )
    title = f"{result.distinct} regions by {result.method}"
    if result.missed is not None:
        title += f", {result.missed:.1%} of {result.exact} missed"
    ax.set(xlabel="first direction", ylabel="second direction", title=title)


def _edges(ticks: npt.NDArray[Any]) -> tuple[float, float]:
    half = 0.5 * (ticks[1] - ticks[0])
    return float(ticks[0] - half), float(ticks[-1] + half)


@painter.register(Tropical)
def tropical(result: Tropical, ax: Axes) -> None:
    """Draw both maxima and their difference for one input, else the slopes of their terms."""
    if result.plus_slopes.shape[1] == 1:
        _curves(result, ax)
        return
    for part, color, mark in (("plus", BLUE, "o"), ("minus", VERMILION, "x")):
        slopes = getattr(result, f"{part}_slopes")[getattr(result, f"{part}_outputs") == 0]
        at, up = slopes[:, 0].numpy(), slopes[:, 1].numpy()
        ax.scatter(at, up, s=16, marker=mark, color=color, label=f"{len(at)} {part} terms")
    ax.axhline(0, color=RULE, linewidth=0.7, zorder=0)
    ax.axvline(0, color=RULE, linewidth=0.7, zorder=0)
    ax.set(xlabel="slope in the first input", ylabel="slope in the second input")
    ax.legend(fontsize=8)


def _curves(result: Tropical, ax: Axes) -> None:
    """Draw the first output of a network of one input around all of its kinks."""
    kinks = torch.cat([_kinks(*term) for term in result.terms(0)])
    low, high = (float(kinks.min()), float(kinks.max())) if len(kinks) else (-1.0, 1.0)
    pad = 0.2 * (high - low) or 1.0
    ends = torch.tensor([low - pad, high + pad], dtype=torch.float64)
    at = torch.cat([kinks, ends]).sort().values
    plus, minus = ((at[:, None] @ s.T + b).amax(1) for s, b in result.terms(0))
    ax.plot(at, plus, color=BLUE, linewidth=1, label="plus")
    ax.plot(at, minus, color=VERMILION, linewidth=1, linestyle=(0, (5, 2)), label="minus")
    ax.plot(at, plus - minus, color=INK, linewidth=1.8, label="difference: the network")
    ax.set(xlabel="input", ylabel="output")
    ax.legend(fontsize=8)
    quiet_grid(ax)


def _kinks(slopes: Tensor, constants: Tensor) -> Tensor:
    """Return where a maximum of functions of one input passes from term to term."""
    order = slopes[:, 0].argsort()
    slopes, constants = slopes[order, 0], constants[order]
    zeros: Tensor = -constants.diff() / slopes.diff()
    return zeros


@painter.register(RegionBounds)
def region_bounds(result: RegionBounds, ax: Axes) -> None:
    """Draw the bounds, and the count where there is one, as powers of ten."""
    rows = [row for row in result.rows() if row["log10"] is not None]
    powers = [float(row["log10"] or 0) for row in rows]
    colors = [VERMILION if row["what"] == "count" else BLUE for row in rows]
    ax.barh(range(len(rows)), powers, color=colors, alpha=0.7, height=0.6)
    for line, row in enumerate(rows):
        ax.text(powers[line], line, f" {row['value']}", va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), [str(row["what"]) for row in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1.25 * max([*powers, 1.0])))
    ax.set_xlabel("regions, as a power of ten")
    quiet_grid(ax, "x")
