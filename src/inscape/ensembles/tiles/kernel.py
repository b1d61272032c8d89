"""The kernel: networks enter lanes, are trained, are tested after each epoch, and leave."""

import math
from typing import Any

import numpy as np

from inscape.ensembles.lanes.vectors import alike, load, store
from inscape.ensembles.tiles.functions import (
    any_not_finite,
    any_positive,
    larger,
    next_in_queue,
)
from inscape.ensembles.tiles.options import BCE
from inscape.ensembles.tiles.passes import backward, forward
from inscape.ensembles.tiles.random_numbers import draw_order, draw_weights
from inscape.ensembles.tiles.state import (
    BEST,
    BEST_EPOCH,
    DUE,
    ENOUGH,
    EPOCH,
    EPOCHS_DONE,
    LIVE,
    LOSS,
    LOW,
    PROBE,
    RIGHT,
    TILE,
    Data,
    Outcome,
    TileRules,
    Work,
)
from inscape.ensembles.tiles.steps import count_right, output_gradient, update
from inscape.runtime.compilation import compiled, part
from inscape.runtime.denormals import flush_denormals, restore

#: Relative and absolute error of the fast sum of losses, within which the exact one is computed.
SLACK, LEAST = 1.001, 1e-30


@part
def shuffle(work: Any, data: Any) -> None:
    """Draw the order of the coming epoch for each network."""
    for lane in range(len(work.member)):
        member = work.member[lane]
        if member >= 0:
            draw_order(data.seeds[member], int(work.facts[EPOCH, lane]), work.order[lane])


@part
def end_epoch(work: Any) -> None:
    """Count an epoch."""
    store(work.facts, EPOCH, load(work.facts, EPOCH) + alike(work.facts, 1.0))
    work.counts[DUE] -= 1


@part
def gather(work: Any, data: Any, begin: int, size: int) -> None:
    """Copy the points of a batch, which differ between lanes."""
    d = data.x.shape[2]
    for lane in range(len(work.member)):
        member = work.member[lane]
        if member >= 0:
            own_x, own_y = min(member, len(data.x) - 1), min(member, len(data.y) - 1)
            for b in range(size):
                point = work.order[lane, begin + b]
                work.batch_y[b, lane] = data.y[own_y, point]
                for k in range(d):
                    work.batch_x[k * size + b, lane] = data.x[own_x, point, k]


@part
def note_divergence(work: Any) -> None:
    """Note the update before which a loss was not finite for the first time.

    The network leaves at the end of the epoch. Its number of epochs turns negative, so that this
    epoch counts neither as completed nor as the best.
    """
    for lane in range(len(work.member)):
        if not np.isfinite(work.facts[PROBE, lane]) and work.diverged[lane] < 0:
            work.diverged[lane] = work.age[lane]
            work.facts[EPOCH, lane] = -1 - work.facts[EPOCH, lane]
            work.counts[DUE] = 0


@part
def note_best(work: Any, rules: Any) -> bool:
    """Note the best epoch of each network; return whether one of them may be done."""
    epoch = load(work.facts, EPOCH)
    nothing = alike(epoch, -1.0)
    right = larger(epoch, alike(epoch, 0.0), load(work.facts, RIGHT), nothing)
    best = load(work.facts, BEST)
    store(work.facts, BEST_EPOCH, larger(right, best, epoch, load(work.facts, BEST_EPOCH)))
    store(work.facts, BEST, larger(right, best, right, best))
    done = any_positive(right - load(work.facts, ENOUGH)) or any_not_finite(load(work.facts, PROBE))
    if rules.stops_on_loss:
        done = done or any_positive(load(work.facts, LOW) - load(work.facts, LOSS))
    return bool(done or work.counts[DUE] <= 0)


@part
def exact_loss(work: Any, rules: Any, lane: int, n: int) -> float:
    """Return the mean loss of one network, in double precision from its outputs."""
    total = 0.0
    for i in range(n):
        z, y = float(work.outputs[i, lane]), float(work.y[i, lane])
        if rules.loss == BCE:
            total += max(z, 0.0) - z * y + math.log1p(math.exp(-abs(z)))
        else:
            total += (z - y) * (z - y)
    return total / n


@part
def leave(work: Any, data: Any, rules: Any, outcome: Any) -> None:
    """Write the networks that are done to the outcome, and free their lanes."""
    n = data.x.shape[1]
    for lane in range(len(work.member)):
        k = work.member[lane]
        if k < 0:
            continue
        epoch = abs(int(work.facts[EPOCH, lane]))
        if not np.isfinite(work.facts[PROBE, lane]) and work.diverged[lane] < 0:
            work.diverged[lane] = work.age[lane]
        diverged = work.diverged[lane] >= 0
        right = int(work.facts[RIGHT, lane])
        over = diverged or epoch >= data.epochs[k]
        close = rules.stops_on_loss and work.facts[LOSS, lane] < work.facts[LOW, lane]
        if not (right >= data.enough[k] or close or over):
            continue
        loss = exact_loss(work, rules, lane, n)
        reached = right >= data.enough[k] or loss <= data.low[k]
        stopped = reached and epoch > 0 and not diverged
        if not (stopped or over):
            continue
        for i in range(outcome.weights.shape[1]):
            outcome.weights[k, i] = work.weights[i, lane]
        outcome.right[k] = right
        outcome.best_right[k] = max(int(work.facts[BEST, lane]), 0)
        outcome.best_epoch[k] = int(work.facts[BEST_EPOCH, lane])
        outcome.epochs[k] = epoch
        outcome.stopped[k] = stopped
        outcome.loss[k] = math.inf if diverged and math.isfinite(loss) else loss
        outcome.diverged[k] = work.diverged[lane]
        work.counts[EPOCHS_DONE] += data.epochs[k] - epoch
        work.member[lane] = -1


