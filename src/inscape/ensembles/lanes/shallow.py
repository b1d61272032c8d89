"""The kernel for one input, one layer of ReLUs, one output: the networks of many papers.

``load(array, row)`` is one number per network, a lane each; with that, the formulas read as those
of one network.
"""

from typing import Any

from inscape.ensembles.lanes.activations import criterion, end_epoch, note_loss
from inscape.ensembles.lanes.state import LaneRules, Shape, State
from inscape.ensembles.lanes.vectors import alike, fma, load, store, where_positive
from inscape.runtime.compilation import compiled, part


@part
def begin(group: Any, h: int, n: int) -> None:
    """Compute the outputs of the networks that have just entered."""
    if not group.fresh.any():
        return
    for i in range(n):
        output = load(group.weights, 3 * h)
        for j in range(h):
            w, b = load(group.weights, j), load(group.weights, h + j)
            z = fma(w, load(group.x, i), b)
            output = where_positive(z, fma(load(group.weights, 2 * h + j), z, output), output)
        store(group.batch_loss, 0, output)
        for lane in range(group.fresh.shape[1]):
            if group.fresh[0, lane]:
                group.outputs[i, lane] = group.batch_loss[0, lane]
    group.fresh[:] = False


@part
def two_units(group: Any, h: int, n: int, j: int, k: int, rate: Any) -> None:
    """Update units ``j`` and ``k``, and add their new activations to the outputs."""
    wj, bj = load(group.weights, j), load(group.weights, h + j)
    wk, bk = load(group.weights, k), load(group.weights, h + k)
    gbj = gwj = gbk = gwk = alike(group.weights, 0.0)
    for i in range(n):
        x, error, error_x = load(group.x, i), load(group.errors, i), load(group.hidden, i)
        zj, zk = fma(wj, x, bj), fma(wk, x, bk)
        gbj = where_positive(zj, gbj + error, gbj)
        gwj = where_positive(zj, gwj + error_x, gwj)
        gbk = where_positive(zk, gbk + error, gbk)
        gwk = where_positive(zk, gwk + error_x, gwk)
    wj, bj, aj = moved_unit(group, h, j, rate, wj, bj, gwj, gbj)
    wk, bk, ak = moved_unit(group, h, k, rate, wk, bk, gwk, gbk)
    for i in range(n):
        x, output = load(group.x, i), load(group.outputs, i)
        zj, zk = fma(wj, x, bj), fma(wk, x, bk)
        output = where_positive(zj, fma(aj, zj, output), output)
        output = where_positive(zk, fma(ak, zk, output), output)
        store(group.outputs, i, output)


@part
def one_unit(group: Any, h: int, n: int, j: int, rate: Any) -> None:
    """Update unit ``j``, and add its new activations to the outputs."""
    w, b = load(group.weights, j), load(group.weights, h + j)
    gb = gw = alike(group.weights, 0.0)
    for i in range(n):
        z = fma(w, load(group.x, i), b)
        gb = where_positive(z, gb + load(group.errors, i), gb)
        gw = where_positive(z, gw + load(group.hidden, i), gw)
    w, b, a = moved_unit(group, h, j, rate, w, b, gw, gb)
    for i in range(n):
        z, output = fma(w, load(group.x, i), b), load(group.outputs, i)
        store(group.outputs, i, where_positive(z, fma(a, z, output), output))


@part
def moved_unit(
    group: Any, h: int, j: int, rate: Any, w: Any, b: Any, gw: Any, gb: Any
) -> tuple[Any, Any, Any]:
    """Make a gradient step of a unit and return its weights.

    ``gw`` and ``gb`` still lack the factor a. The derivative in a is the sum of errors times
    relu(w x + b); where that is not zero it is w x + b, so it is w gw + b gb.
    """
    a = load(group.weights, 2 * h + j)
    ga = fma(w, gw, b * gb)
    w, b = fma(rate, a * gw, w), fma(rate, a * gb, b)
    a = fma(rate, ga, a)
    store(group.weights, j, w)
    store(group.weights, h + j, b)
    store(group.weights, 2 * h + j, a)
    return w, b, a


@compiled(reorder=False)
def shallow(group: State, shape: Shape, rules: LaneRules, epochs: int) -> int:
    """Train networks x -> a . relu(w x + b) + a_0 on all data by plain gradient descent.

    A unit is updated and at once adds to the outputs of the next step, so that weights are read
    once per step. Units are processed in pairs, which halves the memory traffic of the outputs.
    """
    h, n = shape.layers[0, 1], rules.points
    begin(group, h, n)
    for epoch in range(epochs):
        criterion(group, rules.loss, group.outputs, 0, group.y, n, 1)
        note_loss(group, n, epoch)
        g = alike(group.weights, 0.0)
        for i in range(n):
            error = load(group.errors, i)
            g = g + error
            store(group.hidden, i, error * load(group.x, i))
        rate = alike(group.weights, -rules.lr)
        offset = fma(rate, g, load(group.weights, 3 * h))
        store(group.weights, 3 * h, offset)
        for i in range(n):
            store(group.outputs, i, offset)
        for j in range(0, h - 1, 2):
            two_units(group, h, n, j, j + 1, rate)
        if h % 2:
            one_unit(group, h, n, h - 1, rate)
        if rules.evaluated:
            criterion(group, rules.loss, group.outputs, 0, group.y, n, 1)
        if end_epoch(group, n, rules.evaluated):
            return epoch + 1
    return epochs
