"""The elementwise middle of a step, compiled: between two matrix products lies one pass of these.

All arrays share one precision. ``z`` holds the hidden units before the ReLU, one row per point;
``a`` are the output weights; ``dz`` and ``da`` collect gradients. The slope of the ReLU at 0 is 0.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inscape.runtime.compilation import compiled

Array = NDArray[Any]


@compiled
def squared_error(z: Array, y: Array, a: Array, offset: Array, dz: Array, da: Array) -> Any:
    """Fill ``dz`` and ``da`` with the gradient of the mean squared error.

    Return the sum of squared errors and the gradient of the offset.
    """
    zero = np.zeros(1, a.dtype)[0]
    factor = offset[0] * zero + 2 / len(y)
    da[:] = zero
    total, slope_sum = zero, zero
    for i in range(len(y)):
        output = offset[0]
        for j in range(len(a)):
            output += (z[i, j] if z[i, j] > zero else zero) * a[j]
        error = output - y[i]
        total += error * error
        slope = a.dtype.type(factor * error)
        slope_sum += slope
        for j in range(len(a)):
            on = z[i, j] > zero
            da[j] += slope * z[i, j] if on else zero
            dz[i, j] = slope * a[j] if on else zero
    return total, slope_sum


@compiled
def active_weights(z: Array, a: Array, out: Array) -> None:
    """Fill ``out`` with the output weights of the units that are on: the gradient in the units."""
    zero = np.zeros(1, a.dtype)[0]
    for i in range(len(z)):
        for j in range(len(a)):
            out[i, j] = a[j] if z[i, j] > zero else zero


@compiled
def add_where_on(z: Array, grown: Array, da: Array) -> None:
    """Add to ``da`` the rows of ``grown``, where the units are on."""
    zero = np.zeros(1, da.dtype)[0]
    for i in range(len(z)):
        for j in range(len(da)):
            da[j] += grown[i, j] if z[i, j] > zero else zero


@compiled
def normalise_rows(rows: Array, scale: Any, weights: Array) -> Any:
    """Scale each row to the length ``scale``, rows of zeros stay; return the sum of the lengths."""
    zero = np.zeros(1, rows.dtype)[0]
    total = zero
    for i in range(len(rows)):
        square = zero
        for j in range(rows.shape[1]):
            square += rows[i, j] * rows[i, j]
        length = np.sqrt(square)
        total += length
        factor = weights.dtype.type(scale / length) if length > zero else zero
        for j in range(rows.shape[1]):
            rows[i, j] *= factor
    return total


@compiled
def path(z: Array, a: Array, scale: Any, t: Array, dz: Array, da: Array) -> Any:
    """Add ``scale`` times the gradient of the path length of the pairs (first half, second half).

    Along a segment the pre-activations are linear, so no product is needed.
    Return the sum of the lengths.
    """
    zero, unity = np.zeros(1, a.dtype)[0], np.ones(1, a.dtype)[0]
    half, knots = len(z) // 2, len(t)
    outputs = np.empty(knots, a.dtype)
    output_gradient = np.empty(knots, a.dtype)
    total = zero
    for i in range(half):
        for k in range(knots):
            output = zero
            for j in range(len(a)):
                at = z[i, j] + t[k] * (z[half + i, j] - z[i, j])
                output += (at if at > zero else zero) * a[j]
            outputs[k] = output
        output_gradient[:] = zero
        for k in range(knots - 1):
            change = outputs[k + 1] - outputs[k]
            total += abs(change)
            sign = a.dtype.type(scale * np.sign(change))
            output_gradient[k + 1] += sign
            output_gradient[k] -= sign
        for k in range(knots):
            if output_gradient[k] == zero:
                continue
            for j in range(len(a)):
                at = z[i, j] + t[k] * (z[half + i, j] - z[i, j])
                weight = output_gradient[k] if at > zero else zero
                da[j] += weight * at
                dz[half + i, j] += t[k] * weight * a[j]
                dz[i, j] += (unity - t[k]) * weight * a[j]
    return total


@compiled
def gradient_path(
    z: Array, a: Array, scale: Any, lr: Any, t: Array, w: Array, changes: Array, da: Array
) -> Any:
    """Make a gradient step on ``scale`` times the gradient path length of the pairs.

    ``w`` has one row per unit, its bias last. Few units switch between two knots, so the change of
    the gradient there is a sum of few rows. Add the gradient in the output weights to ``da``;
    return the sum of the lengths. ``changes`` is a buffer with one row per segment of each pair.
    """
    zero = np.zeros(1, a.dtype)[0]
    half, steps, d = len(z) // 2, len(t) - 1, w.shape[1] - 1
    switched = np.empty((half * steps, len(a)), np.int32)
    signs = np.empty((half * steps, len(a)), a.dtype)
    counts = np.zeros(half * steps, np.int64)
    total = zero
    for i in range(half):
        for k in range(steps):
            row, count = i * steps + k, 0
            for j in range(len(a)):
                move = z[half + i, j] - z[i, j]
                on = z[i, j] + t[k + 1] * move > zero
                if on != (z[i, j] + t[k] * move > zero):
                    switched[row, count] = j
                    signs[row, count] = 1 if on else -1
                    count += 1
            counts[row] = count
            if count == 0:
                continue
            changes[row] = zero
            for c in range(count):
                j = switched[row, c]
                weight = signs[row, c] * a[j]
                for m in range(d):
                    changes[row, m] += weight * w[j, m]
            square = zero
            for m in range(d):
                square += changes[row, m] * changes[row, m]
            length = np.sqrt(square)
            total += length
            factor = a.dtype.type(scale / length) if length > zero else zero
            for c in range(count):
                j = switched[row, c]
                dot = zero
                for m in range(d):
                    dot += changes[row, m] * w[j, m]
                da[j] += signs[row, c] * factor * dot
            for m in range(d):
                changes[row, m] *= factor
    for row in range(half * steps):  # only now, since all of the above reads the old weights
        for c in range(counts[row]):
            j = switched[row, c]
            move = a.dtype.type(lr * signs[row, c] * a[j])
            for m in range(d):
                w[j, m] -= move * changes[row, m]
    return total


@compiled
def shrink_units(w: Array, a: Array, scale: Any, lr: Any, da: Array) -> Any:
    """Make a gradient step on ``scale`` times the weights product; ``w`` has one column per unit.

    Add its gradient in the output weights to ``da``; return the weights product.
    """
    zero = np.zeros(1, a.dtype)[0]
    squares = np.zeros(len(a), a.dtype)
    for i in range(len(w)):
        for j in range(len(a)):
            squares[j] += w[i, j] * w[i, j]
    total = zero
    for j in range(len(a)):
        length = np.sqrt(squares[j])
        total += length * abs(a[j])
        da[j] += a.dtype.type(scale * np.sign(a[j])) * length
        squares[j] = a.dtype.type(1 - lr * scale * abs(a[j]) / length) if length > zero else 1
    for i in range(len(w)):
        for j in range(len(a)):
            w[i, j] *= squares[j]
    return total
