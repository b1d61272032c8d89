"""Cells of a plane as arrays of a record, the lines on which classes change, and drawings of both.

Everything is drawn from what :func:`packed` keeps, so that a figure needs records alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Panel

if TYPE_CHECKING:
    from inscape.regions.plane_regions import PlaneRegions

Array = npt.NDArray[Any]


def packed(found: "PlaneRegions", name: str = "") -> dict[str, Array]:
    """Return what a drawing needs of exact cells, as small arrays whose names start alike.

    The affine map of a cell is three numbers for each output: two slopes and the value at the
    origin of the plane.
    """
    constants = found.intercepts - (found.slopes @ found.center[:, None]).squeeze(2)
    maps = np.concatenate([found.slopes.numpy(), constants.numpy()[:, :, None]], 2)
    return {
        f"{name}vertices": found.vertices.numpy().astype(np.float32),
        f"{name}corners": found.corners.numpy().astype(np.int32),
        f"{name}first": found.first.numpy().astype(np.int32),
        f"{name}maps": maps.astype(np.float32),
        f"{name}merged": found.merged.numpy().astype(np.int32),
        f"{name}edges": found.edges.numpy().astype(np.int32),
        f"{name}makers": found.switching_units.numpy().astype(np.int32),
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """Convex cells with their affine maps, as :func:`packed` keeps them."""

    vertices: Array
    corners: Array
    first: Array
    maps: Array
    merged: Array
    edges: Array
    makers: Array

    @classmethod
    def of(cls, values: Mapping[str, Any], name: str = "") -> "Cells":
        """Return the cells that a record holds under a name."""
        names = ("vertices", "corners", "first", "maps", "merged", "edges", "makers")
        return cls(**{one: np.asarray(values[name + one]) for one in names})

    def __len__(self) -> int:
        return len(self.merged)

    @cached_property
    def polygons(self) -> list[Array]:
        """Return the corners of every cell."""
        place = self.vertices.astype(float)
        bounds = zip(self.first[:-1], self.first[1:], strict=True)
        return [place[self.corners[low:high]] for low, high in bounds]

    @cached_property
    def outputs(self) -> list[Array]:
        """Return the outputs at the corners of every cell, by its own map."""
        maps = self.maps.astype(float)
        return [
            corners @ own[:, :2].T + own[:, 2]
            for corners, own in zip(self.polygons, maps, strict=True)
        ]

    @cached_property
    def regions(self) -> Array:
        """Return one affine map for each merged region."""
        _, some = np.unique(self.merged, return_index=True)
        found: Array = self.maps[some].astype(float)
        return found


def boundary(cells: Cells) -> Array:
    """Return the pieces of the lines on which the class changes, as pairs of ends.

    The class is the largest output, or the sign of a single one. Pieces are exact in each cell.
    """
    found: list[Array] = []
    for corners, values in zip(cells.polygons, cells.outputs, strict=True):
        scores = values if values.shape[1] > 1 else np.concatenate([values, 0 * values], 1)
        if len(set(scores.argmax(1).tolist())) > 1:
            found += _pieces(corners, scores)
    return np.array(found).reshape(-1, 2, 2)


def _pieces(corners: Array, scores: Array) -> list[Array]:
    """Return where two outputs are equal and the largest ones, in one convex cell."""
    found = []
    for i in range(scores.shape[1]):
        for j in range(i):
            ends = _crossing(corners, scores, scores[:, i] - scores[:, j])
            if ends is not None:
                piece = _largest(*ends, i, j)
                found += [] if piece is None else [piece]
    return found


def _crossing(corners: Array, scores: Array, gap: Array) -> tuple[Array, Array] | None:
    """Return both ends of the line of gap 0 in a cell, and the outputs there."""
    after = np.roll(gap, -1)
    sides = np.nonzero((gap > 0) != (after > 0))[0]
    if len(sides) != 2:
        return None
    share = (gap[sides] / (gap[sides] - after[sides]))[:, None]
    places, values = (
        (1 - share) * rows[sides] + share * np.roll(rows, -1, axis=0)[sides]
        for rows in (corners, scores)
    )
    return places, values


def _largest(places: Array, values: Array, i: int, j: int) -> Array | None:
    """Return the part of a line on which no other output is above the two that are equal there."""
    low, high = 0.0, 1.0
    others = [k for k in range(values.shape[1]) if k not in (i, j)]
    for start, end in (values[:, [i]] - values[:, others]).T:
        if start < 0 and end < 0:
            return None
        if start < 0:
            low = max(low, start / (start - end))
        elif end < 0:
            high = min(high, start / (start - end))
    step = places[1] - places[0]
    return places[0] + np.array([[low], [high]]) * step if low < high else None


def positive_parts(cells: Cells, *, positive: bool = True) -> list[Array]:
    """Return the parts of the cells where a single output is above zero, or not."""
    parts = []
    for corners, outputs in zip(cells.polygons, cells.outputs, strict=True):
        values = outputs[:, 0] if positive else -outputs[:, 0]
        kept: list[Array] = []
        for k, value in enumerate(values):
            before = values[k - 1]
            if (value > 0) != (before > 0):
                share = before / (before - value)
                kept.append((1 - share) * corners[k - 1] + share * corners[k])
            kept += [corners[k]] if value > 0 else []
        parts += [np.array(kept)] if len(kept) > 2 else []
    return parts


def random_colours(count: int, seed: int = 1) -> Array:
    """Return colours by chance, neither white nor black: lines in both must show."""
    from matplotlib.colors import hsv_to_rgb

    hue, rest, value = np.random.default_rng(seed).random((3, count))
    found: Array = hsv_to_rgb(np.stack([hue, 0.35 + 0.4 * rest, 0.55 + 0.35 * value], 1))
    return found


def tiles(ax: Panel, cells: Cells, colours: Any = None) -> None:
    """Fill every cell, by default with a colour by chance for each merged region."""
    from matplotlib.collections import PolyCollection

    if colours is None:
        colours = random_colours(int(cells.merged.max()) + 1)[cells.merged]
    looks = {"facecolors": colours, "edgecolors": "face", "linewidths": 0.2}  # no seams
    ax.add_collection(PolyCollection(cells.polygons, **looks))
    _frame(ax, cells)


def signs(ax: Panel, cells: Cells) -> None:
    """Fill where the output is positive in one colour, and the rest in another."""
    from matplotlib.collections import PolyCollection

    from inscape.figures.style import BLUE, VERMILION

    for positive, colour in ((True, BLUE), (False, VERMILION)):
        parts = positive_parts(cells, positive=positive)
        filled = PolyCollection(parts, facecolors=colour, edgecolors="none", alpha=0.3)
        ax.add_collection(filled)
    _frame(ax, cells)


def bends(ax: Panel, cells: Cells, layer: int | None = None, **looks: Any) -> None:
    """Draw the edges that a layer's units make, a colour for each; of all layers in black."""
    from matplotlib.collections import LineCollection

    from inscape.figures.style import CATEGORIES, INK

    made = cells.makers[:, 0] >= 0 if layer is None else cells.makers[:, 0] == layer
    ends = cells.vertices[cells.edges[made]]
    units = cells.makers[made, 1]
    colours = [INK if layer is None else CATEGORIES[k % len(CATEGORIES)] for k in units]
    ax.add_collection(LineCollection(list(ends), **{"colors": colours, "linewidths": 0.8, **looks}))
    _frame(ax, cells)


