"""Arrays that the kernel of the tiles reads and writes; those of a thread have the lane last."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from inscape.ensembles.lanes.state import LANES
from inscape.ensembles.tiles.arguments import KernelArguments, parameters
from inscape.ensembles.tiles.options import ADAM, TANH, Array

#: Largest number of points that are evaluated together.
TILE = 16
#: Blocks of the matrix products: largest number of columns, by number of rows.
COLUMNS = {1: 8, 2: 8, 3: 8, 4: 5, 5: 5}
#: Rows of ``facts``.
RIGHT, PROBE, LOSS, BEST, BEST_EPOCH, EPOCH, ENOUGH, LOW, RATE, ROOT = range(10)
#: Entries of ``counts``: networks in training, epochs until one is at its limit, epochs done.
LIVE, DUE, EPOCHS_DONE = range(3)
#: Adam's bias corrections are 1 up to rounding after so many steps, over 1 - beta.
FADED = 40.0


class Work(NamedTuple):
    """A group of networks, one per lane, and the buffers that one thread needs to train them."""

    weights: Array  # p
    velocity: Array  # p, where there is momentum or Adam
    squares: Array  # p, where there is Adam
    gradients: Array  # p: gradient of the loss
    x: Array  # tile after tile: first coordinates of its points, then second, ...
    y: Array  # n
    side: Array  # n: 1 where the label is above, -1 where it is below
    outputs: Array  # n
    hidden: Array  # activations of all units at all points of the tile, layer after layer
    errors: Array  # gradient in the pre-activations, of two layers in turn
    batch_x: Array  # a tile of a mini-batch
    batch_y: Array
    facts: Array  # status of each network, by the names above
    row: Array  # p: buffer for the initial weights of a network
    order: Array  # lanes, n: where there are mini-batches
    member: Array  # lanes: index of the network in it, -1 if it is empty
    age: Array  # lanes: updates made
    diverged: Array  # lanes: updates before the first loss that was not finite, or -1
    counts: Array


class Data(NamedTuple):
    """Data, seeds and stop rules of the members, which all threads read; and their queue."""

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
    chunks: Array  # columns of a block, by its rows and the length to be divided
    rates: Array  # learning rate, and inverse of Adam's second bias correction, by step


class TileRules(NamedTuple):
    """The options of the training as codes and numbers."""

    distribution: int  # of initial weights
    smooth: bool
    slope: float
    loss: int
    optimizer: int
    beta1: float
    beta2: float
    momentum: float
    batch: int
    stops_on_loss: bool
    threshold: float


class Outcome(NamedTuple):
    """The trained members: the arrays of :class:`inscape.ensembles.Tiny`."""

    weights: Array
    right: Array
    best_right: Array
    best_epoch: Array
    epochs: Array
    stopped: Array
    loss: Array
    diverged: Array


def data_of(arguments: KernelArguments) -> Data:
    """Return data, seeds and stop rules of the members."""
    return Data(
        x=arguments.x,
        y=arguments.y,
        seeds=arguments.seeds,
        start=arguments.start,
        epochs=arguments.epochs,
        enough=arguments.enough,
        low=arguments.low,
        queue=np.zeros(1, np.int64),
        sizes=np.array(arguments.sizes, np.int64),
        layers=_layers(arguments.sizes),
        chunks=_chunks(),
        rates=_rates(arguments),
    )


def rules_of(arguments: KernelArguments) -> TileRules:
    """Return the options of the training as codes and numbers."""
    return TileRules(
        distribution=arguments.distribution,
        smooth=arguments.activation == TANH,
        slope=arguments.slope,
        loss=arguments.loss,
        optimizer=arguments.optimizer,
        beta1=arguments.betas[0],
        beta2=arguments.betas[1],
        momentum=arguments.momentum,
        batch=arguments.batch,
        stops_on_loss=bool(np.isfinite(arguments.low).any()),
        threshold=arguments.threshold,
    )


def blank_outcome(arguments: KernelArguments) -> Outcome:
    """Return empty arrays for the trained members."""
    members = len(arguments.seeds)
    counts = [np.zeros(members, np.int64) for _ in range(5)]
    return Outcome(
        weights=np.empty((members, arguments.parameters), arguments.x.dtype),
        right=counts[0],
        best_right=counts[1],
        best_epoch=counts[2],
        epochs=counts[3],
        stopped=np.zeros(members, np.bool_),
        loss=np.empty(members),
        diverged=counts[4],
    )


def blank_work(arguments: KernelArguments) -> Work:
    """Return a group of empty lanes: zeros, which stay zeros."""
    n, d = arguments.x.shape[1:]
    dtype = torch.float32 if arguments.x.dtype == np.float32 else torch.float64
    p, lanes, adam = arguments.parameters, LANES[dtype], arguments.optimizer == ADAM

    def rows(count: int) -> Array:
        # PyTorch aligns its memory to whole registers, NumPy does not.
        return np.asarray(torch.zeros(count, lanes, dtype=dtype).numpy())

    work = Work(
        weights=rows(p + p % 2),
        velocity=rows(p + p % 2 if adam or arguments.momentum else 0),
        squares=rows(p + p % 2 if adam else 0),
        gradients=rows(p + p % 2),
        x=rows(n * d),
        y=rows(n),
        side=rows(n),
        outputs=rows(n),
        hidden=rows(TILE * sum(arguments.sizes[1:])),
        errors=rows(2 * TILE * max(arguments.sizes[1:])),
        batch_x=rows(TILE * d),
        batch_y=rows(TILE),
        facts=rows(10),
        row=np.empty(p, arguments.x.dtype),
        order=np.zeros((lanes, n if arguments.batch else 0), np.int32),
        member=np.full(lanes, -1, np.int64),
        age=np.zeros(lanes, np.int64),
        diverged=np.full(lanes, -1, np.int64),
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
    """Return how to divide lengths into equal parts of at most as many columns as a block has.

    Row 0 is for the rows of blocks themselves.
    """
    table = np.zeros((max(COLUMNS) + 1, 65), np.int64)
    for rows, most in {0: max(COLUMNS), **COLUMNS}.items():
        for total in range(1, 65):
            parts = -(-total // most)
            table[rows, total] = -(-total // parts)
        table[rows, 64] = most
    return table


def _rates(arguments: KernelArguments) -> Array:
    """Return the learning rate of each step, with the bias corrections of torch.optim.Adam."""
    if arguments.optimizer != ADAM:
        return np.array([[arguments.lr], [1.0]])
    n = arguments.x.shape[1]
    steps = int(arguments.epochs.max()) * -(-n // (arguments.batch or n))
    largest = max(arguments.betas)
    faded = FADED / -np.log(largest) if largest else 1.0
    t = np.arange(1.0, 2.0 + min(steps, int(faded)))
    return np.stack(
        [arguments.lr / (1 - arguments.betas[0] ** t), 1 / np.sqrt(1 - arguments.betas[1] ** t)]
    )  # fmt: skip
