"""Cells in canonical order: sorted by position, independent of the order of the units."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.piecewise.planes import merging, order_kernels
from inscape.piecewise.planes.budget import Ending
from inscape.piecewise.planes.cutting import Cells
from inscape.piecewise.planes.resolution import Losses, losses
from inscape.piecewise.planes.threads import Workers

Array = npt.NDArray[Any]

#: A direction along which two vertices hardly ever coincide.
SLANT = np.array([0.7548776662466927, 0.5698402909980532])

#: Fewer cells or edges than these are not shared among threads.
LEAST = 8192


@dataclass(frozen=True, eq=False, kw_only=True)
class CanonicalCells:
    """Cells in canonical order as flat arrays: corners, edges, maps and packed patterns.

    ``areas`` and those of ``losses`` are in the coordinates of ``place``.
    """

    place: Array
    first: Array
    corners: Array
    areas: Array
    ends: Array
    sides: Array
    made: Array
    maps: Array
    merged: Array
    patterns: Array
    units: list[int]
    losses: Losses
    ended_by: Ending


def in_canonical_order(cells: Cells) -> CanonicalCells:
    """Return vertices, cells and edges sorted by position, without those that no cell uses."""
    workers = Workers(cells.threads)
    try:
        return _ordered(cells, workers)
    finally:
        workers.close()


def _ordered(cells: Cells, workers: Workers) -> CanonicalCells:
    plane = cells.plane
    level = plane.place @ SLANT
    corners, middle = np.empty(len(plane.halves), np.int32), np.empty(plane.faces)
    seen = (plane.first, plane.halves, plane.ends, level, corners, middle)
    workers.over(plane.faces, lambda a, b: order_kernels.cornered(a, b, *seen), LEAST)
    (order, rank), (vertex, kept) = workers.each(
        [partial(_ranked, middle), partial(_numbered, level, corners)]
    )
    place = plane.place[kept]
    ends, sides, made = _edges(cells, vertex, rank, len(kept), workers)
    first, maps, noise = workers.each(
        [
            lambda: np.concatenate([[0], np.cumsum(np.diff(plane.first)[order])]),
            lambda: cells.maps[order],
            lambda: cells.noise[order],
        ]
    )
    loops, areas = np.empty(len(corners), np.int32), np.empty(plane.faces)
    arrays = (order, plane.first, corners, vertex, place, first, loops, areas)
    workers.over(len(order), lambda a, b: order_kernels.loops(a, b, *arrays), LEAST)
    patterns, position = _patterns(cells, order, workers)
    edges, packed = (ends, sides, made), (patterns, position)
    lost = losses(cells.rounding, edges, place, maps, noise, packed, workers)
    return CanonicalCells(
        place=place,
        first=first,
        corners=loops,
        areas=areas,
        ends=ends,
        sides=sides,
        made=made,
        maps=maps,
        merged=_merged(sides, maps, noise, workers),
        patterns=patterns,
        units=cells.history.units,
        losses=lost,
        ended_by=cells.ended_by,
    )


def _ranked(middle: Array) -> tuple[Array, Array]:
    """Return the order of the cells by their middles, and the rank of each."""
    order = np.argsort(middle)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return order, rank


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
    cells: Cells, vertex: Array, rank: Array, vertices: int, workers: Workers
) -> tuple[Array, Array, Array]:
    """Return edges from their lower to their higher vertex, in order, with the new cells."""
    plane = cells.plane
    ends, sides = np.empty_like(plane.ends), np.empty(plane.ends.shape, np.int32)
    edges = (plane.ends, plane.sides, vertex, rank, ends, sides)
    workers.over(len(ends), lambda a, b: order_kernels.turned(a, b, *edges), LEAST)
    order = np.empty(len(ends), np.int64)
    number = order_kernels.edge_order(ends, sides, vertices, order)
    out = tuple(np.empty((number, 2), np.int32) for _ in range(3))
    source = (order, ends, sides, plane.made, *out)
    workers.over(number, lambda a, b: order_kernels.edges_in_order(a, b, *source), LEAST)
    return out[0], out[1], out[2]


def _patterns(cells: Cells, order: Array, workers: Workers) -> tuple[Array, Array]:
    """Return the packed patterns of all cells: a bit per unit, a byte (or four) per window.

    Then for each byte its place in the index of a window, or -1 where it stands for eight units.
    """
    history, rows, widths, positions = cells.history, [], [], []
    for pattern, units in zip(history.rows, history.units, strict=True):
        packed = np.ascontiguousarray(pattern).view(np.uint8)
        rows.append(packed)
        is_bits = pattern.dtype == np.uint64
        widths.append((units + 7) // 8 if is_bits else packed.shape[1])
        index = np.arange(widths[-1]) % pattern.itemsize
        positions.append(np.full_like(index, -1) if is_bits else index)
    out = np.empty((len(order), sum(widths)), np.uint8)
    for k, (row, width) in enumerate(zip(rows, widths, strict=True)):
        source = (order, history.ancestor[k], row, sum(widths[:k]), width, out)
        workers.over(len(order), partial(_gathered, source), LEAST)
    return out, np.concatenate([np.empty(0, np.int64), *positions])


def _gathered(source: tuple[Any, ...], begin: int, end: int) -> None:
    order_kernels.gathered(begin, end, *source)


def _merged(sides: Array, maps: Array, noise: Array, workers: Workers) -> Array:
    """Number the connected groups of cells with one affine map."""
    alike = np.empty(len(sides), np.bool_)
    seen = (sides, np.ascontiguousarray(maps), noise, alike)
    workers.over(len(sides), lambda a, b: merging.alike_maps(a, b, *seen), LEAST)
    root = merging.joined(sides, alike, len(maps))
    is_root = root == np.arange(len(root))
    return (np.cumsum(is_root) - 1)[root]
