"""Compiled steps of putting cells, edges and patterns in canonical order, a range at a time."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled

Array = npt.NDArray[Any]


@compiled(reorder=False)
def cornered(
    begin: int,
    end: int,
    first: Array,
    halves: Array,
    ends: Array,
    level: Array,
    corners: Array,
    middle: Array,
) -> None:
    """Write the vertices of each cell, and the mean of their levels."""
    for f in range(begin, end):
        total = 0.0
        for i in range(first[f], first[f + 1]):
            corners[i] = ends[halves[i] >> 1, halves[i] & 1]
            total += level[corners[i]]
        middle[f] = total / (first[f + 1] - first[f])


@compiled(reorder=False)
def turned(
    begin: int,
    end: int,
    ends: Array,
    sides: Array,
    vertex: Array,
    rank: Array,
    new_ends: Array,
    new_sides: Array,
) -> None:
    """Write each edge from its lower to its higher new vertex, with the new cells beside it."""
    for e in range(begin, end):
        a, b = vertex[ends[e, 0]], vertex[ends[e, 1]]
        left = rank[sides[e, 0]] if sides[e, 0] >= 0 else -1
        right = rank[sides[e, 1]] if sides[e, 1] >= 0 else -1
        if a > b:
            a, b, left, right = b, a, right, left
        new_ends[e, 0], new_ends[e, 1] = a, b
        new_sides[e, 0], new_sides[e, 1] = left, right


@compiled(reorder=False)
def edge_order(ends: Array, sides: Array, vertices: int, order: Array) -> int:
    """Write the edges that cells use by their lower, then higher vertex; return how many."""
    start = np.zeros(vertices + 1, np.int64)
    for e in range(len(ends)):
        if sides[e, 0] >= 0 or sides[e, 1] >= 0:
            start[ends[e, 0] + 1] += 1
    for v in range(vertices):
        start[v + 1] += start[v]
    filled = start[:-1].copy()
    for e in range(len(ends)):
        if sides[e, 0] < 0 and sides[e, 1] < 0:
            continue
        v = ends[e, 0]
        at = filled[v]
        filled[v] += 1
        while at > start[v] and ends[order[at - 1], 1] > ends[e, 1]:  # few meet at a vertex
            order[at] = order[at - 1]
            at -= 1
        order[at] = e
    total: int = start[vertices]
    return total


@compiled(reorder=False)
def edges_in_order(
    begin: int,
    end: int,
    order: Array,
    ends: Array,
    sides: Array,
    made: Array,
    out_ends: Array,
    out_sides: Array,
    out_made: Array,
) -> None:
    """Write the edges with their cells and switching units in a new order."""
    for n in range(begin, end):
        e = order[n]
        for a in range(2):
            out_ends[n, a] = ends[e, a]
            out_sides[n, a] = sides[e, a]
            out_made[n, a] = made[e, a]


@compiled(reorder=False)
def loops(
    begin: int,
    end: int,
    order: Array,
    first: Array,
    corners: Array,
    vertex: Array,
    place: Array,
    new_first: Array,
    out: Array,
    areas: Array,
) -> None:
    """Write the cells in their new order, each from its lowest vertex on, and their areas.

    ``place`` is that of the new vertices. Areas are measured from the first corner against
    rounding.
    """
    for n in range(begin, end):
        old, size, new = first[order[n]], first[order[n] + 1] - first[order[n]], new_first[n]
        low = 0
        for i in range(size):
            if vertex[corners[old + i]] < vertex[corners[old + low]]:
                low = i
        for i in range(size):
            out[new + i] = vertex[corners[old + (low + i) % size]]
        x, y = place[out[new], 0], place[out[new], 1]
        twice = 0.0
        for i in range(1, size - 1):
            p, q = out[new + i], out[new + i + 1]
            twice += (place[p, 0] - x) * (place[q, 1] - y) - (place[p, 1] - y) * (place[q, 0] - x)
        areas[n] = twice / 2


@compiled(reorder=False)
def gathered(
    begin: int,
    end: int,
    order: Array,
    ancestor: Array,
    rows: Array,
    at: int,
    width: int,
    out: Array,
) -> None:
    """Write the first bytes of the row of each cell's ancestor from byte ``at`` on."""
    for n in range(begin, end):
        row = ancestor[order[n]]
        for k in range(width):
            out[n, at + k] = rows[row, k]
