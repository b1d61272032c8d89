"""What the kernel of the tiles works on: plain arrays, in the work of a thread one lane last."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from inscape.ensembles.lanes.state import LANES
from inscape.ensembles.tiles.options import ADAM, LAWS, TANH, Array, Task, parameters

#: Points that go through the networks together, at most.
TILE = 16
#: Rows and columns of the blocks that products are taken in: most columns, by rows.
COLUMNS = {1: 8, 2: 8, 3: 8, 4: 5, 5: 5}
#: Rows of ``facts``.
RIGHT, WILD, LOSS, BEST, BEST_EPOCH, EPOCH, ENOUGH, LOW, PACE, ROOT = range(10)
#: Entries of ``counts``: networks at work, epochs until one of them is at its limit, epochs walked.
LIVE, DUE, WALKED = range(3)
#: Adam's corrections differ from 1 by less than rounding after so many steps, over 1 - beta.
FADED = 40.0


class Work(NamedTuple):
    """A group of networks, one per lane, and the room that one thread needs to train them."""

    weights: Array  # p
    velocity: Array  # p, where there is momentum or Adam
    squares: Array  # p, where there is Adam
    slopes: Array  # p: derivatives of the loss
    x: Array  # tile after tile: first coordinates of its points, then second, ...
    y: Array  # n
    side: Array  # n: 1 where the label is above, -1 where it is below
    outputs: Array  # n
    hidden: Array  # what every unit gives at every point of the tile, layer after layer
    errors: Array  # derivative of the loss in what it takes, of two layers in turn
    batch_x: Array  # a tile of a mini-batch
    batch_y: Array
    facts: Array  # what is known of each network, by the names above
    row: Array  # p: weights on their way into a lane
    order: Array  # lanes, n: where there are mini-batches
    member: Array  # lanes: whose lane it is, -1 if nobody's
    age: Array  # lanes: updates made
    lost: Array  # lanes: updates before the first loss that was not finite, or -1
    counts: Array


class Data(NamedTuple):
    """What belongs to the members; all threads read it, and share the queue."""

    x: Array
    y: Array
    seeds: Array
    start: Array
    epochs: Array
    enough: Array
    low: Array
    queue: Array
    sizes: Array
    layers: Array  # inputs, outputs, first row of weights, of biases, units before; one per layer
    chunks: Array  # by rows of a block and numbers to be divided: columns of a block
    paces: Array  # step size, and inverse of Adam's second correction, by updates made


class Rules(NamedTuple):
    """How to train, in numbers."""

    law: int
    smooth: bool
    slope: float
    loss: int
    optimizer: int
    beta1: float
    beta2: float
    momentum: float
    batch: int
    graded: bool
    threshold: float


class Found(NamedTuple):
    """What became of the members."""

    weights: Array
    right: Array
    best_right: Array
    best_epoch: Array
    epochs: Array
    stopped: Array
    loss: Array
    diverged: Array


def data_of(task: Task) -> Data:
    """Return what belongs to the members of a task."""
    return Data(
        x=task.x,
        y=task.y,
        seeds=task.seeds,
        start=task.start,
        epochs=task.epochs,
        enough=task.enough,
        low=task.low,
        queue=np.zeros(1, np.int64),
        sizes=np.array(task.sizes, np.int64),
        layers=_layers(task.sizes),
        chunks=_chunks(),
        paces=_paces(task),
    )


def rules_of(task: Task) -> Rules:
    """Return how to train, in numbers."""
    return Rules(
        law=LAWS.index(task.law),
        smooth=task.activation == TANH,
        slope=task.slope,
        loss=task.loss,
        optimizer=task.optimizer,
        beta1=task.betas[0],
        beta2=task.betas[1],
        momentum=task.momentum,
        batch=task.batch,
        graded=bool(np.isfinite(task.low).any()),
        threshold=task.threshold,
    )


def blank_found(task: Task) -> Found:
    """Return room for what becomes of the members."""
    members = len(task.seeds)
    whole = [np.zeros(members, np.int64) for _ in range(5)]
    return Found(
        weights=np.empty((members, task.parameters), task.x.dtype),
        right=whole[0],
        best_right=whole[1],
        best_epoch=whole[2],
        epochs=whole[3],
        stopped=np.zeros(members, np.bool_),
        loss=np.empty(members),
        diverged=whole[4],
    )


def blank_work(task: Task) -> Work:
    """Return a group without networks: zeros, which stay zeros."""
    n, d = task.x.shape[1:]
    dtype = torch.float32 if task.x.dtype == np.float32 else torch.float64
    p, lanes, adam = task.parameters, LANES[dtype], task.optimizer == ADAM

    def rows(count: int) -> Array:
        # PyTorch aligns its memory to whole registers, NumPy does not.
        return np.asarray(torch.zeros(count, lanes, dtype=dtype).numpy())

    work = Work(
        weights=rows(p + p % 2),
        velocity=rows(p + p % 2 if adam or task.momentum else 0),
        squares=rows(p + p % 2 if adam else 0),
        slopes=rows(p + p % 2),
        x=rows(n * d),
        y=rows(n),
        side=rows(n),
        outputs=rows(n),
        hidden=rows(TILE * sum(task.sizes[1:])),
        errors=rows(2 * TILE * max(task.sizes[1:])),
        batch_x=rows(TILE * d),
        batch_y=rows(TILE),
        facts=rows(10),
        row=np.empty(p, task.x.dtype),
        order=np.zeros((lanes, n if task.batch else 0), np.int32),
        member=np.full(lanes, -1, np.int64),
        age=np.zeros(lanes, np.int64),
        lost=np.full(lanes, -1, np.int64),
        counts=np.zeros(3, np.int64),
    )
    work.facts[ENOUGH], work.facts[LOW] = np.inf, -np.inf
    return work


def _layers(sizes: tuple[int, ...]) -> Array:
    table, row, units = [], 0, 0
    for inputs, outputs in pairwise(sizes):
        table.append([inputs, outputs, row, row + inputs * outputs, units])
        row += parameters((inputs, outputs))
        units += outputs
    return np.array(table, np.int64)


def _chunks() -> Array:
    """Return how to divide numbers into even parts that are no larger than the most columns.

    Row 0 is for the rows of blocks themselves.
    """
    table = np.zeros((max(COLUMNS) + 1, 65), np.int64)
    for rows, most in {0: max(COLUMNS), **COLUMNS}.items():
        for total in range(1, 65):
            parts = -(-total // most)
            table[rows, total] = -(-total // parts)
        table[rows, 64] = most
    return table


def _paces(task: Task) -> Array:
    """Return step sizes by updates made, as torch.optim.Adam computes them."""
    if task.optimizer != ADAM:
        return np.array([[task.lr], [1.0]])
    n = task.x.shape[1]
    steps = int(task.epochs.max()) * -(-n // (task.batch or n))
    largest = max(task.betas)
    faded = FADED / -np.log(largest) if largest else 1.0
    t = np.arange(1.0, 2.0 + min(steps, int(faded)))
    return np.stack(
        [task.lr / (1 - task.betas[0] ** t), 1 / np.sqrt(1 - task.betas[1] ** t)]
    )  # fmt: skip
