"""Compiled steps of cutting a plane: on which faces units change sign.

Faces are loops of half-edges: ``half >> 1`` is the edge, ``half & 1`` tells whether it is walked
from its second end. On every face each function of the layer is affine in the plane: three
coefficients, for x, for y and constant. A fourth row carries the squares that rounding grows from:
what went into the function's sum, and into the sums before. Signs are bits, 64 to a word.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled

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
    silent: Array,
    count: Array,
) -> int:
    """Write which functions are above zero somewhere on each face, and which change sign there.

    ``silent`` are those without a sign at any vertex.
    """
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
            silent[n, w] = ~(above | below)
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
                    x, y, constant = coef[n, 0, k], coef[n, 1, k], coef[n, 2, k]
                    s = abs(x) + abs(y) + abs(constant)
                    unit[at] = k
                    kept[at, 0], kept[at, 1], kept[at, 2] = x, y, constant
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

    ``source`` names the list of each face. Vertices without a sign get theirs here.
    """
    at = 0
    for n in range(len(faces)):
        f = faces[n]
        begin = at
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
        count[n] = at - begin
    return at
