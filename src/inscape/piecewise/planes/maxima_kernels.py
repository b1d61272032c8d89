"""Compiled steps of cutting a plane by maxima: on which faces windows have no one maximum.

Faces and coefficients are as in :mod:`inscape.piecewise.planes.sign_kernels`; a window lists the
functions whose maximum it is. Importing this imports numba.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled, part

Array = npt.NDArray[Any]


@compiled(reorder=False)
def undecided_windows(
    coef: Array,
    faces: Array,
    first: Array,
    halves: Array,
    ends: Array,
    place: Array,
    windows: Array,
    tolerance: Array,
    pattern: Array,
    count: Array,
    out: Array,
) -> int:
    """Write the largest function of every window on each face; list the windows without one.

    It is largest, within rounding, at all vertices of the face; the first of several.
    Returns how many there are; only as many are written as ``out`` has room for.
    """
    size, number, entries = coef.shape[2], len(windows), windows.shape[1]
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
            for r in range(entries):
                k = windows[w, r]
                leads = True
                for i in range(length):
                    for s in range(entries):
                        o = windows[w, s]
                        if z[i, o] - z[i, k] > tolerance[n, o] + tolerance[n, k]:
                            leads = False
                            break
                    if not leads:
                        break
                if leads:
                    winner = r
                    break
            pattern[f, w] = max(winner, 0)
            if winner < 0:
                if at < len(out):
                    out[at] = w
                at += 1
                count[n] += 1
    return at


@compiled(reorder=False)
def still_undecided(
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
    pattern: Array,
    count: Array,
    out: Array,
    lines: Array,
    key: Array,
    line_unit: Array,
    line_coef: Array,
) -> None:
    """Write the maxima of listed windows on parts of a face, and two candidates where none is.

    At most ``most`` pairs for a face (``lines``): more are found once it is cut.
    """
    z = np.empty((64, windows.shape[1]))
    at, drawn = 0, 0
    for n in range(len(faces)):
        f = faces[n]
        length = first[f + 1] - first[f]
        if length > len(z):
            z = np.empty((2 * length, windows.shape[1]))
        begin, before = at, drawn
        for e in range(start[source[n]], start[source[n] + 1]):
            c, w = entry[e], unit[entry[e]]
            for i in range(length):
                half = halves[first[f] + i]
                heights(z[i], coef[c], place[ends[half >> 1, half & 1]])
            pattern[f, w], sure = leader(z[:length], coef[c])
            if sure:
                continue
            if drawn - before < most:
                r, s = undecided_pair(z[:length], coef[c], windows[w])
                if r < 0:
                    continue  # rounding left no clear pair: what leads on the whole stays
                key[drawn] = windows[w, r] * size + windows[w, s]
                line_unit[drawn] = w
                for a in range(3):
                    line_coef[drawn, a] = coef[c, r, a] - coef[c, s, a]
                line_coef[drawn, 3] = coef[c, r, 3] + coef[c, s, 3]
                drawn += 1
            out[at] = c
            at += 1
        count[n] = at - begin
        lines[n] = drawn - before


@part
def heights(z: Array, coef: Array, at: Array) -> None:
    """Write the value of every function of a window at a vertex."""
    for r in range(len(coef)):
        z[r] = coef[r, 0] * at[0] + coef[r, 1] * at[1] + coef[r, 2]


@part
def leader(z: Array, coef: Array) -> Any:
    """Return the first that is largest, within rounding, at all vertices, and whether one is.

    If none is, the one that is largest on the whole.
    """
    best, highest = 0, -np.inf
    for r in range(z.shape[1]):
        leads, total = True, 0.0
        for i in range(len(z)):
            total += z[i, r]
            for s in range(z.shape[1]):
                if z[i, s] - z[i, r] > coef[s, 3] + coef[r, 3]:
                    leads = False
        if leads:
            return r, True
        if total > highest:
            best, highest = r, total
    return best, False


@part
def undecided_pair(z: Array, coef: Array, window: Array) -> Any:
    """Return two functions that are each largest at some vertex; -1 if there are none."""
    for r in range(z.shape[1]):
        for s in range(r + 1, z.shape[1]):
            if window[r] == window[s]:
                continue
            gap = coef[r, 3] + coef[s, 3]
            ahead, behind = False, False
            for i in range(len(z)):
                if is_top(max(z[i, r], z[i, s]), z[i], gap):
                    ahead = ahead or z[i, r] - z[i, s] > gap
                    behind = behind or z[i, s] - z[i, r] > gap
            if ahead and behind:
                return r, s
    return -1, -1


@part
def is_top(top: float, z: Array, gap: float) -> bool:
    """Tell whether no number is above ``top`` by more than the gap."""
    above = False
    for other in z:
        above |= other - top > gap
    return not above
