"""The kernel for one input, one layer of ReLUs, one output: the networks of many papers.

Read ``load(array, row)`` as *the number in this row, of every network*: but for that, these are the
formulas of one network.
"""

from typing import Any

from inscape._core.compiled import compiled, part
from inscape.ensembles.lanes import activations, state, vectors
from inscape.ensembles.lanes.activations import close, criterion, note
from inscape.ensembles.lanes.state import Rules, Shape, State
from inscape.ensembles.lanes.vectors import alike, fma, load, store, where_positive


@part
def begin(group: Any, h: int, n: int) -> None:
    """Compute the outputs of networks that are new here."""
    if not group.fresh.any():
        return
    for i in range(n):
        output = load(group.weights, 3 * h)
        for j in range(h):
            w, b = load(group.weights, j), load(group.weights, h + j)
            z = fma(w, load(group.x, i), b)
            output = where_positive(z, fma(load(group.weights, 2 * h + j), z, output), output)
        store(group.now, 0, output)
        for lane in range(group.fresh.shape[1]):
            if group.fresh[0, lane]:
                group.outputs[i, lane] = group.now[0, lane]
    group.fresh[:] = False


@part
def two_units(group: Any, h: int, n: int, j: int, k: int, rate: Any) -> None:
    """Move units ``j`` and ``k``, and add to the outputs what they then give."""
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
    """Move unit ``j``, and add to the outputs what it then gives."""
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
    """Move a unit down its gradient and return it.

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


@compiled(reorder=False, uses=(vectors, activations, state))
def shallow(group: State, shape: Shape, rules: Rules, epochs: int) -> int:
    """Train networks x -> a . relu(w x + b) + a_0 on all data by plain gradient descent.

    While a unit is at hand, it is moved and at once adds to the outputs that the next step starts
    from, so the weights are read once per step. Units are taken in pairs, which halves the traffic
    on the outputs.
    """
    h, n = shape.layers[0, 1], rules.points
    begin(group, h, n)
    for epoch in range(epochs):
        criterion(group, rules.loss, group.outputs, 0, group.y, n, 1)
        note(group, n, epoch)
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
        if close(group, n, rules.evaluated):
            return epoch + 1
    return epochs
