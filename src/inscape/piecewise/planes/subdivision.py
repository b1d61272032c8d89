"""A polygon cut into convex faces, as flat arrays, and one round of cutting it further."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.piecewise.planes import edge_kernels, merging
from inscape.piecewise.planes.threads import Workers

Array = npt.NDArray[Any]

#: Faces of one buffer.
ROOM = 2**17


@dataclass(frozen=True, eq=False, kw_only=True)
class Subdivision:
    """Convex faces that cover a polygon (``halves``: 2 * edge, + 1 where walked backwards).

    ``made`` names what cut an edge: the operation and its unit; -1 for the sides of the polygon.
    """

    place: Array
    ends: Array
    made: Array
    first: Array
    halves: Array

    @property
    def faces(self) -> int:
        """Return the number of faces."""
        return len(self.first) - 1

    @cached_property
    def sides(self) -> Array:
        """Return the faces to the left and right of every edge, -1 for none."""
        sides = np.empty((len(self.ends), 2), np.int64)
        edge_kernels.sided(self.first, self.halves, sides)
        return sides

    @cached_property
    def owner(self) -> Array:
        """Return for each vertex the first face that has it, -1 for none."""
        owner = np.empty(len(self.place), np.int64)
        edge_kernels.owners(self.first, self.halves, self.ends, owner)
        return owner

    def taken(self, faces: Array) -> "Subdivision":
        """Return some of the faces only."""
        sizes = np.diff(self.first)[faces]
        first = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(first[-1]) + np.repeat(self.first[faces] - first[:-1], sizes)
        return replace(self, first=first, halves=self.halves[at])

    def compact(self) -> "Subdivision":
        """Return the faces without edges and vertices that none of them has."""
        edges = np.zeros(len(self.ends), bool)
        edges[self.halves >> 1] = True
        vertices = np.zeros(len(self.place), bool)
        vertices[self.ends[edges]] = True
        edge, vertex = (np.cumsum(kept, dtype=np.int32) - 1 for kept in (edges, vertices))
        return replace(
            self,
            place=self.place[vertices],
            ends=vertex[self.ends[edges]],
            made=self.made[edges],
            halves=2 * edge[self.halves >> 1] + (self.halves & 1),
        )

    def corners(self) -> Array:
        """Return the vertices of the faces, in the order of their half-edges."""
        corners: Array = self.ends[self.halves >> 1, self.halves & 1]
        return corners


@dataclass(frozen=True, eq=False, kw_only=True)
class FaceLines:
    """The lines that cut each face: a list of affine functions with keys, and known signs.

    ``alike``: the lines that cut an edge are in the lists of both its faces.
    """

    start: Array
    key: Array
    unit: Array
    coef: Array
    plus: Array
    minus: Array
    on: Array
    alike: bool


def polygon(corners: Array) -> Subdivision:
    """Return one face with these corners, counter-clockwise."""
    n = len(corners)
    return Subdivision(
        place=np.ascontiguousarray(corners, dtype=np.float64),
        ends=np.stack([np.arange(n), np.roll(np.arange(n), -1)], 1).astype(np.int32),
        made=np.full((n, 2), -1, np.int32),
        first=np.array([0, n]),
        halves=2 * np.arange(n, dtype=np.int32),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Cuts:
    """The edges after the lines have cut them; ``child`` is the first part of each old edge."""

    offset: Array
    key: Array
    group: Array
    groups: Array
    child: Array
    ends: Array
    made: Array
    place: Array


def cut(
    old: Subdivision, lines: FaceLines, op: int, workers: Workers, most: int
) -> tuple[Subdivision, Array, Array]:
    """Cut every face by its lines; return the finer faces, their parents and their signs.

    A range stops once it has made ``most`` faces: the parents then tell how far it came.
    """
    cuts = _cut_edges(old, lines, workers)
    work = np.concatenate([[0], np.cumsum(4 + np.diff(lines.start) ** 2)])

    made: list[int] = []  # faces of the ranges that are done, all of them before those not begun

    def part(begin: int, end: int) -> list[dict[str, Array]]:
        if sum(made) >= most:
            return []
        span = np.searchsorted(work, [begin, end]).tolist()
        buffers = list(_cut_faces(old, lines, cuts, op, (span[0], span[1]), most))
        made.append(sum(len(buffer["parent"]) for buffer in buffers))
        return buffers

    parts = workers.over(int(work[-1]), part, 4096)
    return _joined(old, cuts, _reached(parts, most), workers)


def _reached(parts: list[list[dict[str, Array]]], most: int) -> list[dict[str, Array]]:
    """Return the buffers in order, up to ``most`` faces or the first gap."""
    kept: list[dict[str, Array]] = []
    faces = 0
    for part in parts:
        for buffer in part:
            if faces >= most:
                return kept
            kept.append(buffer)
            faces += len(buffer["parent"])
    return kept


def _cut_edges(old: Subdivision, lines: FaceLines, workers: Workers) -> _Cuts:
    """Cut the edges where the lines of their faces cross them."""
    n, sides, both = len(old.ends), old.sides, not lines.alike
    count = np.empty(n, np.int64)
    counted = (sides, lines.start, both, count)
    workers.over(n, lambda a, b: edge_kernels.edge_counts(a, b, *counted), 4096)
    offset = np.concatenate([[0], np.cumsum(count)])
    key, fraction = np.empty(offset[-1], np.int64), np.empty(offset[-1])
    group, groups = np.empty(offset[-1], np.int64), np.empty(n, np.int64)
    seen = (old.ends, sides, old.place, lines.start, lines.key, lines.coef, lines.plus, lines.minus)
    written = (both, offset, key, fraction, group, groups)
    workers.over(n, lambda a, b: edge_kernels.edge_cuts(a, b, *seen, *written), 4096)
    before = np.concatenate([[0], np.cumsum(groups)])
    vertex, child = len(old.place) + before[:-1], np.arange(n) + before[:-1]
    total = int(before[-1])
    ends, made = np.empty((n + total, 2), np.int32), np.empty((n + total, 2), np.int32)
    place = np.empty((total, 2))
    source = (old.ends, old.made, old.place, offset, fraction, group, groups, vertex, child)
    workers.over(n, lambda a, b: edge_kernels.edges_split(a, b, *source, ends, made, place), 4096)
    return _Cuts(
        offset=offset, key=key, group=group, groups=groups, child=child,
        ends=ends, made=made, place=place,
    )  # fmt: skip


def _cut_faces(
    old: Subdivision, lines: FaceLines, cuts: _Cuts, op: int, span: tuple[int, int], most: int
) -> Iterator[dict[str, Array]]:
    """Yield the parts of the faces of a span, a buffer at a time."""
    from inscape.piecewise.planes import split_kernels  # imports numba

    begin, end = span
    made, widest = 0, int(np.diff(lines.start[begin : end + 1]).max(initial=0))
    longest = int(np.diff(old.first[begin : end + 1]).max(initial=0)) + 2 * widest
    edges = (cuts.ends, cuts.place, cuts.groups, cuts.child, cuts.offset, cuts.key, cuts.group)
    before = split_kernels.UncutFaces(old.first, old.halves, old.place, *edges)
    crossing = split_kernels.Crossing(
        lines.start, lines.key, lines.unit, lines.coef, lines.plus, lines.minus, lines.on
    )
    while begin < end and made < most:
        crossed = int(lines.start[end] - lines.start[begin])
        room = min(end - begin + 2 * crossed, ROOM, most) + widest**2 + 2
        out = split_kernels.FaceBuffers(
            first=np.empty(room, np.int64),
            halves=np.empty(5 * room + longest + 2 * widest**2 + 2, np.int32),
            parent=np.empty(room, np.int64),
            on=np.empty((room, lines.on.shape[1]), np.uint64),
            ends=np.empty((2 * room, 2), np.int32),
            made=np.empty((2 * room, 2), np.int32),
            place=np.empty((room, 2)),
            used=np.zeros(4, np.int64),
        )
        begin = split_kernels.split_faces(begin, end, before, crossing, out, op)
        faces, halves, inner, vertices = out.used.tolist()
        made += faces
        sizes = (faces, halves, faces, faces, inner, inner, vertices)
        yield {name: a[:k] for name, a, k in zip(out._fields, out, sizes, strict=False)}


def _joined(
    old: Subdivision, cuts: _Cuts, buffers: list[dict[str, Array]], workers: Workers
) -> tuple[Subdivision, Array, Array]:
    """Concatenate buffers: inner edges and vertices are numbered after those before them."""
    old_edges, old_vertices = len(cuts.ends), len(old.place) + len(cuts.place)
    before = {"place": [old.place, cuts.place], "ends": [cuts.ends], "made": [cuts.made]}
    begin: dict[str, list[int]] = {}
    whole: dict[str, Array] = {}
    for name, array in buffers[0].items():
        parts = [*before.get(name, []), *(buffer[name] for buffer in buffers)]
        begin[name] = np.cumsum([0, *map(len, parts)]).tolist()[len(before.get(name, [])) :]
        whole[name] = np.empty((begin[name][-1] + (name == "first"), *array.shape[1:]), array.dtype)
    whole["first"][-1] = begin["halves"][-1]

    def put(k: int) -> None:
        shifts = {
            "first": (0, begin["halves"][k]),
            "halves": (2 * old_edges, 2 * (begin["ends"][k] - old_edges)),
            "ends": (old_vertices, begin["place"][k] - old_vertices),
        }
        for name, part in buffers[k].items():
            into = whole[name][begin[name][k] : begin[name][k + 1]]
            if name in shifts:
                edge_kernels.shifted(part.reshape(-1), *shifts[name], into.reshape(-1))
            else:
                into[...] = part

    def put_old() -> None:
        for name, parts in before.items():
            np.concatenate(parts, out=whole[name][: begin[name][0]])

    workers.each([put_old, *(partial(put, k) for k in range(len(buffers)))])
    parent, on = whole.pop("parent"), whole.pop("on")
    return Subdivision(**whole), parent, on


def dissolved(plane: Subdivision, root: Array) -> tuple[Subdivision, Array]:
    """Remove the edges within each group of faces; return the kept face of each group.

    The groups must be convex. ``root`` names for each face the lowest of its group.
    """
    kept = np.flatnonzero(root == np.arange(len(root)))
    first, halves = np.empty(len(kept) + 1, np.int64), np.empty(len(plane.halves), np.int32)
    used = merging.outlines(root, plane.first, plane.halves, plane.sides, plane.ends, first, halves)
    if used < 0:  # rounding made a group that is not convex: its edges stay
        return plane, np.arange(plane.faces)
    return replace(plane, first=first, halves=halves[:used]), kept
