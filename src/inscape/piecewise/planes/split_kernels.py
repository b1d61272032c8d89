"""Compiled cutting of faces: the lines that cross a face, put in one after the other.

While it is cut, a face is a small graph of its own: half-edges that lead around its parts. Of a
side there is the inner half-edge only; those of a chord come in twins, ``h`` and ``h + 1``.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled, part

Array = npt.NDArray[Any]

#: Entries of ``HalfEdgeGraph.size``; sides are the first half-edges, from the first vertices.
SIDES, VERTICES, HALVES, PARTS = range(4)
#: Entries of ``FaceBuffers.used``.
FACES, LOOPS, EDGES, PLACES = range(4)


class UncutFaces(NamedTuple):
    """Faces, and their edges as lines have cut them."""

    first: Array
    halves: Array
    place: Array
    ends: Array  # of the parts of edges
    new_place: Array  # of their new vertices, which are numbered after the old ones
    groups: Array  # how many cuts an edge has
    child: Array  # its first part
    offset: Array  # whose lines have cut an edge: entries of key and group
    key: Array
    group: Array


class Crossing(NamedTuple):
    """Lines that cross each face: entries ``start[f]`` to ``start[f + 1]``."""

    start: Array
    key: Array
    unit: Array
    coef: Array  # slopes, offset, and the size below which a value counts as zero
    plus: Array  # bits of old vertices: above the line of a unit, below it
    minus: Array
    on: Array  # bits of faces: which units are on


class FaceBuffers(NamedTuple):
    """Buffers for the parts of faces, their half-edges, and inner edges and vertices."""

    first: Array
    halves: Array
    parent: Array
    on: Array
    ends: Array
    made: Array
    place: Array
    used: Array


class HalfEdgeGraph(NamedTuple):
    """The half-edges of one face while lines cut it into parts."""

    origin: Array  # of half-edges
    next: Array
    face: Array
    edge: Array
    unit: Array
    name: Array  # of vertices: their numbers outside
    x: Array
    y: Array
    cut_edge: Array  # old edge that a cut made them on, or -1, and which cut of it
    cut_group: Array
    sign: Array
    value: Array
    half: Array  # of parts: one of the half-edges around it
    on: Array
    size: Array


@part(arrays=True)
def graph_of(most: int, words: int) -> Any:
    """Return buffers for so many half-edges, vertices and parts."""
    return HalfEdgeGraph(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty((most, words), np.uint64),
        np.zeros(4, np.int64),
    )


@part
def lay_out(g: Any, old: Any, on: Array, f: int) -> None:
    """Initialise the graph of a face with its sides, in order."""
    n = 0
    for i in range(old.first[f], old.first[f + 1]):
        e, back = old.halves[i] >> 1, old.halves[i] & 1
        last = old.groups[e]
        for k in range(last + 1):
            piece = old.child[e] + (last - k if back else k)
            v = old.ends[piece, back]
            g.origin[n], g.next[n], g.face[n], g.edge[n] = n, n + 1, 0, 2 * piece + back
            g.name[n] = v
            new = v - len(old.place)
            g.x[n] = old.place[v, 0] if new < 0 else old.new_place[new, 0]
            g.y[n] = old.place[v, 1] if new < 0 else old.new_place[new, 1]
            g.cut_edge[n] = e if k > 0 else -1
            g.cut_group[n] = last - k if back else k - 1
            n += 1
    g.next[n - 1] = 0
    g.half[0] = 0
    for w in range(on.shape[1]):
        g.on[0, w] = on[f, w]
    g.size[SIDES], g.size[VERTICES], g.size[HALVES], g.size[PARTS] = n, n, n, 1


@part
def known_sign(g: Any, old: Any, lines: Any, i: int, v: int, sign: int) -> int:
    """Return on which side of a line a vertex on the outline lies, as all its faces see it."""
    e = g.cut_edge[v]
    if e >= 0:
        for c in range(old.offset[e], old.offset[e + 1]):
            if old.group[c] == g.cut_group[v] and old.key[c] == lines.key[i]:
                return 0
    elif g.name[v] < len(lines.plus):
        word = lines.unit[i] >> 6 if lines.on.shape[1] > 0 else 0
        bit = np.uint64(lines.unit[i] & 63)
        above = (lines.plus[g.name[v], word] >> bit) & np.uint64(1)
        below = (lines.minus[g.name[v], word] >> bit) & np.uint64(1)
        return 1 if above else (-1 if below else 0)
    return sign


@part
def judge_vertices(g: Any, old: Any, lines: Any, i: int) -> None:
    """Write value and sign of a line's function at all vertices."""
    tolerance = lines.coef[i, 3]
    for v in range(g.size[VERTICES]):
        z = lines.coef[i, 0] * g.x[v] + lines.coef[i, 1] * g.y[v] + lines.coef[i, 2]
        sign = 1 if z > tolerance else (-1 if z < -tolerance else 0)
        g.value[v] = z
        g.sign[v] = known_sign(g, old, lines, i, v, sign) if v < g.size[SIDES] else sign


