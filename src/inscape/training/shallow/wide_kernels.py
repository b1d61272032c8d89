"""Steps of Adam for one hidden layer on few inputs, compiled, unit by unit.

All arrays have one precision. The activations of a unit are a row with one entry per point, so that
only weights and those rows pass through memory. ``x`` has a row per input, a column per point.
"""

# mypy: disable-error-code="no-untyped-call, import-untyped"
# numba carries no types.

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from inscape.runtime.compilation import compiled
from inscape.runtime.denormals import flush_denormals, restore

Array = NDArray[Any]

RELU, TANH, EXACT_TANH = 0, 1, 2


def _part(function: Callable[..., Any]) -> Any:
    """Return a function that is compiled into the kernel that calls it.

    Divisions are not checked for zero, since loops with such checks are not vectorised.
    """
    jit: Callable[..., Any] = njit
    options = {"fastmath": True, "error_model": "numpy"}
    return jit(inspect.unwrap(function), forceinline=True, nogil=True, **options)


def _lambert(depth: int) -> tuple[list[float], list[float]]:
    r"""Return both polynomials in x squared of Lambert's fraction for tanh(x) / x, cut off.

    .. math:: \tanh x = \cfrac{x}{1 + \cfrac{x^2}{3 + \cfrac{x^2}{5 + \cdots}}}
    """
    below, above = [2 * depth - 1], [1]
    for odd in range(2 * depth - 3, 0, -2):
        size = max(len(below), len(above) + 1)
        scaled = [odd * p for p in below] + [0] * (size - len(below))
        shifted = [0, *above] + [0] * (size - len(above) - 1)
        below, above = [p + q for p, q in zip(scaled, shifted, strict=True)], below
    return [p / below[0] for p in above], [q / below[0] for q in below]


(P0, P1, P2, P3, P4, P5, P6), (Q0, Q1, Q2, Q3, Q4, Q5, Q6) = _lambert(13)
#: Beyond this tanh is 1 in single precision; up to here the fraction is right to 4e-8.
FARTHEST = 9.0


@_part
def activate(row: Array, kind: int) -> None:
    """Replace a row by its activations."""
    to = row.dtype.type
    zero, unity, far = to(0), to(1), to(FARTHEST)
    if kind == RELU:
        for i in range(len(row)):
            row[i] = row[i] if row[i] > zero else zero
    elif kind == TANH:
        p1, p2, p3, p4, p5, p6 = to(P1), to(P2), to(P3), to(P4), to(P5), to(P6)
        q1, q2, q3, q4, q5, q6 = to(Q1), to(Q2), to(Q3), to(Q4), to(Q5), to(Q6)
        for i in range(len(row)):
            z = row[i] if row[i] < far else far
            z = z if z > -far else -far
            u = z * z
            above = unity + u * (p1 + u * (p2 + u * (p3 + u * (p4 + u * (p5 + u * p6)))))
            below = unity + u * (q1 + u * (q2 + u * (q3 + u * (q4 + u * (q5 + u * q6)))))
            row[i] = z * above / below
    else:
        for i in range(len(row)):
            row[i] = np.tanh(row[i])


@_part
def scale_of(values: Array, target: Any) -> Any:
    """Return the factor that gives values the standard deviation ``target``, their mean, and it."""
    to = values.dtype.type
    total = to(0)
    for i in range(len(values)):
        total += values[i]
    mean = total / to(len(values))
    square = to(0)
    for i in range(len(values)):
        square += (values[i] - mean) * (values[i] - mean)
    variance = square / to(len(values) - 1)
    return to(target) / np.sqrt(variance), mean, variance


@_part
def scale_gradient(values: Array, gradients: Array, factor: Any, mean: Any, variance: Any) -> None:
    """Replace the gradient in scaled values by that in the values themselves."""
    to = values.dtype.type
    along = to(0)
    for i in range(len(values)):
        along += gradients[i] * values[i]
    along /= to(len(values) - 1) * variance
    for i in range(len(values)):
        gradients[i] = factor * (gradients[i] - along * (values[i] - mean))


@_part
def forward(
    x: Array, w: Array, b: Array, a: Array, factors: Array, hidden: Array, out: Array, kind: int
) -> None:
    """Write the activations of all units, a row each, and the outputs without their offset."""
    out[:] = out.dtype.type(0)
    for j in range(len(b)):
        row, start = hidden[j], factors[1] * b[j]
        if len(x) == 2:  # the papers' inputs, without intermediate results in memory
            w0, w1 = factors[0] * w[j, 0], factors[0] * w[j, 1]
            for i in range(len(row)):
                row[i] = start + w0 * x[0, i] + w1 * x[1, i]
        else:
            row[:] = start
            for k in range(len(x)):
                weight = factors[0] * w[j, k]
                for i in range(len(row)):
                    row[i] += weight * x[k, i]
        activate(row, kind)
        weight = factors[2] * a[j]
        for i in range(len(row)):
            out[i] += weight * row[i]


