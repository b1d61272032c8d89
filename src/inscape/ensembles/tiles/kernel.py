"""The kernel: networks enter lanes, make steps, are judged at the end of epochs, and leave."""

import math
from typing import Any

import numpy as np

from inscape._core import denormals
from inscape._core.compiled import compiled, part
from inscape._core.denormals import flush_denormals, restore
from inscape.ensembles.lanes import vectors
from inscape.ensembles.lanes.vectors import alike, load, store
from inscape.ensembles.tiles import functions, passes, products, random_numbers, state, steps
from inscape.ensembles.tiles.functions import (
    larger,
    some_positive,
    some_wild,
    taken,
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
    LIVE,
    LOSS,
    LOW,
    RIGHT,
    TILE,
    WALKED,
    WILD,
    Data,
    Found,
    Rules,
    Work,
)
from inscape.ensembles.tiles.steps import blame, score, update

#: What the quick sum of losses may be off by, so that a closer look is taken.
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
    """Copy points of a batch, which are others in every lane."""
    d = data.x.shape[2]
    for lane in range(len(work.member)):
        member = work.member[lane]
        if member >= 0:
            mine, its = min(member, len(data.x) - 1), min(member, len(data.y) - 1)
            for b in range(size):
                point = work.order[lane, begin + b]
                work.batch_y[b, lane] = data.y[its, point]
                for k in range(d):
                    work.batch_x[k * size + b, lane] = data.x[mine, point, k]


@part
def note_lost(work: Any) -> None:
    """Keep the first update that a loss which is not finite was seen before.

    The network leaves at the end of the epoch. Its count, which is one higher by then, turns
    negative, so that this epoch is neither among those that ended nor its best.
    """
    for lane in range(len(work.member)):
        if not np.isfinite(work.facts[WILD, lane]) and work.lost[lane] < 0:
            work.lost[lane] = work.age[lane]
            work.facts[EPOCH, lane] = -1 - work.facts[EPOCH, lane]
            work.counts[DUE] = 0


@part
def judge(work: Any, rules: Any) -> bool:
    """Keep the best epoch of each network; return whether one of them may be done."""
    epoch = load(work.facts, EPOCH)
    nothing = alike(epoch, -1.0)
    right = larger(epoch, alike(epoch, 0.0), load(work.facts, RIGHT), nothing)
    best = load(work.facts, BEST)
    store(work.facts, BEST_EPOCH, larger(right, best, epoch, load(work.facts, BEST_EPOCH)))
    store(work.facts, BEST, larger(right, best, right, best))
    done = some_positive(right - load(work.facts, ENOUGH)) or some_wild(load(work.facts, WILD))
    if rules.graded:
        done = done or some_positive(load(work.facts, LOW) - load(work.facts, LOSS))
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
def leave(work: Any, data: Any, rules: Any, found: Any) -> None:
    """Write down the networks that are done, and free their lanes."""
    n = data.x.shape[1]
    for lane in range(len(work.member)):
        k = work.member[lane]
        if k < 0:
            continue
        epoch = abs(int(work.facts[EPOCH, lane]))
        if not np.isfinite(work.facts[WILD, lane]) and work.lost[lane] < 0:
            work.lost[lane] = work.age[lane]
        lost = work.lost[lane] >= 0
        right = int(work.facts[RIGHT, lane])
        over = lost or epoch >= data.epochs[k]
        close = rules.graded and work.facts[LOSS, lane] < work.facts[LOW, lane]
        if not (right >= data.enough[k] or close or over):
            continue
        loss = exact_loss(work, rules, lane, n)
        content = right >= data.enough[k] or loss <= data.low[k]
        stopped = content and epoch > 0 and not lost
        if not (stopped or over):
            continue
        for i in range(found.weights.shape[1]):
            found.weights[k, i] = work.weights[i, lane]
        found.right[k] = right
        found.best_right[k] = max(int(work.facts[BEST, lane]), 0)
        found.best_epoch[k] = int(work.facts[BEST_EPOCH, lane])
        found.epochs[k] = epoch
        found.stopped[k] = stopped
        found.loss[k] = math.inf if lost and math.isfinite(loss) else loss
        found.diverged[k] = work.lost[lane]
        work.counts[WALKED] += data.epochs[k] - epoch
        work.member[lane] = -1


