"""Options of :func:`inscape.ensembles.fit_tiny`, and the codes by which kernels know them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy.typing as npt
import torch
from torch import Tensor

from inscape._core import checks
from inscape.training.options import FitOptions

Array = npt.NDArray[Any]
Values = Tensor | Array
Integers = Sequence[int] | Tensor | Array

#: Codes of activations, losses and optimizers in the kernels.
RELU, LEAKY_RELU, TANH = range(3)
MSE, BCE = range(2)
SGD, ADAM = range(2)
ACTIVATIONS = {"relu": RELU, "leaky_relu": LEAKY_RELU, "tanh": TANH}
LOSSES = {"mse": MSE, "bce_logits": BCE}
OPTIMIZERS = {"sgd": SGD, "adam": ADAM}
ALIASES = {"default": "pytorch", "glorot_uniform": "glorot"}
#: Distributions of initial weights; the kernels know each by its place here.
DISTRIBUTIONS = ("he_normal", "he_uniform", "glorot", "pytorch")


@dataclass(frozen=True, kw_only=True, eq=False)
class TinyOptions:
    """The options of :func:`inscape.ensembles.fit_tiny`, checked.

    Where a name is one of :class:`inscape.training.FitOptions`, so is the meaning.

    Attributes:
        init: Distribution of the initial weights: ``"he_normal"``, ``"he_uniform"``, ``"glorot"``
            (``"glorot_uniform"``), all with zero biases, or ``"pytorch"`` (``"default"``); see
            :mod:`inscape.models.initialisation`. They are drawn by a generator of our own, which
            :func:`tiny_weights` shows.
        activation: ``"relu"``, ``"leaky_relu"`` or ``"tanh"``.
        slope: Slope of the leaky ReLU below zero.
        loss: ``"bce_logits"``, for labels from 0 to 1, or ``"mse"``.
        optimizer: ``"adam"`` or ``"sgd"``.
        lr: Learning rate.
        betas: Decay rates of Adam's two moments.
        momentum: Momentum of SGD.
        batch: Size of mini-batches, in an order drawn anew every epoch (:func:`tiny_order`); None
            uses all points, in their order.
        epochs: Largest number of epochs, for all members or for each.
        stop: ``"right"`` (all points), ``"accuracy"`` (a fraction of at least ``stop_at``),
            ``"loss"`` (a mean of at most ``stop_at``), or None to run all epochs.
        stop_at: The accuracy or loss at which to stop, for all members or for each.
        threshold: Output that separates the two classes.
        dtype: ``torch.float32`` or ``torch.float64``.
        threads: Number of threads; None takes PyTorch's.
        progress: Whether to show progress, as in :func:`fit`.
    """

    init: str = "he_normal"
    activation: str = "leaky_relu"
    slope: float = 0.1
    loss: str = "bce_logits"
    optimizer: str = "adam"
    lr: float = 0.025
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.0
    batch: int | None = None
    epochs: int | Integers = 4000
    stop: str | None = "right"
    stop_at: float | Sequence[float] | Values | None = None
    threshold: float = 0.0
    dtype: torch.dtype = torch.float32
    threads: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        checks.one_of((*DISTRIBUTIONS, *ALIASES), init=self.init)
        checks.one_of(tuple(ACTIVATIONS), activation=self.activation)
        checks.one_of(tuple(LOSSES), loss=self.loss)
        checks.one_of(tuple(OPTIMIZERS), optimizer=self.optimizer)
        checks.whole(1, threads=1 if self.threads is None else self.threads)
        self.shared()
        if not 0 <= self.slope < math.inf:
            raise ValueError(f"slope must be at least 0 and finite, found {self.slope}: try 0.1.")
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, found {self.threshold}: try 0.0.")

    def shared(self) -> FitOptions:
        """Return the options that all trainers share, which checks them."""
        return FitOptions(
            loss=self.loss,
            optimizer=self.optimizer,
            lr=self.lr,
            betas=self.betas,
            momentum=self.momentum,
            batch=self.batch,
            progress=self.progress,
        )


class TinyKeywords(TypedDict, total=False):
    """The fields of :class:`TinyOptions` as keyword arguments, for type checkers."""

    init: str
    activation: str
    slope: float
    loss: str
    optimizer: str
    lr: float
    betas: tuple[float, float]
    momentum: float
    batch: int | None
    epochs: int | Integers
    stop: str | None
    stop_at: float | Sequence[float] | Values | None
    threshold: float
    dtype: torch.dtype
    threads: int | None
    progress: bool | None
