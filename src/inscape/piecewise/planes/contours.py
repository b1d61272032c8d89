"""Where the maximum of several continuous functions, affine on every cell, switches.

A level set is the special case of two functions, one of them constant. Every vertex is judged once,
by the values that it has; which functions are largest at it, where an edge passes from one to the
next, and how a cell is divided, all follow from that. Ends of segments are vertices, points of
edges or points inside a cell, known by their numbers, so that they are joined without comparing
places.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.piecewise.planes.largest_function import Crossings, Node, divided
from inscape.piecewise.planes.polylines import Polylines, chained

Array = npt.NDArray[Any]

#: Functions nearer than this fraction of the largest value are equal at a vertex.
TIE = 1e-12

#: Functions whose slopes differ by less than this fraction of the largest are equal on a cell.
PARALLEL = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Cover:
    """Cells of a plane, and functions that are affine on each of them.

    ``values`` has them at the vertices, ``intercepts`` and ``slopes`` at the cells' centroids.
    """

    place: Array
    corners: Array
    first: Array
    ends: Array
    sides: Array
    values: Array
    intercepts: Array
    slopes: Array

    @property
    def extent(self) -> float:
        """Return the longer side of the box around all vertices."""
        return float(np.ptp(self.place, axis=0).max())


def contours(cover: Cover) -> Polylines:
    """Return where the largest function switches, as polylines."""
    slack = TIE * float(np.abs(cover.values).max(initial=0.0))
    tied = cover.values >= cover.values.max(1, keepdims=True) - slack
    common = tied[cover.ends[:, 0]] & tied[cover.ends[:, 1]]
    shared = common.sum(1)
    crossings = _crossings(cover, tied, np.flatnonzero(shared == 0))
    along = _ties_along(cover, np.flatnonzero(shared > 1), common)
    inside = _inside(cover, tied, crossings, slack)
    place = np.concatenate([cover.place, crossings.place, inside.place])
    nodes = np.concatenate([along.nodes, inside.nodes])
    between = np.concatenate([along.between, inside.between])
    return chained(place, nodes, between)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Segments:
    """Segments by the numbers of their ends, the two functions that meet, and new places."""

    nodes: Array
    between: Array
    place: Array


def _crossings(cover: Cover, tied: Array, edges: Array) -> Crossings:
    """Return the points of edges where the largest function switches."""
    start, stop = (cover.values[cover.ends[edges, k]] for k in (0, 1))
    goal = tied[cover.ends[edges, 1]]
    now = np.where(tied[cover.ends[edges, 0]], stop, -np.inf).argmax(1)
    crossed, fractions, going = [], [], np.arange(len(edges))
    for _ in range(cover.values.shape[1]):
        going = going[~goal[going, now[going]]]
        if not len(going):
            break
        fraction, following = _overtaken(start[going], stop[going], now[going])
        now[going] = following
        crossed.append(going)
        fractions.append(fraction)
    which = np.concatenate([np.zeros(0, np.int64), *crossed])
    fraction = np.concatenate([np.zeros(0), *fractions])
    order = np.lexsort((fraction, which))
    which, fraction = which[order], fraction[order, None]
    a, b = cover.ends[edges[which]].T
    return Crossings(
        edge=edges[which],
        place=(1 - fraction) * cover.place[a] + fraction * cover.place[b],
        values=(1 - fraction) * cover.values[a] + fraction * cover.values[b],
    )


def _overtaken(start: Array, stop: Array, now: Array) -> tuple[Array, Array]:
    """Return the fraction of an edge at which another function overtakes, and which one."""
    rows = np.arange(len(now))
    lead = start[rows, now][:, None] - start
    gain = stop - stop[rows, now][:, None]
    lead = np.maximum(lead, 0.0)
    ahead = gain > 0
    fraction = np.where(ahead, lead / np.where(ahead, lead + gain, 1.0), np.inf)
    first = fraction.min(1)
    # of those that pass at one point, the one that is ahead at the end of the edge
    level = fraction <= first[:, None] + TIE
    return first, np.where(level, stop, -np.inf).argmax(1)


def _ties_along(cover: Cover, edges: Array, common: Array) -> _Segments:
    """Return the edges along which two functions are equal and each wins on its own side."""
    inner = edges[(cover.sides[edges] >= 0).all(1)]
    nodes, between = [], []
    tolerance = PARALLEL * float(np.abs(cover.slopes).max(initial=0.0))
    for edge in inner.tolist():
        classes = np.flatnonzero(common[edge])
        left, right = (_winners(cover, int(c), classes, tolerance) for c in cover.sides[edge])
        if not left & right:
            nodes.append(cover.ends[edge])
            between.append(sorted((min(left), min(right))))
    return _Segments(
        nodes=np.array(nodes, np.int64).reshape(-1, 2),
        between=np.array(between, np.int64).reshape(-1, 2),
        place=np.zeros((0, 2)),
    )


def _winners(cover: Cover, cell: int, classes: Array, tolerance: float) -> set[int]:
    """Return which of some functions is largest on a cell, several if they are one there."""
    best = classes[cover.intercepts[cell, classes].argmax()]
    apart = np.abs(cover.slopes[cell, classes] - cover.slopes[cell, best]).max(1)
    tied: set[int] = set(classes[apart <= tolerance].tolist())
    return tied


def _inside(cover: Cover, tied: Array, crossings: Crossings, slack: float) -> _Segments:
    """Divide the cells on which no function is largest everywhere."""
    sizes = np.diff(cover.first)
    winner = cover.values.argmax(1)[cover.corners]
    lowest = np.minimum.reduceat(winner, cover.first[:-1])
    mixed = np.flatnonzero(lowest != np.maximum.reduceat(winner, cover.first[:-1]))
    offset, edges = _edges_of(cover, mixed, crossings)
    nodes: list[tuple[Node, Node]] = []
    between: list[tuple[int, int]] = []
    place: list[Array] = []
    at_crossing, inner = len(cover.place), len(cover.place) + len(crossings.edge)
    for k, cell in enumerate(mixed.tolist()):
        corners = cover.corners[cover.first[cell] : cover.first[cell] + sizes[cell]]
        if tied[corners].all(0).any():
            continue
        cut = edges[offset[k] : offset[k + 1]]
        nodal = corners[tied[corners].sum(1) > 1]
        numbers = np.concatenate([nodal, at_crossing + cut])
        where = np.concatenate([cover.place[nodal], crossings.place[cut]])
        values = np.concatenate([cover.values[nodal], crossings.values[cut]])
        part = divided(cover.place[corners], cover.values[corners], numbers, where, values, slack)
        new = inner + len(place)
        for (start, end), pair in part.segments:
            nodes.append(
                (start if start >= 0 else new - 1 - start, end if end >= 0 else new - 1 - end)
            )
            between.append(pair)
        place += part.places
    return _Segments(
        nodes=np.array(nodes, np.int64).reshape(-1, 2),
        between=np.array(between, np.int64).reshape(-1, 2),
        place=np.array(place).reshape(-1, 2),
    )


def _edges_of(cover: Cover, cells: Array, crossings: Crossings) -> tuple[Array, Array]:
    """Return for some cells the crossings on their edges, as offsets and a flat list."""
    row = np.full(len(cover.first), -1)
    row[cells] = np.arange(len(cells))
    owner = cover.sides[crossings.edge]
    crossing, side = np.nonzero(owner >= 0)
    mine = row[owner[crossing, side]]
    kept = mine >= 0
    mine, crossing = mine[kept], crossing[kept]
    order = np.argsort(mine, kind="stable")
    return np.searchsorted(mine[order], np.arange(len(cells) + 1)), crossing[order]
