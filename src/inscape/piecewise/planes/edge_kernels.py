"""Compiled steps on the edges of faces: which faces they part, and where functions cut them.

Faces are loops of half-edges: ``half >> 1`` is the edge, ``half & 1`` tells whether it is walked
from its second end. Signs are bits, 64 to a word.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled

Array = npt.NDArray[Any]


@compiled(reorder=False)
def owners(first: Array, halves: Array, ends: Array, owner: Array) -> None:
    """Write for each vertex the first face that has it, on which its signs are decided."""
    for v in range(len(owner)):
        owner[v] = -1
    for f in range(len(first) - 1):
        for i in range(first[f], first[f + 1]):
            v = ends[halves[i] >> 1, halves[i] & 1]
            if owner[v] < 0:
                owner[v] = f


@compiled(reorder=False)
def sided(first: Array, halves: Array, sides: Array) -> None:
    """Write the face to the left and to the right of every edge; -1 where there is none."""
    for e in range(len(sides)):
        sides[e, 0], sides[e, 1] = -1, -1
    for f in range(len(first) - 1):
        for i in range(first[f], first[f + 1]):
            sides[halves[i] >> 1, halves[i] & 1] = f


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
    cut_fraction: Array,
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
                fraction = za / (za - zb) if za != zb else 0.5
                if not 0.0 < fraction < 1.0:
                    fraction = min(max(fraction, 1e-15), 1 - 1e-15) if fraction == fraction else 0.5
                c = base + number
                while c > base and cut_fraction[c - 1] > fraction:
                    cut_fraction[c], cut_key[c] = cut_fraction[c - 1], cut_key[c - 1]
                    cut_group[c] = cut_group[c - 1]
                    c -= 1
                cut_fraction[c], cut_key[c], cut_group[c] = fraction, key[i], i
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
                s = cut_fraction[c]
                x = place[a, 0] + s * (place[b, 0] - place[a, 0])
                y = place[a, 1] + s * (place[b, 1] - place[a, 1])
            cut_group[c] = group
        for c in range(base + number, offset[e + 1]):
            cut_group[c] = -1
        groups[e] = group + 1


@compiled(reorder=False)
def edges_split(
    begin: int,
    end: int,
    ends: Array,
    made: Array,
    place: Array,
    offset: Array,
    cut_fraction: Array,
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
                s, v = cut_fraction[c], vertex[e] + group - old
                new_place[v, 0] = place[a, 0] + s * (place[b, 0] - place[a, 0])
                new_place[v, 1] = place[a, 1] + s * (place[b, 1] - place[a, 1])
        for k in range(number + 1):
            part = child[e] + k
            new_ends[part, 0] = a if k == 0 else vertex[e] + k - 1
            new_ends[part, 1] = b if k == number else vertex[e] + k
            new_made[part, 0], new_made[part, 1] = made[e, 0], made[e, 1]


@compiled(reorder=False)
def shifted(numbers: Array, least: int, shift: int, out: Array) -> None:
    """Write numbers, those from ``least`` on raised by ``shift``."""
    for i in range(len(numbers)):
        out[i] = numbers[i] + shift if numbers[i] >= least else numbers[i]
