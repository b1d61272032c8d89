"""The kernel for networks of any depth, optimizer, loss and batch.

``load(array, row)`` is one number per network, a lane each; with that, the formulas read as those
of one network.
"""

import math
from typing import Any

from inscape.ensembles.lanes.activations import (
    activated,
    criterion,
    end_epoch,
    note_loss,
    preactivation_gradient,
)
from inscape.ensembles.lanes.state import ADAMW, SGD, Array, LaneRules, Shape, State
from inscape.ensembles.lanes.vectors import alike, fma, load, root, store
from inscape.runtime.compilation import compiled, part

EPSILON = 1e-8  # of Adam


@part
def gather(source: Array, target: Array, order: Array, start: int, size: int) -> None:
    """Copy the points of a batch, which differ between lanes."""
    points = order.shape[0]
    for k in range(source.shape[0] // points):
        for b in range(size):
            for lane in range(target.shape[1]):
                row = k * points + order[start + b, lane]
                target[k * size + b, lane] = source[row, lane]


@part
def forward(group: Any, shape: Any, x: Array, size: int) -> int:
    """Compute all activations, layer by layer; return the row where the outputs begin."""
    source, start, target = x, 0, 0
    for layer in range(shape.layers.shape[0]):
        inputs, outputs, at, bias, kind = shape.layers[layer]
        slope = alike(x, shape.slopes[layer])
        for unit in range(outputs):
            row, place = at + unit * inputs, target + unit * size
            first = alike(x, 0.0)
            if bias >= 0:
                first = load(group.weights, bias + unit)
            for b in range(0, size - 3, 4):
                p, q, r, s = four_sums(group.weights, row, inputs, source, start + b, size, first)
                store(group.hidden, place + b, activated(p, kind, slope))
                store(group.hidden, place + b + 1, activated(q, kind, slope))
                store(group.hidden, place + b + 2, activated(r, kind, slope))
                store(group.hidden, place + b + 3, activated(s, kind, slope))
            for b in range(size - size % 4, size):
                total = first
                for i in range(inputs):
                    value = load(source, start + i * size + b)
                    total = fma(load(group.weights, row + i), value, total)
                store(group.hidden, place + b, activated(total, kind, slope))
        source, start = group.hidden, target
        target += size * outputs
    return start


@part
def four_sums(
    weights: Array, row: int, inputs: int, source: Array, at: int, size: int, first: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the pre-activations of a unit at four points; each weight is read once for all."""
    p = q = r = s = first
    for i in range(inputs):
        w, place = load(weights, row + i), at + i * size
        p = fma(w, load(source, place), p)
        q = fma(w, load(source, place + 1), q)
        r = fma(w, load(source, place + 2), r)
        s = fma(w, load(source, place + 3), s)
    return p, q, r, s


@part
def backward(group: Any, shape: Any, rules: Any, x: Array, size: int, last: int) -> None:
    """Make one step of the optimizer, from the last layer to the first."""
    outputs_at = last
    for layer in range(shape.layers.shape[0] - 1, -1, -1):
        inputs, outputs, at, bias, kind = shape.layers[layer]
        slope = alike(x, shape.slopes[layer])
        below = outputs_at - size * inputs
        for unit in range(outputs):
            first = outputs_at + unit * size
            g = alike(x, 0.0)
            for row in range(first, first + size):
                error = preactivation_gradient(
                    load(group.errors, row), load(group.hidden, row), kind, slope
                )
                store(group.errors, row, error)
                g = g + error
            if bias >= 0:
                update_weight(group, rules, bias + unit, load(group.weights, bias + unit), g)
            for i in range(inputs):
                row = at + unit * inputs + i
                w = load(group.weights, row)
                if layer == 0:
                    g = product(group.errors, first, x, i * size, size)
                elif unit == 0:
                    g = product(group.errors, first, group.hidden, below + i * size, size)
                    for b in range(size):
                        store(group.errors, below + i * size + b, w * load(group.errors, first + b))
                else:
                    g = alike(x, 0.0)
                    for b in range(size):
                        error, place = load(group.errors, first + b), below + i * size + b
                        g = fma(error, load(group.hidden, place), g)
                        store(group.errors, place, fma(w, error, load(group.errors, place)))
                update_weight(group, rules, row, w, g)
        outputs_at = below


@part
def product(left: Array, first: int, right: Array, second: int, size: int) -> Any:
    """Return the sum of products of ``size`` rows, which begin at ``first`` and ``second``."""
    total = alike(left, 0.0)
    for b in range(size):
        total = fma(load(left, first + b), load(right, second + b), total)
    return total


@part
def set_rate(group: Any, rules: Any) -> None:
    """Compute the learning rate of each lane; Adam's bias correction depends on its steps."""
    for lane in range(group.rate.shape[1]):
        if rules.optimizer == SGD:
            group.rate[0, lane] = rules.lr
        else:
            group.powers[0, lane] *= rules.beta1
            group.powers[1, lane] *= rules.beta2
            group.rate[0, lane] = rules.lr / (1.0 - group.powers[0, lane])
            group.rate[1, lane] = math.sqrt(1.0 - group.powers[1, lane])


@part
def update_weight(group: Any, rules: Any, row: int, w: Any, g: Any) -> None:
    """Update one weight as torch.optim does."""
    zero = alike(group.weights, 0.0)
    rate = zero - load(group.rate, 0)
    if rules.decay != 0.0 and rules.optimizer != ADAMW:
        g = fma(alike(group.weights, rules.decay), w, g)
    if rules.optimizer == SGD:
        if rules.momentum != 0.0:
            momentum = alike(group.weights, rules.momentum)
            velocity = fma(momentum, load(group.velocity, row), g)
            store(group.velocity, row, velocity)
            g = fma(momentum, velocity, g) if rules.nesterov else velocity
        store(group.weights, row, fma(rate, g, w))
    else:
        if rules.optimizer == ADAMW:
            w = w * alike(group.weights, 1.0 - rules.lr * rules.decay)
        velocity = load(group.velocity, row)
        velocity = fma(alike(group.weights, 1.0 - rules.beta1), g - velocity, velocity)
        store(group.velocity, row, velocity)
        squares = alike(group.weights, rules.beta2) * load(group.squares, row)
        squares = fma(alike(group.weights, 1.0 - rules.beta2) * g, g, squares)
        store(group.squares, row, squares)
        scale = root(squares) / load(group.rate, 1) + alike(group.weights, EPSILON)
        store(group.weights, row, fma(rate, velocity / scale, w))


@compiled(reorder=False)
def deep(group: State, shape: Shape, rules: LaneRules, epochs: int) -> int:
    """Train networks of any depth by any of the optimizers, with or without mini-batches."""
    n, c = rules.points, shape.layers[-1, 1]
    step = 0
    for epoch in range(epochs):
        for start in range(0, n, rules.batch):
            size = min(rules.batch, n - start)
            x, y = group.x, group.y
            if rules.shuffled:
                gather(group.x, group.batch_x, group.order[epoch], start, size)
                gather(group.y, group.batch_y, group.order[epoch], start, size)
                x, y = group.batch_x, group.batch_y
            last = forward(group, shape, x, size)
            criterion(group, rules.loss, group.hidden, last, y, size, c)
            note_loss(group, size, step)
            set_rate(group, rules)
            backward(group, shape, rules, x, size, last)
            step += 1
        if rules.evaluated:
            last = forward(group, shape, group.x, n)
            criterion(group, rules.loss, group.hidden, last, group.y, n, c)
        if end_epoch(group, n, rules.evaluated):
            return epoch + 1
    return epochs