def class_lines(ax: Panel, cells: Cells, colour: str = "white", width: float = 1.4) -> None:
    """Draw the lines on which the class changes."""
    from matplotlib.collections import LineCollection

    lines = LineCollection(list(boundary(cells)), colors=colour, linewidths=width)
    ax.add_collection(lines)


def dual(ax: Panel, coefficients: Array) -> None:
    """Draw maps as points: the two slopes are the place, the constant is the colour."""
    from inscape.figures.style import SIGNED, quiet_grid

    x, y, constant = np.asarray(coefficients, dtype=float).T
    most = float(np.abs(constant).max()) or 1.0
    marks = ax.scatter(x, y, 14, constant, cmap=SIGNED, vmin=-most, vmax=most, linewidths=0.3)
    marks.set_edgecolor("black")
    ax.set(xlabel="slope along x1", ylabel="slope along x2")
    quiet_grid(ax)


def surface(ax: Any, cells: Cells) -> None:
    """Draw a single output as a surface over the plane, with the lines on which it is zero."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection  # type: ignore[import-untyped]

    from inscape.figures.style import INK, SKY, VERMILION

    whole = zip(cells.polygons, cells.outputs, strict=True)
    faces = [np.concatenate([corners, values[:, :1]], 1) for corners, values in whole]
    looks = {"facecolors": SKY, "edgecolors": VERMILION, "linewidths": 0.4, "alpha": 0.55}
    ax.add_collection3d(Poly3DCollection(faces, **looks), autolim=False)
    pieces = boundary(cells)
    flat = [np.concatenate([ends, np.zeros((2, 1))], 1) for ends in pieces]
    ax.add_collection3d(Line3DCollection(flat, colors=INK, linewidths=1.2), autolim=False)
    low, high = cells.vertices.min(0), cells.vertices.max(0)
    heights = np.concatenate([values[:, 0] for values in cells.outputs])
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(heights.min(), heights.max()))
    ax.tick_params(labelsize=6, pad=-2)


def _frame(ax: Panel, cells: Cells) -> None:
    (left, bottom), (right, top) = cells.vertices.min(0), cells.vertices.max(0)
    ax.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    ax.set_aspect("equal")
