"""Activations, losses and the stop rule, shared by both kernels of the lanes."""

import math
from typing import Any

import numpy as np

from inscape.ensembles.lanes.state import (
    BCE,
    DIVERGED,
    LEAKY_RELU,
    MSE,
    REACHED,
    RELU,
    RUNNING,
    SIGMOID,
    TANH,
    Array,
)
from inscape.ensembles.lanes.vectors import alike, expm1, fma, load, store, where_positive
from inscape.runtime.compilation import part


@part
def activated(z: Any, kind: int, slope: Any) -> Any:
    """Return the activation of a unit at the pre-activation ``z``."""
    if kind == RELU:
        return where_positive(z, z, alike(z, 0.0))
    if kind == LEAKY_RELU:
        return where_positive(z, z, slope * z)
    if kind == TANH:
        e = expm1(z + z)
        return e / (e + alike(z, 2.0))
    if kind == SIGMOID:
        return alike(z, 1.0) / (expm1(alike(z, 0.0) - z) + alike(z, 2.0))
    return z


@part
def preactivation_gradient(error: Any, value: Any, kind: int, slope: Any) -> Any:
    """Return the gradient in a pre-activation, from that in the activation ``value``."""
    if kind == RELU:
        return where_positive(value, error, alike(error, 0.0))
    if kind == LEAKY_RELU:
        return where_positive(value, error, slope * error)
    if kind == TANH:
        return error * (alike(error, 1.0) - value * value)
    if kind == SIGMOID:
        return error * value * (alike(error, 1.0) - value)
    return error


@part
def criterion(state: Any, kind: int, z: Array, at: int, y: Array, size: int, c: int) -> None:
    """Write the loss of ``size`` points to ``batch_loss``, and its gradient to ``errors``.

    The outputs begin at row ``at`` of ``z``, the gradient at the same row of ``errors``.
    """
    if kind == MSE:
        total = alike(y, 0.0)
        factor = alike(y, 2.0 / (size * c))
        for row in range(size * c):
            error = load(z, at + row) - load(y, row)
            total = fma(error, error, total)
            store(state.errors, at + row, error * factor)
        store(state.batch_loss, 0, total / alike(y, float(size * c)))
        return
    count = size * c if kind == BCE else size
    for lane in range(y.shape[1]):
        mean = 0.0
        for b in range(size):
            if kind == BCE:
                mean += logistic(state.errors, z, at + b, y, b, lane, size, c) / count
            else:
                mean += softmax(state.errors, z, at + b, y, b, lane, size, c) / count
        state.batch_loss[0, lane] = mean
        for row in range(at, at + size * c):
            state.errors[row, lane] /= count


@part
def logistic(
    errors: Array, z: Array, at: int, y: Array, row: int, lane: int, size: int, c: int
) -> float:
    """Return the binary cross-entropy of one point, summed over outputs."""
    total = 0.0
    for k in range(0, c * size, size):
        value, target = z[at + k, lane], y[row + k, lane]
        small = math.exp(-abs(value))
        total += max(value, 0.0) - value * target + math.log1p(small)
        probability = 1.0 / (1.0 + small) if value >= 0 else small / (1.0 + small)
        errors[at + k, lane] = probability - target
    return total


@part
def softmax(
    errors: Array, z: Array, at: int, y: Array, row: int, lane: int, size: int, c: int
) -> float:
    """Return the cross-entropy of one point against its target distribution."""
    top = z[at, lane]
    for k in range(0, c * size, size):
        top = max(top, z[at + k, lane])
    total = mass = linear = 0.0
    for k in range(0, c * size, size):
        total += math.exp(z[at + k, lane] - top)
        mass += y[row + k, lane]
        linear += y[row + k, lane] * (z[at + k, lane] - top)
    for k in range(0, c * size, size):
        probability = math.exp(z[at + k, lane] - top) / total
        errors[at + k, lane] = mass * probability - y[row + k, lane]
    return math.log(total) * mass - linear


@part
def note_loss(state: Any, size: int, step: int) -> None:
    """Add the loss of a batch to the sum of the epoch; note the first that is not finite."""
    for lane in range(state.batch_loss.shape[1]):
        loss = state.batch_loss[0, lane]
        state.loss_sum[0, lane] += size * float(loss)
        if not np.isfinite(loss) and state.status[0, lane] == RUNNING:
            state.status[0, lane] = DIVERGED
            state.loss[0, lane] = loss
            state.step[0, lane] = step


@part
def end_epoch(state: Any, points: int, evaluated: bool) -> bool:
    """End an epoch; return whether some network is done."""
    done = False
    for lane in range(state.batch_loss.shape[1]):
        if state.status[0, lane] == RUNNING:
            loss = (
                float(state.batch_loss[0, lane]) if evaluated else state.loss_sum[0, lane] / points
            )
            state.loss[0, lane] = loss
            if loss <= state.stop[0, lane]:
                state.status[0, lane] = REACHED
        done |= state.status[0, lane] != RUNNING
        state.loss_sum[0, lane] = 0.0
    return done
