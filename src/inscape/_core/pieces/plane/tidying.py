"""Cells in an order of their own: by place, whatever the order of the units that made them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.compiled import compiled
from inscape._core.pieces.plane import merging
from inscape._core.pieces.plane.cutting import Cells

Array = npt.NDArray[Any]

#: A direction along which hardly ever two places are level.
SLANT = np.array([0.7548776662466927, 0.5698402909980532])


@dataclass(frozen=True, eq=False, kw_only=True)
class Tidy:
    """Cells as plain arrays: corners of each, edges with their cells, maps, packed choices."""

    place: Array
    first: Array
    corners: Array
    ends: Array
    sides: Array
    made: Array
    maps: Array
    merged: Array
    patterns: Array
    units: list[int]
    complete: bool


def tidy(found: Cells) -> Tidy:
    """Order vertices, cells and edges by place, and leave out what no cell uses."""
    plane = found.plane
    corners = plane.corners()
    sizes = np.diff(plane.first)
    level = plane.place @ SLANT
    order = np.argsort(np.add.reduceat(level[corners], plane.first[:-1]) / sizes)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    vertex, kept_vertices = _numbered(level, corners)
    used = np.zeros(len(plane.ends), bool)
    used[plane.halves >> 1] = True
    ends, sides, made = _edges(plane.ends[used], plane.sides[used], plane.made[used], vertex, rank)
    first = np.concatenate([[0], np.cumsum(sizes[order])])
    loops = np.empty(len(corners), np.int32)
    _loops(order, plane.first, vertex[corners], first, loops)
    maps = found.maps[order]
    patterns = [_packed(found, k)[order] for k in range(len(found.history.rows))]
    return Tidy(
        place=plane.place[kept_vertices],
        first=first,
        corners=loops,
        ends=ends,
        sides=sides,
        made=made,
        maps=maps,
        merged=_merged(sides, maps, found.noise[order]),
        patterns=np.concatenate([np.empty((len(order), 0), np.uint8), *patterns], 1),
        units=found.history.units,
        complete=found.complete,
    )


def _numbered(level: Array, corners: Array) -> tuple[Array, Array]:
    """Return the new number of every vertex (-1: not used), and the old of every new."""
    used = np.zeros(len(level), bool)
    used[corners] = True
    kept = np.flatnonzero(used)
    kept = kept[np.argsort(level[kept])]
    number = np.full(len(level), -1, np.int32)
    number[kept] = np.arange(len(kept))
    return number, kept


def _edges(
    ends: Array, sides: Array, made: Array, vertex: Array, rank: Array
) -> tuple[Array, Array, Array]:
    """Return edges from their lower to their higher vertex, in order, with the new cells."""
    ends = vertex[ends]
    sides = np.where(sides >= 0, rank[sides], -1).astype(np.int32)
    turned = ends[:, 0] > ends[:, 1]
    ends[turned] = ends[turned, ::-1]
    sides[turned] = sides[turned, ::-1]
    order = np.argsort(ends[:, 0].astype(np.int64) * (ends.max() + 1) + ends[:, 1])
    return ends[order], sides[order], made[order]


@compiled(reorder=False)
def _loops(order: Array, first: Array, corners: Array, new_first: Array, out: Array) -> None:
    """Write the corners of the cells in their new order, each loop from its lowest vertex on."""
    for n in range(len(order)):
        begin, size = first[order[n]], first[order[n] + 1] - first[order[n]]
        low = 0
        for i in range(size):
            if corners[begin + i] < corners[begin + low]:
                low = i
        for i in range(size):
            out[new_first[n] + i] = corners[begin + (low + i) % size]


def _packed(found: Cells, k: int) -> Array:
    """Return the choices of one bend on every cell: a bit a unit, a byte (or four) a window."""
    history = found.history
    rows = history.rows[k]
    if rows.dtype == np.uint64:
        rows = rows.view(np.uint8)[:, : (history.units[k] + 7) // 8]
    rows = np.ascontiguousarray(rows).view(np.uint8)
    return rows[history.ancestor[k]]


def _merged(sides: Array, maps: Array, noise: Array) -> Array:
    """Number the groups of cells that touch along an edge and have one map."""
    alike = np.empty(len(sides), np.bool_)
    merging.alike_maps(sides, np.ascontiguousarray(maps), noise, alike)
    root = merging.joined(sides, alike, len(maps))
    is_root = root == np.arange(len(root))
    return (np.cumsum(is_root) - 1)[root]
