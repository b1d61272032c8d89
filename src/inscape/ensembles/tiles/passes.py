"""Forward and backward pass of one tile of points in all lanes."""

from typing import Any

from inscape.ensembles.lanes.vectors import alike, expm1, load, store
from inscape.ensembles.tiles.options import Array
from inscape.ensembles.tiles.products import layer_backward, layer_forward, weight_gradients
from inscape.ensembles.tiles.state import TILE
from inscape.runtime.compilation import part


@part
def chunk(data: Any, rows: int, total: int) -> Any:
    """Return the columns of blocks with so many rows."""
    return data.chunks[rows, min(total, 64)]


@part
def forward(work: Any, data: Any, rules: Any, x: Array, start: int, size: int) -> int:
    """Compute the activations at a tile; return the row where the outputs begin."""
    last = data.layers.shape[0] - 1
    source = x
    for layer in range(last + 1):
        inputs, outputs, at, bias, units = data.layers[layer]
        target = units * TILE
        linear = layer == last or rules.smooth
        slope = alike(x, 1.0 if linear else rules.slope)
        most = chunk(data, 0, outputs)
        for u in range(0, outputs, most):
            rows = min(most, outputs - u)
            columns = chunk(data, rows, size)
            for b in range(0, size, columns):
                places = (at + u * inputs, bias + u, start + b, target + u * size + b)
                sizes = (rows, min(columns, size - b), inputs, size)
                layer_forward(work.weights, source, work.hidden, places, sizes, slope)
        if rules.smooth and layer < last:
            apply_tanh(work.hidden, target, target + outputs * size)
        source, start = work.hidden, target
    return start


@part
def apply_tanh(hidden: Array, begin: int, end: int) -> None:
    """Apply tanh to rows."""
    two = alike(hidden, 2.0)
    for row in range(begin, end):
        z = load(hidden, row)
        e = expm1(z + z)
        store(hidden, row, e / (e + two))


@part
def backward(work: Any, data: Any, rules: Any, x: Array, start: int, size: int, onto: bool) -> None:
    """Write, or with ``onto`` add, the gradient of all weights from that of the outputs."""
    last = data.layers.shape[0] - 1
    current, below = 0, work.errors.shape[0] // 2
    slope = alike(x, 1.0 if rules.smooth else rules.slope)
    for layer in range(last, -1, -1):
        inputs, outputs, at, bias, units = data.layers[layer]
        source, first = x, start
        if layer > 0:
            source, first = work.hidden, (units - inputs) * TILE
        sum_errors(work, current, bias, outputs, size, onto)
        most = chunk(data, 0, outputs)
        for u in range(0, outputs, most):
            rows = min(most, outputs - u)
            columns = chunk(data, rows, inputs)
            for i in range(0, inputs, columns):
                places = (current + u * size, first + i * size, at + u * inputs + i)
                sizes = (rows, min(columns, inputs - i), size, inputs)
                weight_gradients(work.errors, source, work.gradients, places, sizes, onto)
        if layer > 0:
            most = chunk(data, 0, inputs)
            for i in range(0, inputs, most):
                rows = min(most, inputs - i)
                columns = chunk(data, rows, size)
                for b in range(0, size, columns):
                    sources = (at + i, current + b, first + i * size + b, below + i * size + b)
                    shape = (rows, min(columns, size - b), outputs, inputs, size)
                    layer_backward(
                        work.weights, work.errors, work.hidden, work.errors, sources, shape, slope
                    )
            if rules.smooth:
                apply_tanh_derivative(work, first, below, inputs * size)
        current, below = below, current


@part
def apply_tanh_derivative(work: Any, values: int, errors: int, count: int) -> None:
    """Multiply errors by the derivative of tanh."""
    unity = alike(work.hidden, 1.0)
    for row in range(count):
        value, error = load(work.hidden, values + row), load(work.errors, errors + row)
        store(work.errors, errors + row, error * (unity - value * value))


@part
def sum_errors(work: Any, errors: int, bias: int, units: int, size: int, onto: bool) -> None:
    """Write, or with ``onto`` add, the gradient of the biases."""
    for unit in range(units):
        first = errors + unit * size
        total = other = alike(work.errors, 0.0)
        for b in range(0, size - 1, 2):
            total = total + load(work.errors, first + b)
            other = other + load(work.errors, first + b + 1)
        if size % 2:
            total = total + load(work.errors, first + size - 1)
        total = total + other
        if onto:
            total = total + load(work.gradients, bias + unit)
        store(work.gradients, bias + unit, total)
