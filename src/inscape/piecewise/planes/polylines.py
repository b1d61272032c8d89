"""Segments joined end to end into chains that stop where more than two of them meet."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Polylines:
    """Polylines: chain ``i`` has the points from ``first[i]`` to ``first[i + 1]``.

    A closed one ends with the point that it begins with. ``between`` are the two functions that
    meet along it.
    """

    points: Array
    first: Array
    between: Array
    closed: Array


def chained(place: Array, nodes: Array, between: Array) -> Polylines:
    """Join segments between numbered places; the order depends on the numbers alone."""
    if not len(nodes):
        return Polylines(
            points=np.zeros((0, 2)),
            first=np.zeros(1, np.int64),
            between=np.zeros((0, 2), np.int64),
            closed=np.zeros(0, bool),
        )
    order = np.lexsort((nodes.max(1), nodes.min(1)))
    nodes, between = nodes[order], between[order]
    paths, kinds = _paths(nodes, between)
    sizes = [len(path) for path in paths]
    return Polylines(
        points=place[np.concatenate(paths)],
        first=np.concatenate([[0], np.cumsum(sizes)]),
        between=between[kinds],
        closed=np.array([path[0] == path[-1] for path in paths]),
    )


def _paths(nodes: Array, between: Array) -> tuple[list[list[int]], list[int]]:
    """Return the chains as lists of nodes, with a segment of each."""
    beside: dict[int, list[int]] = {}
    ends = nodes.tolist()
    for segment, (a, b) in enumerate(ends):
        beside.setdefault(a, []).append(segment)
        beside.setdefault(b, []).append(segment)
    kind = [tuple(pair) for pair in between.tolist()]
    stops = {node for node, met in beside.items() if len(met) != 2 or kind[met[0]] != kind[met[1]]}
    free = [True] * len(ends)
    paths, kinds = [], []
    for node in [*sorted(stops), *sorted(beside)]:
        for segment in beside[node]:
            if free[segment]:
                kinds.append(segment)
                paths.append(_walk(node, segment, ends, beside, stops, free))
    return paths, kinds


def _walk(
    node: int,
    segment: int,
    ends: list[list[int]],
    beside: dict[int, list[int]],
    stops: set[int],
    free: list[bool],
) -> list[int]:
    """Go along free segments from a node until a stop, or around."""
    path = [node]
    while True:
        free[segment] = False
        a, b = ends[segment]
        node = b if node == a else a
        path.append(node)
        if node in stops:
            return path
        first, second = beside[node]
        segment = second if first == segment else first
        if not free[segment]:
            return path
