"""Arrays that the kernels of the lanes read and write; their last axis is the lane."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]

#: Codes of activations, losses, optimizers and of the status of a network in the kernels.
IDENTITY, RELU, LEAKY_RELU, TANH, SIGMOID = range(5)
MSE, BCE, CROSS_ENTROPY = range(3)
SGD, ADAM, ADAMW = range(3)
RUNNING, REACHED, DIVERGED = range(3)

#: Lanes of a register, by precision.
LANES = {torch.float32: 16, torch.float64: 8}


class State(NamedTuple):
    """A group of networks, one per lane; a kernel changes it in place.

    Rows of ``weights`` follow the order of ``model.parameters()``. The first part belongs to the
    networks, and moves with them from lane to lane; the second holds buffers. In a row number
    points vary fastest, so that inner loops read contiguous memory.
    """

    weights: Array  # p
    velocity: Array  # p, where there is momentum or Adam
    squares: Array  # p, where there is Adam
    powers: Array  # Adam's betas to the power of the step, in double precision
    x: Array  # d * n: first coordinates of all points, then second, ...
    y: Array  # c * n
    outputs: Array  # n: current outputs, in the shallow kernel
    stop: Array  # loss to stop at, minus infinity for none, in double precision
    fresh: Array  # whether outputs are still to be computed
    loss: Array  # loss of the last epoch, in double precision
    status: Array  # RUNNING, REACHED or DIVERGED
    step: Array  # where it diverged, counted from the first step of the call

    order: Array  # epochs, n, lanes: order of the points, where there are mini-batches
    batch_x: Array
    batch_y: Array
    hidden: Array  # activations at every point of the batch, unit after unit
    errors: Array  # gradient in the pre-activations
    rate: Array  # learning rate of each lane, and Adam's second bias correction
    batch_loss: Array  # loss of the batch
    loss_sum: Array  # sum of the losses of the epoch over its points


#: Number of fields of a state that belong to the networks.
OWN = State._fields.index("order")


class LaneRules(NamedTuple):
    """The options of the training as codes and numbers."""

    points: int
    batch: int
    shuffled: bool
    loss: int
    evaluated: bool
    optimizer: int
    nesterov: bool
    lr: float
    momentum: float
    decay: float
    beta1: float
    beta2: float


class Shape(NamedTuple):
    """The layers of the networks, all the same in every lane.

    A row of ``layers`` holds inputs, outputs, first row of the weights, first row of the biases
    (-1 if there are none), activation; ``slopes`` are those of LeakyReLU.
    """

    layers: Array
    slopes: Array

    @property
    def inputs(self) -> int:
        """Width of the data."""
        return int(self.layers[0, 0])

    @property
    def outputs(self) -> int:
        """Width of the last layer."""
        return int(self.layers[-1, 1])

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        inputs, outputs, biases = self.layers[:, 0], self.layers[:, 1], self.layers[:, 3] >= 0
        return int((outputs * (inputs + biases)).sum())

    @property
    def is_shallow(self) -> bool:
        """Whether it has one input, one layer of ReLUs with biases, and one output."""
        if len(self.layers) != 2 or (self.inputs, self.outputs) != (1, 1):
            return False
        return bool((self.layers[:, 3] >= 0).all()) and self.layers[:, 4].tolist() == [
            RELU,
            IDENTITY,
        ]


def blank_state(shape: Shape, rules: LaneRules, dtype: torch.dtype) -> State:
    """Return a group of empty lanes: zeros, which stay finite."""
    p, n = shape.parameters, rules.points
    d, c = shape.inputs, shape.outputs
    size = n if rules.evaluated else rules.batch
    units = int(shape.layers[:, 1].sum())
    adam = rules.optimizer != SGD

    def rows(count: int, kind: torch.dtype = dtype) -> Array:
        # PyTorch aligns its memory to whole registers, NumPy does not.
        return np.asarray(torch.zeros(count, LANES[dtype], dtype=kind).numpy())

    state = State(
        weights=rows(p),
        velocity=rows(p if adam or rules.momentum else 0),
        squares=rows(p if adam else 0),
        powers=rows(2, torch.float64),
        x=rows(n * d),
        y=rows(n * c),
        outputs=rows(n * c),
        stop=rows(1, torch.float64),
        fresh=rows(1, torch.bool),
        loss=rows(1, torch.float64),
        status=rows(1, torch.int64),
        step=rows(1, torch.int64),
        order=np.zeros((1, n if rules.shuffled else 0, LANES[dtype]), np.int32),
        batch_x=rows(rules.batch * d if rules.shuffled else 0),
        batch_y=rows(rules.batch * c if rules.shuffled else 0),
        hidden=rows(size * units),
        errors=rows(size * units),
        rate=rows(2),
        batch_loss=rows(1),
        loss_sum=rows(1, torch.float64),
    )
    state.stop[:] = -np.inf
    return state
