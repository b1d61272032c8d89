"""Loss and its gradient, number of points right, and steps of the optimizers."""

from typing import Any

from inscape.ensembles.lanes.vectors import alike, fma, load, store
from inscape.ensembles.tiles.functions import decay, larger, quick_root
from inscape.ensembles.tiles.options import ADAM, BCE, Array
from inscape.ensembles.tiles.state import LOSS, PROBE, RATE, RIGHT, ROOT
from inscape.runtime.compilation import part

EPSILON = 1e-8  # of Adam
#: log(1 + e) / e for e from 0 to 1, to 1e-5: it decides when to compute the exact loss.
LOG = (0.999999, -0.499871, 0.331115, -0.235127, 0.149395, -0.066554, 0.014192)


@part
def output_gradient(
    work: Any, rules: Any, at: int, y: Array, first: int, size: int, count: int
) -> None:
    """Write the gradient of the loss in the outputs of a tile; a step averages ``count`` points."""
    unity, zero = alike(y, 1.0), alike(y, 0.0)
    probe = load(work.facts, PROBE)
    if rules.loss == BCE:
        scale = alike(y, 1.0 / count)
        for b in range(size):
            z, target = load(work.hidden, at + b), load(y, first + b)
            e = decay(z)
            probability = larger(zero, z, e, unity) / (unity + e)
            store(work.errors, b, (probability - target) * scale)
            probe = probe + z
    else:
        scale = alike(y, 2.0 / count)
        for b in range(size):
            error = load(work.hidden, at + b) - load(y, first + b)
            store(work.errors, b, error * scale)
            probe = fma(error, error, probe)
    store(work.facts, PROBE, probe)


@part
def count_right(work: Any, rules: Any, at: int, first: int, size: int) -> None:
    """Count the points of a tile that are right, and store the outputs."""
    unity, zero = alike(work.y, 1.0), alike(work.y, 0.0)
    edge = alike(work.y, rules.threshold)
    right = load(work.facts, RIGHT)
    for b in range(size):
        z = load(work.hidden, at + b)
        store(work.outputs, first + b, z)
        right = larger((z - edge) * load(work.side, first + b), zero, right + unity, right)
    store(work.facts, RIGHT, right)
    if rules.stops_on_loss:
        sum_losses(work, rules, first, size)


@part
def sum_losses(work: Any, rules: Any, first: int, size: int) -> None:
    """Add up the loss of a tile approximately."""
    zero = alike(work.y, 0.0)
    total = load(work.facts, LOSS)
    for b in range(size):
        z, target = load(work.outputs, first + b), load(work.y, first + b)
        if rules.loss == BCE:
            e = decay(z)
            total = total + (larger(z, zero, z, zero) - z * target)
            series = alike(z, LOG[6])
            series = fma(series, e, alike(z, LOG[5]))
            series = fma(series, e, alike(z, LOG[4]))
            series = fma(series, e, alike(z, LOG[3]))
            series = fma(series, e, alike(z, LOG[2]))
            series = fma(series, e, alike(z, LOG[1]))
            series = fma(series, e, alike(z, LOG[0]))
            total = fma(series, e, total)
        else:
            total = fma(z - target, z - target, total)
    store(work.facts, LOSS, total)


@part
def update(work: Any, data: Any, rules: Any) -> None:
    """Update all weights as torch.optim does."""
    latest = data.rates.shape[1] - 1
    for lane in range(len(work.age)):
        age = min(work.age[lane], latest)
        work.facts[RATE, lane] = -data.rates[0, age]
        work.facts[ROOT, lane] = data.rates[1, age]
        work.age[lane] += 1
    rate = load(work.facts, RATE)
    if rules.optimizer == ADAM:
        adam(work, rules, rate, load(work.facts, ROOT))
        return
    momentum = alike(work.weights, rules.momentum)
    for row in range(work.weights.shape[0]):
        g = load(work.gradients, row)
        if rules.momentum != 0.0:
            g = fma(momentum, load(work.velocity, row), g)
            store(work.velocity, row, g)
        store(work.weights, row, fma(rate, g, load(work.weights, row)))


@part
def adam(work: Any, rules: Any, rate: Any, correction: Any) -> None:
    """Make a step of Adam, two weights at a time: both share a division, which is slow."""
    new1 = alike(work.weights, 1.0 - rules.beta1)
    old2, new2 = alike(work.weights, rules.beta2), alike(work.weights, 1.0 - rules.beta2)
    small = alike(work.weights, EPSILON)
    for row in range(0, work.weights.shape[0], 2):
        g, velocity = load(work.gradients, row), load(work.velocity, row)
        h, speed = load(work.gradients, row + 1), load(work.velocity, row + 1)
        velocity, speed = fma(new1, g - velocity, velocity), fma(new1, h - speed, speed)
        store(work.velocity, row, velocity)
        store(work.velocity, row + 1, speed)
        squares = fma(new2 * g, g, old2 * load(work.squares, row))
        others = fma(new2 * h, h, old2 * load(work.squares, row + 1))
        store(work.squares, row, squares)
        store(work.squares, row + 1, others)
        scale = fma(quick_root(squares), correction, small)
        size = fma(quick_root(others), correction, small)
        both = rate / (scale * size)
        store(work.weights, row, fma(velocity * size, both, load(work.weights, row)))
        store(work.weights, row + 1, fma(speed * scale, both, load(work.weights, row + 1)))
