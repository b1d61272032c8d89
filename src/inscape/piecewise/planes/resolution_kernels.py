"""Compiled checks of a cut plane: jumps across edges, coinciding kinks, units without a sign."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled

Array = npt.NDArray[Any]


@compiled(reorder=False)
def jumping(
    begin: int,
    end: int,
    ends: Array,
    sides: Array,
    place: Array,
    maps: Array,
    noise: Array,
    width: float,
    jumps: Array,
) -> None:
    """Mark edges across which an output jumps by more than rounding and a shifted kink explain.

    An edge lies within ``width`` of the kink, so that the maps of its faces may differ by the
    difference of their slopes times that width.
    """
    for e in range(begin, end):
        a, b = sides[e, 0], sides[e, 1]
        jumps[e] = False
        if a < 0 or b < 0:
            continue
        x = 0.5 * (place[ends[e, 0], 0] + place[ends[e, 1], 0])
        y = 0.5 * (place[ends[e, 0], 1] + place[ends[e, 1], 1])
        for k in range(maps.shape[2]):
            u, v = maps[a, 0, k] - maps[b, 0, k], maps[a, 1, k] - maps[b, 1, k]
            jump = abs(u * x + v * y + maps[a, 2, k] - maps[b, 2, k])
            if jump > noise[a, k] + noise[b, k] + width * (abs(u) + abs(v)):
                jumps[e] = True


@compiled(reorder=False)
def switches(
    begin: int, end: int, sides: Array, patterns: Array, position: Array, switching: Array
) -> None:
    """Write how many units switch across each edge, at least two for more than one.

    ``position`` is -1 for a byte of eight units, else the place of the byte in a window's index.
    """
    for e in range(begin, end):
        a, b = sides[e, 0], sides[e, 1]
        switching[e] = 0
        if a < 0 or b < 0:
            continue
        last = -1
        for k in range(patterns.shape[1]):
            different = patterns[a, k] ^ patterns[b, k]
            if different == 0:
                continue
            if position[k] >= 0:
                window = k - position[k]
                switching[e] += window != last
                last = window
            elif different & (different - 1):
                switching[e] += 2
            else:
                switching[e] += 1
            if switching[e] > 1:
                break


@compiled(reorder=False)
def undecided(
    coef: Array, silent: Array, faces: Array, first: Array, halves: Array, ends: Array, place: Array
) -> tuple[int, float]:
    """Return how many functions that are not zero have no sign on a face, and these faces' area.

    ``silent`` are the functions without a sign at any vertex of each face.
    """
    pairs, area = 0, 0.0
    for n in range(len(faces)):
        number = 0
        for w in range(silent.shape[1]):
            left = silent[n, w]
            k = 64 * w
            while left and k < coef.shape[2]:
                if left & np.uint64(1) and (coef[n, 0, k] != 0.0 or coef[n, 1, k] != 0.0):
                    number += 1
                left >>= np.uint64(1)
                k += 1
        if number:
            pairs += number
            f = faces[n]
            base = ends[halves[first[f]] >> 1, halves[first[f]] & 1]
            for i in range(first[f], first[f + 1]):
                v = ends[halves[i] >> 1, halves[i] & 1]
                w = ends[halves[i] >> 1, 1 - (halves[i] & 1)]
                x, y = place[v, 0] - place[base, 0], place[v, 1] - place[base, 1]
                p, q = place[w, 0] - place[base, 0], place[w, 1] - place[base, 1]
                area += 0.5 * (x * q - y * p)
    return pairs, area