@part
def cut_chords(g: Any, out: Any, outside: int) -> None:
    """Put a vertex on every chord that the line crosses."""
    for h in range(g.size[SIDES], g.size[HALVES], 2):
        a, b = g.origin[h], g.origin[h + 1]
        if g.sign[a] * g.sign[b] >= 0:
            continue
        v = g.size[VERTICES]
        t = g.value[a] / (g.value[a] - g.value[b])
        g.x[v] = g.x[a] + t * (g.x[b] - g.x[a])
        g.y[v] = g.y[a] + t * (g.y[b] - g.y[a])
        g.sign[v], g.value[v], g.name[v] = 0, 0.0, outside + out.used[PLACES]
        out.place[out.used[PLACES], 0], out.place[out.used[PLACES], 1] = g.x[v], g.y[v]
        g.size[VERTICES] += 1
        out.used[PLACES] += 1
        halve(g, h, v)


@part
def halve(g: Any, h: int, v: int) -> None:
    """Make two chords of one: ``h`` then leads from its origin to ``v``, a new one onwards."""
    p, q, twin = g.size[HALVES], g.size[HALVES] + 1, h + 1
    g.size[HALVES] += 2
    g.origin[p], g.origin[q] = v, g.origin[twin]
    g.next[p], g.face[p], g.unit[p] = g.next[h], g.face[h], g.unit[h]
    g.next[h] = p
    g.next[before(g, twin)] = q
    if g.half[g.face[twin]] == twin:
        g.half[g.face[twin]] = q
    g.next[q], g.face[q], g.unit[q] = twin, g.face[twin], g.unit[twin]
    g.origin[twin] = v


@part
def before(g: Any, half: int) -> int:
    """Return the half-edge that leads to another one."""
    h = g.next[half]
    while g.next[h] != half:
        h = g.next[h]
    return int(h)


@part
def cut_parts(g: Any, lines: Any, i: int) -> None:
    """Cut every part that has vertices on both sides of the line; mark all."""
    for f in range(g.size[PARTS]):
        above, below, lead = -1, -1, 0
        largest = -1.0
        h = g.half[f]
        while True:
            v = g.origin[h]
            if g.sign[v] > 0:
                above = h
            elif g.sign[v] < 0:
                below = h
            if abs(g.value[v]) > largest:
                largest, lead = abs(g.value[v]), g.sign[v]
            h = g.next[h]
            if h == g.half[f]:
                break
        if above < 0 or below < 0:
            mark(g, lines, i, f, above >= 0)
            continue
        leave, enter = crossings(g, above)
        if clean(g, leave, enter):
            part_face(g, lines, i, f, leave, enter)
        else:
            mark(g, lines, i, f, lead > 0)


@part
def crossings(g: Any, above: int) -> tuple[int, int]:
    """Return where the line leaves and enters: at vertices on it, or else at the nearest ones.

    From a vertex above, the walk goes to the last that is not below, and on to the first that is
    not below any more.
    """
    h = above
    while g.sign[g.origin[g.next[h]]] >= 0:
        h = g.next[h]
    leave = h
    if g.sign[g.origin[leave]] > 0 and nearer(g, g.next[leave], leave):
        leave = g.next[leave]
    h = g.next[h]
    while g.sign[g.origin[g.next[h]]] < 0:
        h = g.next[h]
    enter = g.next[h]
    if g.sign[g.origin[enter]] > 0 and nearer(g, h, enter):
        enter = h
    return leave, enter


@part
def nearer(g: Any, first: int, second: int) -> bool:
    """Tell whether the origin of one half-edge is nearer to the line than that of another."""
    return bool(abs(g.value[g.origin[first]]) < abs(g.value[g.origin[second]]))