@part
def enter(work: Any, data: Any, rules: Any) -> None:
    """Put networks from the queue into the free lanes."""
    for lane in range(len(work.member)):
        if work.member[lane] < 0:
            k = next_in_queue(data.queue)
            clear(work, lane)
            if k < len(data.seeds):
                place(work, data, rules, lane, k)
    work.counts[LIVE], work.counts[DUE] = 0, 2**62
    for lane in range(len(work.member)):
        k = work.member[lane]
        if k >= 0:
            work.counts[LIVE] += 1
            remaining = data.epochs[k] - int(work.facts[EPOCH, lane])
            work.counts[DUE] = min(work.counts[DUE], remaining)


@part
def clear(work: Any, lane: int) -> None:
    """Empty a lane: zeros cost no time, where NaN or denormals might."""
    work.member[lane] = -1
    work.age[lane] = 0
    work.diverged[lane] = -1
    for array in (work.weights, work.velocity, work.squares, work.facts):
        for row in range(array.shape[0]):
            array[row, lane] = 0.0
    work.facts[BEST, lane] = -1
    work.facts[ENOUGH, lane] = np.inf
    work.facts[LOW, lane] = -np.inf


@part
def place(work: Any, data: Any, rules: Any, lane: int, k: int) -> None:
    """Put member ``k`` into a lane."""
    n, d = data.x.shape[1], data.x.shape[2]
    if len(data.start) == 0:
        draw_weights(data.seeds[k], data.sizes, rules.distribution, work.row)
    for i in range(len(work.row)):
        work.weights[i, lane] = data.start[k, i] if len(data.start) else work.row[i]
    own_x, own_y = min(k, len(data.x) - 1), min(k, len(data.y) - 1)
    middle = 0.5 if rules.loss == BCE else rules.threshold
    for first in range(0, n, TILE):
        size = min(TILE, n - first)
        for b in range(size):
            for i in range(d):
                work.x[first * d + i * size + b, lane] = data.x[own_x, first + b, i]
    for i in range(n):
        work.y[i, lane] = data.y[own_y, i]
        work.side[i, lane] = 1.0 if data.y[own_y, i] > middle else -1.0
    work.member[lane] = k
    work.facts[ENOUGH, lane] = data.enough[k] - 0.5
    work.facts[LOW, lane] = data.low[k] * n * SLACK + LEAST


@part
def evaluate(
    work: Any, data: Any, rules: Any, stage: int, all_points: bool, with_gradients: bool
) -> None:
    """Evaluate a batch, or all points, tile by tile, with gradients if asked."""
    n, d = data.x.shape[1], data.x.shape[2]
    begin = 0 if all_points else stage * rules.batch
    count = n if all_points else min(rules.batch, n - begin)
    zero = alike(work.facts, 0.0)
    store(work.facts, RIGHT, zero)
    store(work.facts, PROBE, zero)
    store(work.facts, LOSS, zero)
    for first in range(0, count, TILE):
        size = min(TILE, count - first)
        x, y, place, label = work.x, work.y, first * d, first
        if not all_points:
            gather(work, data, begin + first, size)
            x, y, place, label = work.batch_x, work.batch_y, 0, 0
        at = forward(work, data, rules, x, place, size)
        output_gradient(work, rules, at, y, label, size, count)
        if all_points:
            count_right(work, rules, at, first, size)
        if with_gradients:
            backward(work, data, rules, x, place, size, first > 0)


@part
def train(work: Any, data: Any, rules: Any, outcome: Any, epochs: int) -> None:
    """Train for so many epochs, or until no network is left.

    With mini-batches an epoch has a stage for each of them, and one that evaluates all points. If
    all points are one batch, the forward pass of a step also evaluates the weights at the end of
    the epoch before.
    """
    full = rules.batch == 0
    stages = 1 if full else 1 + (data.x.shape[1] + rules.batch - 1) // rules.batch
    done = True  # so that networks enter
    for _ in range(epochs):
        if done:
            enter(work, data, rules)
        done = False
        if work.counts[LIVE] == 0:
            break
        work.counts[EPOCHS_DONE] += work.counts[LIVE]
        if not full:
            shuffle(work, data)
        for stage in range(stages):
            all_points = stage == stages - 1
            if all_points and not full:
                end_epoch(work)
            evaluate(work, data, rules, stage, all_points, full or not all_points)
            if all_points:
                done = note_best(work, rules)
                if done:
                    leave(work, data, rules, outcome)
            elif any_not_finite(load(work.facts, PROBE)):
                note_divergence(work)
            if full or not all_points:
                update(work, data, rules)
        if full:
            end_epoch(work)


@compiled(reorder=False)
def run(work: Work, data: Data, rules: TileRules, outcome: Outcome, epochs: int) -> int:
    """Train for so many epochs, or until no network is left; return how many are in training."""
    before = flush_denormals()
    train(work, data, rules, outcome, epochs)
    restore(before)
    return int(work.counts[LIVE])
