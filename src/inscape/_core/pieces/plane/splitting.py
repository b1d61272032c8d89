"""Compiled cutting of faces: the lines that cross a face, put in one after the other."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.compiled import compiled

Array = npt.NDArray[Any]


@compiled(reorder=False)
def faces_split(
    begin: int,
    end: int,
    first: Array,
    halves: Array,
    ends: Array,
    place: Array,
    new_ends: Array,
    new_place: Array,
    groups: Array,
    child: Array,
    start: Array,
    key: Array,
    unit: Array,
    coef: Array,
    offset: Array,
    cut_key: Array,
    cut_group: Array,
    plus: Array,
    minus: Array,
    on: Array,
    bend: int,
    out_first: Array,
    out_halves: Array,
    out_parent: Array,
    out_on: Array,
    out_ends: Array,
    out_made: Array,
    out_place: Array,
    used: Array,
) -> int:
    """Cut faces by the lines that cross them; return the first face that there was no room for.

    A face is a small graph of half-edges of its own: its sides, already cut where lines end, and
    the chords. Numbers of new inner edges and vertices count from the end of the outer ones.
    ``used`` returns how many faces, halves, edges and vertices were written.
    """
    marks = on.shape[1] > 0
    outer_edges, outer_vertices = len(new_ends), len(place) + len(new_place)
    n_faces, n_halves, n_edges, n_vertices = 0, 0, 0, 0
    words = out_on.shape[1]
    # the graph of one face: half-edges come in twins 2k, 2k+1
    most = 64
    l_origin, l_next = np.empty(most, np.int64), np.empty(most, np.int64)
    l_face, l_edge = np.empty(most, np.int64), np.empty(most, np.int64)
    l_unit = np.empty(most, np.int64)
    v_id, v_x, v_y = np.empty(most, np.int64), np.empty(most), np.empty(most)
    v_edge, sign, value = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    v_group = np.empty(most, np.int64)
    f_half = np.empty(most, np.int64)
    f_on = np.empty((most, words), np.uint64)
    for f in range(begin, end):
        m = start[f + 1] - start[f]
        length = 0
        for i in range(first[f], first[f + 1]):
            length += groups[halves[i] >> 1] + 1
        rooms = 1 + m + m * (m - 1) // 2
        room_halves = 2 * length + 2 * m * m + 2
        if (
            n_faces + rooms > len(out_parent)
            or n_halves + length + 2 * m * m + 2 > len(out_halves)
            or n_edges + m * m + 1 > len(out_made)
            or n_vertices + rooms > len(out_place)
        ):
            used[0], used[1], used[2], used[3] = n_faces, n_halves, n_edges, n_vertices
            return f
        need = max(room_halves, length + rooms) + 2
        if need > most:
            most = 2 * need
            l_origin, l_next = np.empty(most, np.int64), np.empty(most, np.int64)
            l_face, l_edge = np.empty(most, np.int64), np.empty(most, np.int64)
            l_unit = np.empty(most, np.int64)
            v_id, v_x, v_y = np.empty(most, np.int64), np.empty(most), np.empty(most)
            v_edge, sign, value = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
            v_group = np.empty(most, np.int64)
            f_half = np.empty(most, np.int64)
            f_on = np.empty((most, words), np.uint64)
        # sides, in order: only their inner half-edges are needed, so twins stay unused
        count = 0
        for i in range(first[f], first[f + 1]):
            half = halves[i]
            e, back = half >> 1, half & 1
            parts = groups[e] + 1
            for k in range(parts):
                part = child[e] + (parts - 1 - k if back else k)
                v = new_ends[part, back]
                l_origin[count] = count
                l_edge[count] = 2 * part + back
                l_next[count] = count + 1
                l_face[count] = 0
                v_id[count] = v
                if v < len(place):
                    v_x[count], v_y[count] = place[v, 0], place[v, 1]
                else:
                    v_x[count], v_y[count] = (
                        new_place[v - len(place), 0],
                        new_place[v - len(place), 1],
                    )
                v_edge[count] = e if k > 0 else -1
                v_group[count] = (parts - 1 - k if back else k - 1) if k > 0 else -1
                count += 1
        l_next[count - 1] = 0
        n_v, n_h, n_f = count, count, 1
        f_half[0] = 0
        for w in range(words):
            f_on[0, w] = on[f, w]
        for i in range(start[f], start[f + 1]):
            cx, cy, c1, tol = coef[i, 0], coef[i, 1], coef[i, 2], coef[i, 3]
            word, bit = unit[i] >> 6 if marks else 0, np.uint64(unit[i] & 63)
            for v in range(n_v):
                z = cx * v_x[v] + cy * v_y[v] + c1
                value[v] = z
                s = 1 if z > tol else (-1 if z < -tol else 0)
                if v < count:
                    e = v_edge[v]
                    if e >= 0:
                        for c in range(offset[e], offset[e + 1]):
                            if cut_group[c] == v_group[v] and cut_key[c] == key[i]:
                                s = 0
                    elif v_id[v] < len(plus):
                        up = (plus[v_id[v], word] >> bit) & np.uint64(1)
                        down = (minus[v_id[v], word] >> bit) & np.uint64(1)
                        s = 1 if up else (-1 if down else 0)
                sign[v] = s
            # cut the chords that the line crosses
            inner = n_h
            for h in range(count, inner, 2):
                a, b = l_origin[h], l_origin[h + 1]
                if sign[a] * sign[b] >= 0:
                    continue
                t = value[a] / (value[a] - value[b])
                v = n_v
                n_v += 1
                v_x[v] = v_x[a] + t * (v_x[b] - v_x[a])
                v_y[v] = v_y[a] + t * (v_y[b] - v_y[a])
                v_id[v] = outer_vertices + n_vertices
                out_place[n_vertices, 0], out_place[n_vertices, 1] = v_x[v], v_y[v]
                n_vertices += 1
                sign[v], value[v] = 0, 0.0
                # a -> v stays h, v -> b is new; b -> v stays h + 1 from b, v -> a is new
                p, q = n_h, n_h + 1
                n_h += 2
                l_origin[p], l_origin[q] = v, b
                l_next[p], l_face[p], l_unit[p] = l_next[h], l_face[h], l_unit[h]
                l_next[h] = p
                # twin side: q is b -> v, h + 1 becomes v -> a
                before = h + 1
                walk = l_next[before]
                while l_next[walk] != before:
                    walk = l_next[walk]
                l_next[walk] = q
                if f_half[l_face[before]] == before:
                    f_half[l_face[before]] = q
                l_face[q], l_unit[q] = l_face[before], l_unit[before]
                l_next[q] = before
                l_origin[before] = v
            # cut the faces that have both signs
            for g in range(n_f):
                above, below = -1, -1
                h = f_half[g]
                best, lead = -1.0, 0
                while True:
                    s = sign[l_origin[h]]
                    if s > 0:
                        above = h
                    elif s < 0:
                        below = h
                    if abs(value[l_origin[h]]) > best:
                        best, lead = abs(value[l_origin[h]]), s
                    h = l_next[h]
                    if h == f_half[g]:
                        break
                mask = np.uint64(1) << bit
                if above < 0 or below < 0:
                    if marks:
                        if above >= 0:
                            f_on[g, word] |= mask
                        else:
                            f_on[g, word] &= ~mask
                    continue
                # from a vertex above walk to the last zero before the first below, and on
                h = above
                while sign[l_origin[l_next[h]]] >= 0:
                    h = l_next[h]
                leave = h  # its origin is the last that is not below
                if sign[l_origin[leave]] > 0:
                    nxt = l_next[leave]
                    if abs(value[l_origin[nxt]]) < abs(value[l_origin[leave]]):
                        leave = nxt
                h = l_next[h]
                while sign[l_origin[l_next[h]]] < 0:
                    h = l_next[h]
                enter = l_next[h]  # its origin is the first that is not below any more
                nearer = abs(value[l_origin[h]]) < abs(value[l_origin[enter]])
                if sign[l_origin[enter]] > 0 and nearer:
                    enter = h
                h = enter
                clean = enter != leave and l_next[leave] != enter and l_next[enter] != leave
                while clean and h != leave:
                    if sign[l_origin[h]] < 0 and h != enter:
                        clean = False  # rounding made it change sign more than twice
                    h = l_next[h]
                if not clean:
                    if marks:
                        if lead > 0:
                            f_on[g, word] |= mask
                        else:
                            f_on[g, word] &= ~mask
                    continue
                # chord from leave's origin to enter's origin; the part below is left of it walked
                # back, so: below = leave .. before enter, then enter -> leave
                p, q = n_h, n_h + 1
                n_h += 2
                start_v, stop_v = l_origin[leave], l_origin[enter]
                before_leave, before_enter = enter, leave
                while l_next[before_leave] != leave:
                    before_leave = l_next[before_leave]
                while l_next[before_enter] != enter:
                    before_enter = l_next[before_enter]
                l_origin[p], l_origin[q] = start_v, stop_v
                l_unit[p], l_unit[q] = unit[i], unit[i]
                l_next[p] = enter
                l_next[before_leave] = p
                l_next[q] = leave
                l_next[before_enter] = q
                new = n_f
                n_f += 1
                l_face[p] = g
                f_half[g] = p
                f_half[new] = q
                h = q
                while True:
                    l_face[h] = new
                    h = l_next[h]
                    if h == q:
                        break
                for w in range(words):
                    f_on[new, w] = f_on[g, w]
                if marks:
                    f_on[g, word] |= mask
                    f_on[new, word] &= ~mask
        # write the inner edges, then the faces
        for h in range(count, n_h, 2):
            edge = outer_edges + n_edges
            l_edge[h], l_edge[h + 1] = 2 * edge, 2 * edge + 1
            out_ends[n_edges, 0] = v_id[l_origin[h]]
            out_ends[n_edges, 1] = v_id[l_origin[h + 1]]
            out_made[n_edges, 0], out_made[n_edges, 1] = bend, l_unit[h]
            n_edges += 1
        for g in range(n_f):
            out_first[n_faces] = n_halves
            out_parent[n_faces] = f
            for w in range(words):
                out_on[n_faces, w] = f_on[g, w]
            h = f_half[g]
            while True:
                out_halves[n_halves] = l_edge[h]
                n_halves += 1
                h = l_next[h]
                if h == f_half[g]:
                    break
            n_faces += 1
    used[0], used[1], used[2], used[3] = n_faces, n_halves, n_edges, n_vertices
    return end
