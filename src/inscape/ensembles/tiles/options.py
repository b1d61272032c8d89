"""What :func:`fit_tiny` was asked for: checked, and in numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape._core import checks

Array = npt.NDArray[Any]
Given = Tensor | Array
Numbers = Sequence[int] | Tensor | Array

#: What kernels know things by.
RELU, LEAKY_RELU, TANH = range(3)
MSE, BCE = range(2)
SGD, ADAM = range(2)
ACTIVATIONS = {"relu": RELU, "leaky_relu": LEAKY_RELU, "tanh": TANH}
LOSSES = {"mse": MSE, "bce_logits": BCE}
OPTIMIZERS = {"sgd": SGD, "adam": ADAM}
PRECISIONS = {torch.float32: np.float32, torch.float64: np.float64}
ALIASES = {"default": "pytorch", "glorot_uniform": "glorot"}
#: Epochs are counted in single precision.
LONGEST = 2**24
LAWS = ("he_normal", "he_uniform", "glorot", "pytorch")


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """A training in numbers; arrays are contiguous, and of one entry where all members share."""

    sizes: tuple[int, ...]
    x: Array  # members or 1, n, d
    y: Array  # members or 1, n
    seeds: Array  # uint64
    start: Array  # members, p; or 0, p if it is to be drawn
    law: str
    activation: int
    slope: float  # below zero; 0 for a plain ReLU
    loss: int
    optimizer: int
    lr: float
    betas: tuple[float, float]
    momentum: float
    batch: int  # 0 for all
    epochs: Array  # limit of each
    enough: Array  # points right that stop each
    low: Array  # loss that stops each
    threshold: float
    threads: int

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return parameters(self.sizes)


def parameters(sizes: Sequence[int]) -> int:
    """Return the number of weights and biases."""
    return sum((a + 1) * b for a, b in pairwise(sizes))


def asked(
    sizes: Sequence[int], x: Given, y: Given, *, seeds: Numbers, weights: Given | None, init: str,
    activation: str, slope: float, loss: str, optimizer: str, lr: float,
    betas: tuple[float, float], momentum: float, batch: int | None, epochs: int | Numbers,
    stop: str | None, stop_at: float | Sequence[float] | Given | None, threshold: float,
    dtype: torch.dtype, threads: int | None,
) -> Task:  # fmt: skip
    """Check everything, and return it in numbers."""
    law = ALIASES.get(init, init)
    checks.one_of((*LAWS, *ALIASES), init=init)
    checks.one_of(tuple(ACTIVATIONS), activation=activation)
    checks.one_of(tuple(LOSSES), loss=loss)
    checks.one_of(tuple(OPTIMIZERS), optimizer=optimizer)
    checks.whole(1, batch=1 if batch is None else batch)
    checks.whole(1, threads=1 if threads is None else threads)
    _check_numbers(optimizer, lr, betas, momentum, slope, threshold)
    number = precision(dtype)
    sizes = layer_sizes(sizes)
    keys = seed_keys(seeds)
    members = len(keys)
    points = _points(x, sizes[0], members, number)
    labels = _labels(y, points.shape[1], members, loss, number)
    limits = _each(epochs, members, "epochs", np.int64)
    checks.at_least(1, epochs=int(limits.min()))
    if limits.max() > LONGEST:
        raise ValueError(
            f"epochs must be at most {LONGEST}, found {limits.max()}: train in parts, with weights."
        )
    enough, low = _stop(stop, stop_at, members, points.shape[1])
    return Task(
        sizes=sizes,
        x=points,
        y=labels,
        seeds=keys,
        start=_start(weights, members, parameters(sizes), number),
        law=law,
        activation=ACTIVATIONS[activation],
        slope=float(slope) if activation == "leaky_relu" else 0.0,
        loss=LOSSES[loss],
        optimizer=OPTIMIZERS[optimizer],
        lr=float(lr),
        betas=(float(betas[0]), float(betas[1])),
        momentum=float(momentum),
        batch=0 if batch is None else min(int(batch), points.shape[1]),
        epochs=limits,
        enough=enough,
        low=low,
        threshold=float(threshold),
        threads=torch.get_num_threads() if threads is None else int(threads),
    )


def seed_keys(seeds: Numbers) -> Array:
    """Return seeds as unsigned numbers of 64 bits, or refuse them."""
    given = seeds.numpy() if isinstance(seeds, Tensor) else seeds
    plain = np.asarray(given if isinstance(given, np.ndarray | range) else list(given))
    if plain.ndim != 1 or not len(plain) or plain.dtype.kind not in "iu":
        raise ValueError(
            "seeds must be whole numbers below 2^63, one for each member and at least one, found "
            f"{plain.dtype} of shape {plain.shape}: pass e.g. range(100)."
        )
    return plain.astype(np.int64 if plain.dtype.kind == "i" else np.uint64).view(np.uint64)


def precision(dtype: torch.dtype) -> Any:
    """Return NumPy's name of a precision, or refuse it."""
    if dtype not in PRECISIONS:
        raise ValueError(
            f"dtype must be torch.float32 or torch.float64, found {dtype}: choose one of them."
        )
    return PRECISIONS[dtype]


