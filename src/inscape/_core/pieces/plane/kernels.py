"""Compiled steps of cutting a plane: on which faces units change sign, or windows their winner.

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
        is_known = False
        for i in range(first[f], first[f + 1]):
            v = ends[halves[i] >> 1, halves[i] & 1]
            if owner[v] != f:
                continue
            if not is_known:
                is_known = True
                for k in range(size):
                    s = abs(coef[n, 0, k]) + abs(coef[n, 1, k]) + abs(coef[n, 2, k])
                    tolerance[k] = ROUNDING * np.sqrt(coef[n, 3, k] + s * s)
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
def listed(coef: Array, over: Array, unit: Array, kept: Array) -> None:
    """List the functions that cross each face with their coefficients and tolerance."""
    at = 0
    for n in range(len(coef)):
        for w in range(over.shape[1]):
            left = over[n, w]
            k = 64 * w
            while left:
                if left & np.uint64(1):
                    x, y, one = coef[n, 0, k], coef[n, 1, k], coef[n, 2, k]
                    s = abs(x) + abs(y) + abs(one)
                    unit[at] = k
                    kept[at, 0], kept[at, 1], kept[at, 2] = x, y, one
                    kept[at, 3] = ROUNDING * np.sqrt(coef[n, 3, k] + s * s)
                    at += 1
                left >>= np.uint64(1)
                k += 1


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