@part
def enter(work: Any, data: Any, rules: Any) -> None:
    """Let networks that wait take the lanes that are free."""
    for lane in range(len(work.member)):
        if work.member[lane] < 0:
            k = taken(data.queue)
            clear(work, lane)
            if k < len(data.seeds):
                place(work, data, rules, lane, k)
    work.counts[LIVE], work.counts[DUE] = 0, 2**62
    for lane in range(len(work.member)):
        k = work.member[lane]
        if k >= 0:
            work.counts[LIVE] += 1
            left = data.epochs[k] - int(work.facts[EPOCH, lane])
            work.counts[DUE] = min(work.counts[DUE], left)


@part
def clear(work: Any, lane: int) -> None:
    """Empty a lane: zeros cost no time, where numbers that run wild might."""
    work.member[lane] = -1
    work.age[lane] = 0
    work.lost[lane] = -1
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
        draw_weights(data.seeds[k], data.sizes, rules.law, work.row)
    for i in range(len(work.row)):
        work.weights[i, lane] = data.start[k, i] if len(data.start) else work.row[i]
    mine, its = min(k, len(data.x) - 1), min(k, len(data.y) - 1)
    middle = 0.5 if rules.loss == BCE else rules.threshold
    for first in range(0, n, TILE):
        size = min(TILE, n - first)
        for b in range(size):
            for i in range(d):
                work.x[first * d + i * size + b, lane] = data.x[mine, first + b, i]
    for i in range(n):
        work.y[i, lane] = data.y[its, i]
        work.side[i, lane] = 1.0 if data.y[its, i] > middle else -1.0
    work.member[lane] = k
    work.facts[ENOUGH, lane] = data.enough[k] - 0.5
    work.facts[LOW, lane] = data.low[k] * n * SLACK + LEAST


@part
def learn(work: Any, data: Any, rules: Any, stage: int, whole: bool, learns: bool) -> None:
    """Go through a batch, or all points, tile by tile."""
    n, d = data.x.shape[1], data.x.shape[2]
    begin = 0 if whole else stage * rules.batch
    count = n if whole else min(rules.batch, n - begin)
    zero = alike(work.facts, 0.0)
    store(work.facts, RIGHT, zero)
    store(work.facts, WILD, zero)
    store(work.facts, LOSS, zero)
    for first in range(0, count, TILE):
        size = min(TILE, count - first)
        x, y, place, label = work.x, work.y, first * d, first
        if not whole:
            gather(work, data, begin + first, size)
            x, y, place, label = work.batch_x, work.batch_y, 0, 0
        at = forward(work, data, rules, x, place, size)
        blame(work, rules, at, y, label, size, count)
        if whole:
            score(work, rules, at, first, size)
        if learns:
            backward(work, data, rules, x, place, size, first > 0)


@part
def train(work: Any, data: Any, rules: Any, found: Any, epochs: int) -> None:
    """Train for so many epochs, or until nobody is left.

    With mini-batches an epoch has a stage for each of them, and one that looks at all points. If
    all points are one batch, the first half of a step is at the same time the look at the weights
    that the epoch before ended with.
    """
    full = rules.batch == 0
    stages = 1 if full else 1 + (data.x.shape[1] + rules.batch - 1) // rules.batch
    done = True  # perhaps: who finds no free lane does not enter
    for _ in range(epochs):
        if done:
            enter(work, data, rules)
        done = False
        if work.counts[LIVE] == 0:
            break
        work.counts[WALKED] += work.counts[LIVE]
        if not full:
            shuffle(work, data)
        for stage in range(stages):
            whole = stage == stages - 1
            if whole and not full:
                end_epoch(work)
            learn(work, data, rules, stage, whole, full or not whole)
            if whole:
                done = judge(work, rules)
                if done:
                    leave(work, data, rules, found)
            elif some_wild(load(work.facts, WILD)):
                note_lost(work)
            if full or not whole:
                update(work, data, rules)
        if full:
            end_epoch(work)


@compiled(
    reorder=False,
    uses=(vectors, random_numbers, denormals, functions, passes, products, state, steps),
)
def run(work: Work, data: Data, rules: Rules, found: Found, epochs: int) -> int:
    """Train for so many epochs, or until nobody is left; return how many networks are at work."""
    before = flush_denormals()
    train(work, data, rules, found, epochs)
    restore(before)
    return int(work.counts[LIVE])
