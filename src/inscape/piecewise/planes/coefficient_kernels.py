"""Compiled sums of columns: a layer's affine functions on every face, from those before it.

On every face each function of a layer is affine in the plane: three coefficients, for x, for y and
constant. A fourth row carries the squares that rounding grows from: what went into the function's
sum, and into the sums before. A list tells for each face which columns of a matrix are added, and
``weight`` how much of each goes into the four rows (into the last, of the column's squares).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled

Array = npt.NDArray[Any]

#: Bytes of a matrix that are gone through for one face after the other: they stay in the cache.
NEAR = 2**19


@compiled(reorder=False)
def chosen(
    parent: Array,
    start: Array,
    unit: Array,
    change: Array,
    bits: Array,
    pattern: Array,
    rows: Array,
    begin: Array,
    column: Array,
    weight: Array,
) -> None:
    """List the units with a nonzero state, of those that cross the parent of each face.

    The state of a unit is a bit (``bits`` not empty) or a byte; state r > 0 changes its output
    by ``change[i, r - 1]``. ``rows`` are the rows of ``parent`` and of the patterns.
    """
    at = 0
    for n in range(len(rows)):
        f = rows[n]
        begin[n] = at
        for i in range(start[parent[f]], start[parent[f] + 1]):
            j = unit[i]
            if len(bits):
                r = np.int64((bits[f, j >> 6] >> np.uint64(j & 63)) & np.uint64(1))
            else:
                r = np.int64(pattern[f, j])
            if r > 0:
                column[at] = j
                for a in range(4):
                    weight[at, a] = change[i, r - 1, a]
                at += 1
    begin[len(rows)] = at


@compiled(reorder=False)
def passing(
    coef: Array,
    on: Array,
    over: Array,
    slope: Array,
    begin: Array,
    column: Array,
    weight: Array,
) -> None:
    """List the units with a nonzero output on each face where all crossing units are off."""
    at = 0
    for n in range(len(coef)):
        begin[n] = at
        for k in range(coef.shape[2]):
            bit = np.uint64(k & 63)
            is_on = ((on[n, k >> 6] & ~over[n, k >> 6]) >> bit) & np.uint64(1)
            factor = 1.0 if is_on else slope[k]
            if factor != 0.0:
                x, y, constant = coef[n, 0, k], coef[n, 1, k], coef[n, 2, k]
                s = abs(x) + abs(y) + abs(constant)
                column[at] = k
                weight[at, 0], weight[at, 1], weight[at, 2] = (
                    factor * x,
                    factor * y,
                    factor * constant,
                )
                weight[at, 3] = factor * factor * (coef[n, 3, k] + s * s)
                at += 1
    begin[len(coef)] = at


@compiled
def summed(
    base: Array,
    source: Array,
    begin: Array,
    column: Array,
    weight: Array,
    matrix: Array,
    out: Array,
) -> None:
    """Write for each face a row of ``base`` and the columns on its list (``matrix`` has rows)."""
    size = base.shape[2]
    width = min(size, max(64, NEAR // (8 * len(matrix))))
    for left in range(0, size, width):
        # unsigned: so the compiler knows that they do not count from the end
        low, high = np.uint64(left), np.uint64(min(left + width, size))
        for n in range(len(source)):
            o, b = out[n], base[source[n]]
            for a in range(4):
                for k in range(low, high):
                    o[a, k] = b[a, k]
            i, end = begin[n], begin[n + 1]
            # four columns at a time: what is summed up is loaded and stored once for them
            while i + 4 <= end:
                p, q = matrix[column[i]], matrix[column[i + 1]]
                r, s = matrix[column[i + 2]], matrix[column[i + 3]]
                px, py, p1, pv = weight[i, 0], weight[i, 1], weight[i, 2], weight[i, 3]
                qx, qy, q1, qv = (
                    weight[i + 1, 0],
                    weight[i + 1, 1],
                    weight[i + 1, 2],
                    weight[i + 1, 3],
                )
                rx, ry, r1, rv = (
                    weight[i + 2, 0],
                    weight[i + 2, 1],
                    weight[i + 2, 2],
                    weight[i + 2, 3],
                )
                sx, sy, s1, sv = (
                    weight[i + 3, 0],
                    weight[i + 3, 1],
                    weight[i + 3, 2],
                    weight[i + 3, 3],
                )
                for k in range(low, high):
                    t, u, v, w = p[k], q[k], r[k], s[k]
                    x = o[0, k] + px * t + qx * u + rx * v + sx * w
                    y = o[1, k] + py * t + qy * u + ry * v + sy * w
                    constant = o[2, k] + p1 * t + q1 * u + r1 * v + s1 * w
                    grown = o[3, k] + pv * (t * t) + qv * (u * u) + rv * (v * v) + sv * (w * w)
                    o[0, k], o[1, k], o[2, k], o[3, k] = x, y, constant, grown
                i += 4
            while i < end:
                p = matrix[column[i]]
                px, py, p1, pv = weight[i, 0], weight[i, 1], weight[i, 2], weight[i, 3]
                for k in range(low, high):
                    t = p[k]
                    x, y, constant = o[0, k] + px * t, o[1, k] + py * t, o[2, k] + p1 * t
                    grown = o[3, k] + pv * (t * t)
                    o[0, k], o[1, k], o[2, k], o[3, k] = x, y, constant, grown
                i += 1


@compiled
def summed_sparsely(
    base: Array,
    source: Array,
    begin: Array,
    column: Array,
    weight: Array,
    slot: Array,
    start: Array,
    index: Array,
    value: Array,
    out: Array,
) -> None:
    """Write what ``summed`` does, with sparse columns: that of unit j begins at start[slot[j]]."""
    size = base.shape[2]
    for n in range(len(source)):
        for a in range(4):
            for k in range(size):
                out[n, a, k] = base[source[n], a, k]
        for i in range(begin[n], begin[n + 1]):
            x, y, constant, grown = weight[i, 0], weight[i, 1], weight[i, 2], weight[i, 3]
            j = slot[column[i]]
            for c in range(start[j], start[j + 1]):
                k, w = index[c], value[c]
                out[n, 0, k] += x * w
                out[n, 1, k] += y * w
                out[n, 2, k] += constant * w
                out[n, 3, k] += grown * w * w


@compiled(reorder=False)
def activated(coef: Array, on: Array, over: Array, slope: Array) -> None:
    """Turn the pre-activations of a layer into its activations, with crossing units off."""
    size = coef.shape[2]
    factor = np.empty(size)
    for n in range(len(coef)):
        for w in range(on.shape[1]):
            is_on = on[n, w] & ~over[n, w]
            for k in range(64 * w, min(size, 64 * w + 64)):
                bit = (is_on >> np.uint64(k - 64 * w)) & np.uint64(1)
                factor[k] = 1.0 if bit else slope[k]
        for k in range(size):
            x, y, constant = coef[n, 0, k], coef[n, 1, k], coef[n, 2, k]
            s = abs(x) + abs(y) + abs(constant)
            grown = factor[k] * factor[k] * (coef[n, 3, k] + s * s)
            coef[n, 0, k], coef[n, 1, k] = factor[k] * x, factor[k] * y
            coef[n, 2, k], coef[n, 3, k] = factor[k] * constant, grown


@compiled
def narrowed(coef: Array, matrix: Array, bias: Array, out: Array) -> None:
    """Write a few linear functions of a layer's activations: the columns of ``matrix``."""
    size, few = coef.shape[2], out.shape[2]
    column, square = np.empty((few, size)), np.empty((few, size))
    for o in range(few):
        for k in range(size):
            column[o, k] = matrix[k, o]
            square[o, k] = matrix[k, o] ** 2
    for n in range(len(coef)):
        for o in range(few):
            x, y, level, grown = 0.0, 0.0, 0.0, 0.0
            for k in range(size):
                x += coef[n, 0, k] * column[o, k]
                y += coef[n, 1, k] * column[o, k]
                level += coef[n, 2, k] * column[o, k]
                grown += coef[n, 3, k] * square[o, k]
            out[n, 0, o], out[n, 1, o] = x, y
            out[n, 2, o], out[n, 3, o] = level + bias[o], grown + bias[o] ** 2
