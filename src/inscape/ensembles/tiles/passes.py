"""Through the networks and back: one tile of points, all lanes."""

from typing import Any

from inscape._core.compiled import part
from inscape.ensembles.lanes.vectors import alike, expm1, load, store
from inscape.ensembles.tiles.options import Array
from inscape.ensembles.tiles.products import give, pass_back, slopes
from inscape.ensembles.tiles.state import TILE


@part
def chunk(data: Any, rows: int, total: int) -> Any:
    """Return the columns of blocks with so many rows."""
    return data.chunks[rows, min(total, 64)]


@part
def forward(work: Any, data: Any, rules: Any, x: Array, start: int, size: int) -> int:
    """Compute what all units give at a tile; return the row where the outputs begin."""
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
                give(work.weights, source, work.hidden, places, sizes, slope)
        if rules.smooth and layer < last:
            bend(work.hidden, target, target + outputs * size)
        source, start = work.hidden, target
    return start


@part
def bend(hidden: Array, begin: int, end: int) -> None:
    """Apply tanh to rows."""
    two = alike(hidden, 2.0)
    for row in range(begin, end):
        z = load(hidden, row)
        e = expm1(z + z)
        store(hidden, row, e / (e + two))


@part
def backward(work: Any, data: Any, rules: Any, x: Array, start: int, size: int, onto: bool) -> None:
    """Compute the derivatives of all weights from the errors of the outputs, or add to them."""
    last = data.layers.shape[0] - 1
    here, there = 0, work.errors.shape[0] // 2
    slope = alike(x, 1.0 if rules.smooth else rules.slope)
    for layer in range(last, -1, -1):
        inputs, outputs, at, bias, units = data.layers[layer]
        source, first = x, start
        if layer > 0:
            source, first = work.hidden, (units - inputs) * TILE
        sum_errors(work, here, bias, outputs, size, onto)
        most = chunk(data, 0, outputs)
        for u in range(0, outputs, most):
            rows = min(most, outputs - u)
            columns = chunk(data, rows, inputs)
            for i in range(0, inputs, columns):
                places = (here + u * size, first + i * size, at + u * inputs + i)
                sizes = (rows, min(columns, inputs - i), size, inputs)
                slopes(work.errors, source, work.slopes, places, sizes, onto)
        if layer > 0:
            most = chunk(data, 0, inputs)
            for i in range(0, inputs, most):
                rows = min(most, inputs - i)
                columns = chunk(data, rows, size)
                for b in range(0, size, columns):
                    sources = (at + i, here + b, first + i * size + b, there + i * size + b)
                    shape = (rows, min(columns, size - b), outputs, inputs, size)
                    pass_back(
                        work.weights, work.errors, work.hidden, work.errors, sources, shape, slope
                    )
            if rules.smooth:
                unbend(work, first, there, inputs * size)
        here, there = there, here


@part
def unbend(work: Any, gave: int, errors: int, count: int) -> None:
    """Multiply errors by the derivative of tanh."""
    one = alike(work.hidden, 1.0)
    for row in range(count):
        value, error = load(work.hidden, gave + row), load(work.errors, errors + row)
        store(work.errors, errors + row, error * (one - value * value))


@part
def sum_errors(work: Any, errors: int, bias: int, units: int, size: int, onto: bool) -> None:
    """Write the derivatives of biases, or add to them."""
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
            total = total + load(work.slopes, bias + unit)
        store(work.slopes, bias + unit, total)