def layer_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the layers, or refuse them."""
    sizes = tuple(int(size) for size in sizes)
    if len(sizes) < 2 or min(sizes) < 1 or sizes[-1] != 1:
        raise ValueError(
            "sizes must be inputs, units of each hidden layer, and one output, all at least 1, "
            f"found {sizes}: pass e.g. (4, 3, 1)."
        )
    return sizes


def _check_numbers(
    optimizer: str, lr: float, betas: tuple[float, float], momentum: float, slope: float,
    threshold: float,
) -> None:  # fmt: skip
    if not 0 < lr < math.inf:
        raise ValueError(f"lr must be positive and finite, found {lr}: try 0.01.")
    if not all(0 <= value < 1 for value in (momentum, *betas)):
        raise ValueError(
            f"momentum and betas must lie in [0, 1), found {momentum} and {betas}: try 0.9."
        )
    if momentum and optimizer != "sgd":
        raise ValueError(
            f"momentum is an option of sgd, found momentum={momentum} for the optimizer "
            f"{optimizer!r}: leave momentum out."
        )
    if not 0 <= slope < math.inf:
        raise ValueError(f"slope must be at least 0 and finite, found {slope}: try 0.1.")
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite, found {threshold}: try 0.0.")


def _points(x: Given, inputs: int, members: int, number: Any) -> Array:
    given = _numbers(x, number)
    shape = given.shape
    if len(shape) not in (2, 3) or shape[-1] != inputs or 0 in shape:
        raise ValueError(
            f"x must be points of {inputs} numbers, of shape (n, {inputs}) for all or (members, n, "
            f"{inputs}) for each, found shape {shape}: reshape x or mend sizes."
        )
    if len(shape) == 3 and len(given) != members:
        raise ValueError(
            f"x must hold points for each of the {members} seeds, found {len(given)}: pass as many "
            "as there are seeds, or points of shape (n, d) for all."
        )
    if not np.isfinite(given).all():
        raise ValueError("x must be finite, found NaN or Inf: drop or repair those points.")
    return given if len(shape) == 3 else given[None]


def _labels(y: Given, points: int, members: int, loss: str, number: Any) -> Array:
    given = _numbers(y, number)
    if given.shape not in ((points,), (members, points)):
        raise ValueError(
            f"y must hold one label per point, of shape ({points},) for all or ({members}, "
            f"{points}) for each, found shape {given.shape}: reshape y."
        )
    if not np.isfinite(given).all():
        raise ValueError("y must be finite, found NaN or Inf: drop or repair those labels.")
    if loss == "bce_logits" and (given.min() < 0 or given.max() > 1):
        raise ValueError(
            "bce_logits takes labels from 0 to 1, found some from "
            f"{given.min():g} to {given.max():g}: use (y + 1) / 2 for labels -1 and 1."
        )
    return given if given.ndim == 2 else given[None]


def _start(weights: Given | None, members: int, count: int, number: Any) -> Array:
    if weights is None:
        return np.empty((0, count), number)
    given = _numbers(weights, number)
    if given.shape != (members, count):
        raise ValueError(
            f"weights must hold {count} numbers for each of the {members} seeds, of shape "
            f"({members}, {count}), found shape {given.shape}: see tiny_weights for their order."
        )
    if not np.isfinite(given).all():
        raise ValueError("weights must be finite, found NaN or Inf: draw them anew.")
    return given


def _stop(
    stop: str | None, stop_at: float | Sequence[float] | Given | None, members: int, points: int
) -> tuple[Array, Array]:
    """Return how many points right, and what loss, are enough for each member."""
    never = np.full(members, points + 1, np.int64)
    none = np.full(members, -np.inf)
    if stop is not None:
        checks.one_of(("right", "accuracy", "loss"), stop=stop)
    if stop in (None, "right"):
        if stop_at is not None:
            raise ValueError(
                f"stop_at goes with stop='accuracy' or stop='loss', found stop={stop!r}: leave "
                "stop_at out, or choose one of them."
            )
        return (never, none) if stop is None else (never - 1, none)
    if stop_at is None:
        raise ValueError(
            f"stop={stop!r} needs stop_at, found None: say what {stop} is enough, e.g. "
            f"stop_at={0.95 if stop == 'accuracy' else 0.01}."
        )
    level = _each(stop_at, members, "stop_at", np.float64)
    if stop == "loss":
        if not (np.isfinite(level) & (level >= 0)).all():
            raise ValueError(
                f"stop_at must be a finite loss, at least 0, found {level.min()} to {level.max()}: "
                "use stop=None to train for all epochs."
            )
        return never, level
    if not ((level > 0) & (level <= 1)).all():
        raise ValueError(
            "stop_at must be a share above 0 and up to 1 for stop='accuracy', found "
            f"{level.min()} to {level.max()}: use 0.95 for 95 percent."
        )
    enough = np.ceil(level * points).astype(np.int64)
    enough -= (enough - 1) / points >= level  # the product may be rounded up
    enough += enough / points < level
    return enough, none


def _each(given: Any, members: int, name: str, kind: Any) -> Array:
    """Return one number per member."""
    plain = np.asarray(given.numpy() if isinstance(given, Tensor) else given)
    whole = kind is np.int64
    if plain.shape not in ((), (members,)) or plain.dtype.kind not in ("iu" if whole else "iuf"):
        raise ValueError(
            f"{name} must be one {'whole ' if whole else ''}number, or one for each of the "
            f"{members} seeds, found {plain.dtype} of shape {plain.shape}: pass one or {members}."
        )
    return np.broadcast_to(plain, (members,)).astype(kind)


def _numbers(given: Given, number: Any) -> Array:
    plain = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        return np.ascontiguousarray(plain, dtype=number)