@_part
def error_gradient(out: Array, y: Array, offset: Any) -> Any:
    """Replace outputs by the gradient of the mean squared error in them; return the error.

    The outputs are those of several views of the same points, one view after the other, and the
    prediction is their mean.
    """
    to = out.dtype.type
    n = len(y)
    views = len(out) // n
    total, weight, factor = to(0), to(1) / to(views), to(2) / to(len(out))
    for i in range(n):
        output = to(0)
        for view in range(views):
            output += out[view * n + i]
        error = offset + weight * output - y[i]
        total += error * error
        for view in range(views):
            out[view * n + i] = factor * error
    return total / to(n)


@_part
def backward(
    x: Array, a: Array, factors: Array, hidden: Array, slope: Array,
    dw: Array, db: Array, da: Array, kind: int,
) -> None:  # fmt: skip
    """Write the gradients in the scaled weights."""
    to = slope.dtype.type
    zero, unity = to(0), to(1)
    for j in range(len(a)):
        row, weight = hidden[j], factors[2] * a[j]
        along = zero
        for i in range(len(row)):
            along += slope[i] * row[i]
        da[j] = along
        if kind == RELU:
            for i in range(len(row)):
                row[i] = weight * slope[i] if row[i] > zero else zero
        else:
            for i in range(len(row)):
                row[i] = weight * slope[i] * (unity - row[i] * row[i])
        total = zero
        for i in range(len(row)):
            total += row[i]
        db[j] = total
        for k in range(len(x)):
            along = zero
            for i in range(len(row)):
                along += row[i] * x[k, i]
            dw[j, k] = along


@_part
def adam(
    values: Array, gradients: Array, mean: Array, square: Array, rate: Any, rules: Array, step: int
) -> None:
    """Make a step of Adam, its number counted from 1."""
    to = values.dtype.type
    unity, first, second, least = to(1), to(rules[0]), to(rules[1]), to(rules[2])
    corrected_rate = to(rate / (1 - rules[0] ** step))
    root = to(1 / np.sqrt(1 - rules[1] ** step))
    for i in range(len(values)):
        mean[i] = first * mean[i] + (unity - first) * gradients[i]
        square[i] = second * square[i] + (unity - second) * gradients[i] * gradients[i]
        values[i] -= corrected_rate * mean[i] / (np.sqrt(square[i]) * root + least)


@compiled
def run(
    x: Array, y: Array, units: int, weights: Array, gradients: Array, moments: Array, hidden: Array,
    out: Array, factors: Array, deviations: Array, rules: Array, rates: Array, done: int, kind: int,
    losses: Array,
) -> None:  # fmt: skip
    """Make as many steps as there are rates, after ``done`` steps before.

    ``weights`` holds the first layer, its biases, the second layer and its offset; ``deviations``
    their standard deviations, 0 where they are free, and -f for a constant factor f.
    """
    before = flush_denormals()
    d = len(x)
    ends = (0, units * d, units * (d + 1), units * (d + 2), units * (d + 2) + 1)
    means, variances = np.zeros(4, weights.dtype), np.ones(4, weights.dtype)
    w, dw = weights[: ends[1]].reshape(units, d), gradients[: ends[1]].reshape(units, d)
    b, db = weights[ends[1] : ends[2]], gradients[ends[1] : ends[2]]
    a, da = weights[ends[2] : ends[3]], gradients[ends[2] : ends[3]]
    for step in range(len(rates)):
        for part in range(4):
            factors[part] = -deviations[part] if deviations[part] < 0 else 1
            if deviations[part] > 0:
                values = weights[ends[part] : ends[part + 1]]
                factors[part], means[part], variances[part] = scale_of(values, deviations[part])
        forward(x, w, b, a, factors, hidden, out, kind)
        losses[step] = error_gradient(out, y, factors[3] * weights[ends[3]])
        backward(x, a, factors, hidden, out, dw, db, da, kind)
        gradients[ends[3]] = out.sum()
        for part in range(4):
            values, gradient = (
                weights[ends[part] : ends[part + 1]],
                gradients[ends[part] : ends[part + 1]],
            )
            if deviations[part] > 0:
                scale_gradient(values, gradient, factors[part], means[part], variances[part])
            elif deviations[part] < 0:
                for i in range(len(values)):
                    gradient[i] *= factors[part]
        adam(weights, gradients, moments[0], moments[1], rates[step], rules, done + step + 1)
    restore(before)
