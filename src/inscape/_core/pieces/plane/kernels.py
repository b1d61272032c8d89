"""Compiled steps of cutting a plane: where units change sign, and where that cuts the edges.

Faces are loops of half-edges: ``half >> 1`` is the edge, ``half & 1`` tells whether it is walked
from its second end. On every face each function of the layer is affine in the plane: three
coefficients, for x, for y and constant. A fourth row carries the squares that rounding grows from:
what went into the function's sum, and into the sums before. Signs are bits, 64 to a word.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.compiled import compiled

Array = npt.NDArray[Any]

#: A value is zero when it is below so many roundings of the numbers that went into it.
ROUNDING = 64 * 2.220446049250313e-16


@compiled(reorder=False)
def owners(first: Array, halves: Array, ends: Array, owner: Array) -> None:
    """Write for each vertex the first face that has it: it is judged once, there."""
    for v in range(len(owner)):
        owner[v] = -1
    for f in range(len(first) - 1):
        for i in range(first[f], first[f + 1]):
            v = ends[halves[i] >> 1, halves[i] & 1]
            if owner[v] < 0:
                owner[v] = f


@compiled
def expanded(
    base: Array,
    parent: Array,
    start: Array,
    unit: Array,
    change: Array,
    bits: Array,
    weight: Array,
    rows: Array,
    out: Array,
) -> None:
    """Write the next layer's coefficients: the parent's, and a column for each crossing unit on.

    ``base`` has them with all crossing units off; ``change`` is what each adds to what comes out of
    the kink where it is on; ``weight`` is transposed, a row for each unit. ``rows`` names the rows
    of ``parent`` and ``bits`` that are wanted.
    """
    size = base.shape[2]
    for n in range(len(rows)):
        f = rows[n]
        p = parent[f]
        for a in range(4):
            for k in range(size):
                out[n, a, k] = base[p, a, k]
        for i in range(start[p], start[p + 1]):
            j = unit[i]
            if (bits[f, j >> 6] >> np.uint64(j & 63)) & np.uint64(1):
                gx, gy = change[i, 0, 0], change[i, 0, 1]
                g1, gv = change[i, 0, 2], change[i, 0, 3]
                for k in range(size):
                    w = weight[j, k]
                    out[n, 0, k] += gx * w
                    out[n, 1, k] += gy * w
                    out[n, 2, k] += g1 * w
                    out[n, 3, k] += gv * w * w


@compiled
def expanded_sparsely(
    base: Array,
    parent: Array,
    start: Array,
    unit: Array,
    change: Array,
    bits: Array,
    choice: Array,
    slot: Array,
    column: Array,
    index: Array,
    value: Array,
    rows: Array,
    out: Array,
) -> None:
    """Write the next layer's coefficients as ``expanded`` does, with sparse columns.

    The choice of a unit is a bit (``bits`` not empty) or a byte; choice r > 0 changes what comes
    out of it by ``change[i, r - 1]``. The column of unit j begins at ``column[slot[j]]``.
    """
    size = base.shape[2]
    for n in range(len(rows)):
        f = rows[n]
        p = parent[f]
        for a in range(4):
            for k in range(size):
                out[n, a, k] = base[p, a, k]
        for i in range(start[p], start[p + 1]):
            j = unit[i]
            if bits.shape[0] > 0:
                r = np.int64((bits[f, j >> 6] >> np.uint64(j & 63)) & np.uint64(1))
            else:
                r = np.int64(choice[f, j])
            if r > 0:
                gx, gy, g1 = change[i, r - 1, 0], change[i, r - 1, 1], change[i, r - 1, 2]
                for c in range(column[slot[j]], column[slot[j] + 1]):
                    k = index[c]
                    out[n, 0, k] += gx * value[c]
                    out[n, 1, k] += gy * value[c]
                    out[n, 2, k] += g1 * value[c]
                    out[n, 3, k] += change[i, r - 1, 3] * value[c] * value[c]


@compiled(reorder=False)
def marked(
    coef: Array,
    faces: Array,
    first: Array,
    halves: Array,
    ends: Array,
    place: Array,
    owner: Array,
    plus: Array,
    minus: Array,
) -> None:
    """Write which functions are above and which below zero at the vertices that these faces own."""
    size = coef.shape[2]
    z, tolerance = np.empty(size), np.empty(size)
    for n in range(len(faces)):
        f = faces[n]
        for k in range(size):
            s = abs(coef[n, 0, k]) + abs(coef[n, 1, k]) + abs(coef[n, 2, k])
            tolerance[k] = ROUNDING * np.sqrt(coef[n, 3, k] + s * s)
        for i in range(first[f], first[f + 1]):
            v = ends[halves[i] >> 1, halves[i] & 1]
            if owner[v] != f:
                continue
            x, y = place[v, 0], place[v, 1]
            for k in range(size):
                z[k] = coef[n, 0, k] * x + coef[n, 1, k] * y + coef[n, 2, k]
            for w in range(plus.shape[1]):
                above, below = np.uint64(0), np.uint64(0)
                for k in range(64 * w, min(size, 64 * w + 64)):
                    bit = np.uint64(k - 64 * w)
                    above |= np.uint64(z[k] > tolerance[k]) << bit
                    below |= np.uint64(z[k] < -tolerance[k]) << bit
                plus[v, w] = above
                minus[v, w] = below


@compiled(reorder=False)
def crossed(
    faces: Array,
    first: Array,
    halves: Array,
    ends: Array,
    plus: Array,
    minus: Array,
    on: Array,
    over: Array,
    count: Array,
) -> int:
    """Write which functions are above zero somewhere on each face, and which change sign there."""
    total = 0
    for n in range(len(faces)):
        f = faces[n]
        number = 0
        for w in range(plus.shape[1]):
            above, below = np.uint64(0), np.uint64(0)
            for i in range(first[f], first[f + 1]):
                v = ends[halves[i] >> 1, halves[i] & 1]
                above |= plus[v, w]
                below |= minus[v, w]
            on[f, w] = above
            both = above & below
            over[n, w] = both
            while both:
                both &= both - np.uint64(1)
                number += 1
        count[n] = number
        total += number
    return total


@compiled(reorder=False)
def listed(
    coef: Array,
    faces: Array,
    over: Array,
    on: Array,
    slope: Array,
    unit: Array,
    kept: Array,
) -> None:
    """List the functions that cross each face with their coefficients and tolerance.

    What is left in ``coef`` is what comes out of the kinks where all crossing units are off.
    """
    size = coef.shape[2]
    factor = np.empty(size)
    at = 0
    for n in range(len(faces)):
        f = faces[n]
        for k in range(size):
            word, bit = k >> 6, np.uint64(k & 63)
            crosses = (over[n, word] >> bit) & np.uint64(1)
            is_on = (on[f, word] >> bit) & np.uint64(1)
            factor[k] = 1.0 if is_on and not crosses else slope[k]
            s = abs(coef[n, 0, k]) + abs(coef[n, 1, k]) + abs(coef[n, 2, k])
            coef[n, 3, k] += s * s
            if crosses:
                unit[at] = k
                for a in range(3):
                    kept[at, a] = coef[n, a, k]
                kept[at, 3] = ROUNDING * np.sqrt(coef[n, 3, k])
                at += 1
        for k in range(size):
            for a in range(3):
                coef[n, a, k] *= factor[k]
            coef[n, 3, k] *= factor[k] * factor[k]


@compiled(reorder=False)
def still_crossed(
    faces: Array,
    source: Array,
    start: Array,
    entry: Array,
    unit: Array,
    coef: Array,
    first: Array,
    halves: Array,
    ends: Array,
    place: Array,
    plus: Array,
    minus: Array,
    on: Array,
    count: Array,
    out: Array,
) -> int:
    """List the functions that still change sign on parts of a face, of those on the face's list.

    ``source`` names the list of each face. Vertices that had no sign before are judged here.
    """
    at = 0
    for n in range(len(faces)):
        f = faces[n]
        here = at
        for i in range(start[source[n]], start[source[n] + 1]):
            k = entry[i]
            word, bit = unit[k] >> 6, np.uint64(unit[k] & 63)
            above, below = False, False
            for h in range(first[f], first[f + 1]):
                v = ends[halves[h] >> 1, halves[h] & 1]
                if v < len(plus):
                    above = above or (plus[v, word] >> bit) & np.uint64(1) != 0
                    below = below or (minus[v, word] >> bit) & np.uint64(1) != 0
                else:
                    z = coef[k, 0] * place[v, 0] + coef[k, 1] * place[v, 1] + coef[k, 2]
                    above = above or z > coef[k, 3]
                    below = below or z < -coef[k, 3]
            if above:
                on[f, word] |= np.uint64(1) << bit
            else:
                on[f, word] &= ~(np.uint64(1) << bit)
            if above and below:
                out[at] = k
                at += 1
        count[n] = at - here
    return at


@compiled(reorder=False)
def contested(
    coef: Array,
    faces: Array,
    first: Array,
    halves: Array,
    ends: Array,
    place: Array,
    windows: Array,
    tolerance: Array,
    choice: Array,
    count: Array,
    out: Array,
) -> int:
    """Choose the winner of every window on each face; list the windows that have none.

    A winner is largest, within rounding, at all vertices of the face; the first of several.
    Returns how many there are; only as many are written as ``out`` has room for.
    """
    size, number, rivals = coef.shape[2], len(windows), windows.shape[1]
    z = np.empty((64, size))
    at = 0
    for n in range(len(faces)):
        f = faces[n]
        length = first[f + 1] - first[f]
        if length > len(z):
            z = np.empty((2 * length, size))
        for i in range(length):
            half = halves[first[f] + i]
            v = ends[half >> 1, half & 1]
            x, y = place[v, 0], place[v, 1]
            for k in range(size):
                z[i, k] = coef[n, 0, k] * x + coef[n, 1, k] * y + coef[n, 2, k]
        count[n] = 0
        for w in range(number):
            # the winner at the first vertex is most often the winner at all
            winner = -1
            for r in range(rivals):
                k = windows[w, r]
                leads = True
                for i in range(length):
                    for s in range(rivals):
                        o = windows[w, s]
                        if z[i, o] - z[i, k] > tolerance[n, o] + tolerance[n, k]:
                            leads = False
                            break
                    if not leads:
                        break
                if leads:
                    winner = r
                    break
            choice[f, w] = max(winner, 0)
            if winner < 0:
                if at < len(out):
                    out[at] = w
                at += 1
                count[n] += 1
    return at


@compiled(reorder=False)
def still_contested(
    faces: Array,
    source: Array,
    start: Array,
    entry: Array,
    unit: Array,
    coef: Array,
    windows: Array,
    size: int,
    first: Array,
    halves: Array,
    ends: Array,
    place: Array,
    most: int,
    choice: Array,
    count: Array,
    out: Array,
    lines: Array,
    key: Array,
    line_unit: Array,
    line_coef: Array,
) -> None:
    """Choose the winners of listed windows on parts of a face, and a pair of rivals where none is.

    The two functions of a pair each lead the other, and all others, somewhere on the face. At most
    ``most`` pairs for a face (``lines``): more are found once it is cut.
    """
    rivals = windows.shape[1]
    z = np.empty((64, rivals))
    at, drawn = 0, 0
    for n in range(len(faces)):
        f = faces[n]
        length = first[f + 1] - first[f]
        if length > len(z):
            z = np.empty((2 * length, rivals))
        here, lines_here = at, 0
        for e in range(start[source[n]], start[source[n] + 1]):
            c = entry[e]
            w = unit[c]
            for i in range(length):
                half = halves[first[f] + i]
                v = ends[half >> 1, half & 1]
                for r in range(rivals):
                    z[i, r] = (
                        coef[c, r, 0] * place[v, 0] + coef[c, r, 1] * place[v, 1] + coef[c, r, 2]
                    )
            winner, sure, highest = 0, False, -np.inf
            for r in range(rivals):
                leads, total = True, 0.0
                for i in range(length):
                    total += z[i, r]
                    for s in range(rivals):
                        if z[i, s] - z[i, r] > coef[c, s, 3] + coef[c, r, 3]:
                            leads = False
                if leads:
                    winner, sure = r, True
                    break
                if total > highest:
                    winner, highest = r, total
            choice[f, w] = winner
            if sure:
                continue
            out[at] = c
            at += 1
            if lines_here >= most:
                continue
            found = False
            for r in range(rivals):
                for s in range(r + 1, rivals):
                    if found or windows[w, r] == windows[w, s]:
                        continue
                    gap = coef[c, r, 3] + coef[c, s, 3]
                    ahead, behind = False, False
                    for i in range(length):
                        top = max(z[i, r], z[i, s])
                        best = True
                        for o in range(rivals):
                            if z[i, o] - top > gap:
                                best = False
                        ahead = ahead or (best and z[i, r] - z[i, s] > gap)
                        behind = behind or (best and z[i, s] - z[i, r] > gap)
                    if ahead and behind:
                        found = True
                        key[drawn] = windows[w, r] * size + windows[w, s]
                        line_unit[drawn] = w
                        for a in range(3):
                            line_coef[drawn, a] = coef[c, r, a] - coef[c, s, a]
                        line_coef[drawn, 3] = gap
                        drawn += 1
                        lines_here += 1
            if not found:
                at -= 1  # rounding left no clear pair: what leads on the whole stays
        count[n] = at - here
        lines[n] = lines_here


@compiled(reorder=False)
def edge_cuts(
    begin: int,
    end: int,
    ends: Array,
    sides: Array,
    place: Array,
    start: Array,
    key: Array,
    coef: Array,
    plus: Array,
    minus: Array,
    both: bool,
    offset: Array,
    cut_key: Array,
    cut_share: Array,
    cut_group: Array,
    groups: Array,
) -> None:
    """Write where functions change sign on each edge, in order along it.

    Where both vertices have their signs as bits these decide, so that both faces of an edge see
    the same; else the functions' values do. The list of one face will do, unless the
    lists of its faces may differ (``both``). Zeros within rounding of each other share a
    place (``cut_group``).
    """
    for e in range(begin, end):
        a, b = ends[e, 0], ends[e, 1]
        by_bits = a < len(plus) and b < len(plus)
        number = 0
        base = offset[e]
        for side in range(2):
            f = sides[e, side]
            if f < 0 or (side == 1 and sides[e, 0] >= 0 and not both):
                continue
            for i in range(start[f], start[f + 1]):
                if base + number >= offset[e + 1]:
                    break
                za = coef[i, 0] * place[a, 0] + coef[i, 1] * place[a, 1] + coef[i, 2]
                zb = coef[i, 0] * place[b, 0] + coef[i, 1] * place[b, 1] + coef[i, 2]
                if by_bits:
                    word, bit = key[i] >> 6, np.uint64(key[i] & 63)
                    up = ((plus[a, word] & minus[b, word]) >> bit) & np.uint64(1)
                    down = ((minus[a, word] & plus[b, word]) >> bit) & np.uint64(1)
                    if not (up or down):
                        continue
                else:
                    tol = coef[i, 3]
                    if not ((za > tol and zb < -tol) or (za < -tol and zb > tol)):
                        continue
                if both:
                    seen = False
                    for c in range(base, base + number):
                        seen = seen or cut_key[c] == key[i]
                    if seen:
                        continue
                share = za / (za - zb) if za != zb else 0.5
                if not 0.0 < share < 1.0:
                    share = min(max(share, 1e-15), 1 - 1e-15) if share == share else 0.5
                c = base + number
                while c > base and cut_share[c - 1] > share:
                    cut_share[c], cut_key[c] = cut_share[c - 1], cut_key[c - 1]
                    cut_group[c] = cut_group[c - 1]
                    c -= 1
                cut_share[c], cut_key[c], cut_group[c] = share, key[i], i
                number += 1
        # cut_group holds the entry of the list until here; now it becomes the place's number
        group = -1
        x, y = 0.0, 0.0
        for c in range(base, base + number):
            i = cut_group[c]
            new = True
            if group >= 0:
                z = coef[i, 0] * x + coef[i, 1] * y + coef[i, 2]
                new = abs(z) > coef[i, 3]
            if new:
                group += 1
                s = cut_share[c]
                x = place[a, 0] + s * (place[b, 0] - place[a, 0])
                y = place[a, 1] + s * (place[b, 1] - place[a, 1])
            cut_group[c] = group
        for c in range(base + number, offset[e + 1]):
            cut_group[c] = -1
        groups[e] = group + 1


@compiled(reorder=False)
def edge_counts(begin: int, end: int, sides: Array, start: Array, both: bool, count: Array) -> None:
    """Write how many functions may cut each edge at most."""
    for e in range(begin, end):
        total = 0
        for side in range(2):
            f = sides[e, side]
            if f >= 0 and (both or side == 0 or sides[e, 0] < 0):
                total += start[f + 1] - start[f]
        count[e] = total


@compiled(reorder=False)
def edges_split(
    begin: int,
    end: int,
    ends: Array,
    made: Array,
    place: Array,
    offset: Array,
    cut_share: Array,
    cut_group: Array,
    groups: Array,
    vertex: Array,
    child: Array,
    new_ends: Array,
    new_made: Array,
    new_place: Array,
) -> None:
    """Write the parts of each edge and the vertices between them."""
    old = len(place)
    for e in range(begin, end):
        a, b = ends[e, 0], ends[e, 1]
        number = groups[e]
        group = -1
        for c in range(offset[e], offset[e + 1]):
            if cut_group[c] > group:
                group = cut_group[c]
                s, v = cut_share[c], vertex[e] + group - old
                new_place[v, 0] = place[a, 0] + s * (place[b, 0] - place[a, 0])
                new_place[v, 1] = place[a, 1] + s * (place[b, 1] - place[a, 1])
        for k in range(number + 1):
            part = child[e] + k
            new_ends[part, 0] = a if k == 0 else vertex[e] + k - 1
            new_ends[part, 1] = b if k == number else vertex[e] + k
            new_made[part, 0], new_made[part, 1] = made[e, 0], made[e, 1]


@compiled(reorder=False)
def sided(first: Array, halves: Array, sides: Array) -> None:
    """Write the face to the left and to the right of every edge; -1 where there is none."""
    for e in range(len(sides)):
        sides[e, 0], sides[e, 1] = -1, -1
    for f in range(len(first) - 1):
        for i in range(first[f], first[f + 1]):
            sides[halves[i] >> 1, halves[i] & 1] = f