@part
def clean(g: Any, leave: int, enter: int) -> bool:
    """Tell whether a chord parts a face; not so if rounding made it change sign more than twice."""
    if enter == leave or g.next[leave] == enter or g.next[enter] == leave:
        return False
    h = g.next[enter]
    while h != leave:
        if g.sign[g.origin[h]] < 0:
            return False
        h = g.next[h]
    return True


@part
def part_face(g: Any, lines: Any, i: int, f: int, leave: int, enter: int) -> None:
    """Draw the chord: what lies above the line stays ``f``, what lies below is a new part."""
    p, q, new = g.size[HALVES], g.size[HALVES] + 1, g.size[PARTS]
    g.size[HALVES] += 2
    g.size[PARTS] += 1
    before_leave, before_enter = before(g, leave), before(g, enter)
    g.origin[p], g.origin[q] = g.origin[leave], g.origin[enter]
    g.unit[p], g.unit[q] = lines.unit[i], lines.unit[i]
    g.next[p], g.next[before_leave] = enter, p
    g.next[q], g.next[before_enter] = leave, q
    g.face[p], g.half[f], g.half[new] = f, p, q
    h = q
    while True:
        g.face[h] = new
        h = g.next[h]
        if h == q:
            break
    for w in range(g.on.shape[1]):
        g.on[new, w] = g.on[f, w]
    mark(g, lines, i, f, True)
    mark(g, lines, i, new, False)


@part
def mark(g: Any, lines: Any, i: int, f: int, above: bool) -> None:
    """Write on which side of the line a part lies."""
    if lines.on.shape[1] > 0:
        word, mask = lines.unit[i] >> 6, np.uint64(1) << np.uint64(lines.unit[i] & 63)
        if above:
            g.on[f, word] |= mask
        else:
            g.on[f, word] &= ~mask


@part
def write_out(g: Any, out: Any, f: int, outer_edges: int, op: int) -> None:
    """Write the inner edges of a face, then its parts."""
    for h in range(g.size[SIDES], g.size[HALVES], 2):
        n = out.used[EDGES]
        g.edge[h], g.edge[h + 1] = 2 * (outer_edges + n), 2 * (outer_edges + n) + 1
        out.ends[n, 0], out.ends[n, 1] = g.name[g.origin[h]], g.name[g.origin[h + 1]]
        out.made[n, 0], out.made[n, 1] = op, g.unit[h]
        out.used[EDGES] += 1
    for face in range(g.size[PARTS]):
        n = out.used[FACES]
        out.first[n], out.parent[n] = out.used[LOOPS], f
        for w in range(g.on.shape[1]):
            out.on[n, w] = g.on[face, w]
        h = g.half[face]
        while True:
            out.halves[out.used[LOOPS]] = g.edge[h]
            out.used[LOOPS] += 1
            h = g.next[h]
            if h == g.half[face]:
                break
        out.used[FACES] += 1


@part
def fits(out: Any, length: int, lines: int) -> bool:
    """Tell whether there is room for the parts of a face with so many sides and lines."""
    chords, parts = lines * lines, 1 + lines + lines * (lines - 1) // 2
    return bool(
        out.used[FACES] + parts <= len(out.parent)
        and out.used[LOOPS] + length + 2 * chords + 2 <= len(out.halves)
        and out.used[EDGES] + chords + 1 <= len(out.made)
        and out.used[PLACES] + parts <= len(out.place)
    )


@compiled(reorder=False)
def split_faces(
    begin: int, end: int, old: UncutFaces, lines: Crossing, out: FaceBuffers, op: int
) -> int:
    """Cut faces by the lines that cross them; return the first face that there was no room for.

    Numbers of inner edges and vertices count from the end of the outer ones.
    """
    outer_edges, outer_vertices = len(old.ends), len(old.place) + len(old.new_place)
    most, words = 64, lines.on.shape[1]
    g = graph_of(most, words)
    for f in range(begin, end):
        m = lines.start[f + 1] - lines.start[f]
        length = 0
        for i in range(old.first[f], old.first[f + 1]):
            length += old.groups[old.halves[i] >> 1] + 1
        if not fits(out, length, m):
            return f
        need = 2 * length + 2 * m * m + 4
        if need > most:
            most = 2 * need
            g = graph_of(most, words)
        lay_out(g, old, lines.on, f)
        for i in range(lines.start[f], lines.start[f + 1]):
            judge_vertices(g, old, lines, i)
            cut_chords(g, out, outer_vertices)
            cut_parts(g, lines, i)
        write_out(g, out, f, outer_edges, op)
    return end
