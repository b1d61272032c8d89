"""Compiled: cut the pieces of lines at the zeros of one layer, and follow it from piece to piece.

On a piece every unit is an affine function p + q t of the line's coordinate t in [0, 1]. Where
some units flip between two neighbouring pieces, the next layer changes by their columns only.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from inscape.runtime.compilation import compiled

Array = Any


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that the kernels of this file inline."""
    jit: Callable[..., Any] = njit
    return jit(inspect.unwrap(function), forceinline=True, nogil=True)


@part
def _follow(state: Array, s: int, pieces: Any, bases: Array, columns: Array) -> None:
    """Update the coefficients of a layer to piece ``s``: from its base, or by flipping units."""
    _, _, base, flip_at, flip_unit, flip_by, _ = pieces
    m = state.shape[1]
    if base[s] >= 0:
        for i in range(m):
            state[0, i] = bases[base[s], 0, i]
            state[1, i] = bases[base[s], 1, i]
        return
    for k in range(flip_at[s], flip_at[s + 1]):
        unit, p, q = flip_unit[k], flip_by[k, 0], flip_by[k, 1]
        for i in range(m):
            state[0, i] += p * columns[unit, i]
            state[1, i] += q * columns[unit, i]


@part
def _activate(state: Array, lo: float, hi: float, layer: Any, row: int, hidden: Array) -> None:
    """Write the activations just after ``lo``, and mark the units that cross zero."""
    slopes, tolerance, scale, crosses = layer
    for i in range(state.shape[1]):
        p, q, slope = state[0, i], state[1, i], slopes[i]
        left, right = p + q * lo, p + q * hi
        large = max(abs(left), abs(right)) > tolerance[row, i]
        changes = large & (((left < 0) & (right > 0)) | ((left > 0) & (right < 0)))
        on = large & ((left > 0) if changes else (left + right > 0))
        keep = 1.0 if on else slope
        hidden[0, i] = p * keep
        hidden[1, i] = q * keep
        crosses[i] = changes
        reach = max(abs(p), abs(p + q)) * max(1.0, abs(slope))
        scale[row, i] = max(scale[row, i], reach)


@part
def _crossings(
    state: Array, lo: float, hi: float, narrow: float, layer: Any, hidden: Array, zeros: Any
) -> int:
    """List the zeros strictly inside, in no order; those too near to an end only set the kink."""
    slopes, _, _, crosses = layer
    at, unit = zeros
    count = 0
    for i in range(state.shape[1]):
        if not crosses[i]:
            continue
        left, right = state[0, i] + state[1, i] * lo, state[0, i] + state[1, i] * hi
        zero = lo + (hi - lo) * (left / (left - right))
        if lo + narrow < zero < hi - narrow:
            at[count], unit[count] = zero, i
            count += 1
        else:
            keep = 1.0 if left + right > 0 else slopes[i]
            hidden[0, i] = state[0, i] * keep
            hidden[1, i] = state[1, i] * keep
    return count


@part
def _sort(at: Array, unit: Array, count: int) -> None:
    """Sort the zeros along the line; a few by insertion, without allocating."""
    if count > 32:
        order = np.argsort(at[:count])
        at[:count] = at[:count][order]
        unit[:count] = unit[:count][order]
        return
    for n in range(1, count):
        zero, i, k = at[n], unit[n], n
        while k > 0 and at[k - 1] > zero:
            at[k], unit[k] = at[k - 1], unit[k - 1]
            k -= 1
        at[k], unit[k] = zero, i


@part
def _split(s: int, seg: int, span: Any, state: Array, slopes: Array, zeros: Any, out: Any) -> None:
    """Write the parts of piece ``s`` between its zeros; zeros that coincide make one knot."""
    lo, hi, narrow = span
    at, unit, count = zeros
    (knots_lo, knots_hi, base, flip_at, flip_unit, flip_by, segment), size = out
    k, f = size[0], size[1]
    knots_lo[k], base[k], segment[k], flip_at[k] = lo, s, seg, f
    last = lo
    for n in range(count):
        zero, i = at[n], unit[n]
        if zero > last + narrow:
            knots_hi[k] = zero
            k += 1
            knots_lo[k], base[k], segment[k], flip_at[k] = zero, -1, seg, f
            last = zero
        rises = state[0, i] + state[1, i] * lo < 0
        by = (1.0 - slopes[i]) if rises else (slopes[i] - 1.0)
        flip_unit[f], flip_by[f, 0], flip_by[f, 1] = i, by * state[0, i], by * state[1, i]
        f += 1
    knots_hi[k] = hi
    size[0], size[1] = k + 1, f
    flip_at[k + 1] = f


@compiled(reorder=False)
def cut_layer(
    first: int,
    stop: int,
    pieces: Any,
    bases: Array,
    columns: Array,
    slopes: Array,
    tolerance: Array,
    scale: Array,
    narrow: float,
    state: Array,
    hidden: Array,
    out: Any,
) -> None:
    """Cut pieces ``first`` to ``stop`` at the zeros of a layer.

    ``pieces`` are (lo, hi, base, flip_at, flip_unit, flip_by, segment): a piece has its own row of
    ``bases``, or follows from the piece before it by its flips. ``state`` is handed on from call
    to call; the rows of ``tolerance`` and ``scale`` are those of the segments. Written are
    ``hidden``, the activations at the start of each piece, and ``out``, the parts.
    """
    m, segment = state.shape[1], pieces[6]
    crosses = np.zeros(m, dtype=np.bool_)
    at, unit = np.empty(m), np.empty(m, dtype=np.int64)
    layer = (slopes, tolerance, scale, crosses)
    for s in range(first, stop):
        lo, hi, outgoing = pieces[0][s], pieces[1][s], hidden[s - first]
        _follow(state, s, pieces, bases, columns)
        _activate(state, lo, hi, layer, segment[s] - segment[first], outgoing)
        count = _crossings(state, lo, hi, narrow, layer, outgoing, (at, unit))
        _sort(at, unit, count)
        span, zeros = (lo, hi, narrow), (at, unit, count)
        _split(s - first, segment[s], span, state, slopes, zeros, out)


@compiled(reorder=False)
def follow_outputs(
    pieces: Any, bases: Array, columns: Array, values: Array, slopes: Array, ends: Array
) -> None:
    """Write the outputs at the start and at the end of every piece, and their slopes."""
    state = np.empty((2, columns.shape[1]))
    for s in range(len(values)):
        _follow(state, s, pieces, bases, columns)
        lo, hi = pieces[0][s], pieces[1][s]
        for i in range(state.shape[1]):
            values[s, i] = state[0, i] + state[1, i] * lo
            ends[s, i] = state[0, i] + state[1, i] * hi
            slopes[s, i] = state[1, i]
