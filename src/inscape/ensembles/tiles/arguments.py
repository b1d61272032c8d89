"""Arguments of :func:`inscape.ensembles.fit_tiny`, checked and translated for the kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape._core import checks
from inscape.ensembles.tiles.options import (
    ACTIVATIONS,
    ALIASES,
    DISTRIBUTIONS,
    LOSSES,
    OPTIMIZERS,
    Array,
    Integers,
    TinyOptions,
    Values,
)

PRECISIONS = {torch.float32: np.float32, torch.float64: np.float64}
#: Epochs are counted in single precision.
MOST_EPOCHS = 2**24


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelArguments:
    """The arguments of :func:`fit_tiny` as contiguous arrays and as codes of the kernels.

    An array has one entry where all members share it.
    """

    sizes: tuple[int, ...]
    x: Array  # members or 1, n, d
    y: Array  # members or 1, n
    seeds: Array  # uint64
    start: Array  # initial weights: members, p; or 0, p if they are to be drawn
    distribution: int  # of initial weights
    activation: int
    slope: float  # below zero; 0 for a ReLU
    loss: int
    optimizer: int
    lr: float
    betas: tuple[float, float]
    momentum: float
    batch: int  # 0 for all
    epochs: Array  # largest number for each member
    enough: Array  # number of points right at which each member stops
    low: Array  # loss at which each member stops
    threshold: float
    threads: int

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return parameters(self.sizes)


def parameters(sizes: Sequence[int]) -> int:
    """Return the number of weights and biases."""
    return sum((a + 1) * b for a, b in pairwise(sizes))


def kernel_arguments(
    sizes: Sequence[int],
    x: Values,
    y: Values,
    seeds: Integers,
    weights: Values | None,
    options: TinyOptions,
) -> KernelArguments:
    """Check data, seeds and weights, and return them with the options for the kernels."""
    number = precision(options.dtype)
    sizes = layer_sizes(sizes)
    keys = seed_keys(seeds)
    members = len(keys)
    points = _points(x, sizes[0], members, number)
    enough, low = _stop(options, members, points.shape[1])
    return KernelArguments(
        sizes=sizes,
        x=points,
        y=_labels(y, points.shape[1], members, options.loss, number),
        seeds=keys,
        start=_start(weights, members, parameters(sizes), number),
        distribution=distribution_code(options.init),
        activation=ACTIVATIONS[options.activation],
        slope=float(options.slope) if options.activation == "leaky_relu" else 0.0,
        loss=LOSSES[options.loss],
        optimizer=OPTIMIZERS[options.optimizer],
        lr=float(options.lr),
        betas=(float(options.betas[0]), float(options.betas[1])),
        momentum=float(options.momentum),
        batch=0 if options.batch is None else min(int(options.batch), points.shape[1]),
        epochs=_epochs(options.epochs, members),
        enough=enough,
        low=low,
        threshold=float(options.threshold),
        threads=torch.get_num_threads() if options.threads is None else int(options.threads),
    )


def distribution_code(init: str) -> int:
    """Return the code of a distribution of initial weights; raise an error if it is unknown."""
    checks.one_of((*DISTRIBUTIONS, *ALIASES), init=init)
    return DISTRIBUTIONS.index(ALIASES.get(init, init))


def seed_keys(seeds: Integers) -> Array:
    """Return seeds as unsigned 64-bit integers; raise an error if they are none."""
    entries = seeds.numpy() if isinstance(seeds, Tensor) else seeds
    array = np.asarray(entries if isinstance(entries, np.ndarray | range) else list(entries))
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
        raise ValueError(
            "seeds must be integers below 2^63, one for each member and at least one, found "
            f"{array.dtype} of shape {array.shape}: pass e.g. range(100)."
        )
    return array.astype(np.int64 if array.dtype.kind == "i" else np.uint64).view(np.uint64)


def precision(dtype: torch.dtype) -> Any:
    """Return the NumPy type of a precision; raise an error if there is no kernel for it."""
    if dtype not in PRECISIONS:
        raise ValueError(
            f"dtype must be torch.float32 or torch.float64, found {dtype}: choose one of them."
        )
    return PRECISIONS[dtype]


def layer_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the layers; raise an error if they are none of an MLP with one output."""
    sizes = tuple(int(size) for size in sizes)
    if len(sizes) < 2 or min(sizes) < 1 or sizes[-1] != 1:
        raise ValueError(
            "sizes must be inputs, units of each hidden layer, and one output, all at least 1, "
            f"found {sizes}: pass e.g. (4, 3, 1)."
        )
    return sizes


def _points(x: Values, inputs: int, members: int, number: Any) -> Array:
    """Return the points of each member, or of all with one entry."""
    points = _numbers(x, number)
    shape = points.shape
    if len(shape) not in (2, 3) or shape[-1] != inputs or 0 in shape:
        raise ValueError(
            f"x must be points of {inputs} numbers, of shape (n, {inputs}) for all or (members, n, "
            f"{inputs}) for each, found shape {shape}: reshape x or mend sizes."
        )
    if len(shape) == 3 and len(points) != members:
        raise ValueError(
            f"x must hold points for each of the {members} seeds, found {len(points)}: pass as "
            "many as there are seeds, or points of shape (n, d) for all."
        )
    if not np.isfinite(points).all():
        raise ValueError("x must be finite, found NaN or Inf: drop or repair those points.")
    return points if len(shape) == 3 else points[None]


def _labels(y: Values, count: int, members: int, loss: str, number: Any) -> Array:
    """Return the labels of each member, or of all with one entry."""
    labels = _numbers(y, number)
    if labels.shape not in ((count,), (members, count)):
        raise ValueError(
            f"y must hold one label per point, of shape ({count},) for all or ({members}, "
            f"{count}) for each, found shape {labels.shape}: reshape y."
        )
    if not np.isfinite(labels).all():
        raise ValueError("y must be finite, found NaN or Inf: drop or repair those labels.")
    if loss == "bce_logits" and (labels.min() < 0 or labels.max() > 1):
        raise ValueError(
            "bce_logits requires labels from 0 to 1, found some from "
            f"{labels.min():g} to {labels.max():g}: use (y + 1) / 2 for labels -1 and 1."
        )
    return labels if labels.ndim == 2 else labels[None]


def _start(weights: Values | None, members: int, count: int, number: Any) -> Array:
    """Return the initial weights, or none where they are to be drawn."""
    if weights is None:
        return np.empty((0, count), number)
    start = _numbers(weights, number)
    if start.shape != (members, count):
        raise ValueError(
            f"weights must hold {count} numbers for each of the {members} seeds, of shape "
            f"({members}, {count}), found shape {start.shape}: see tiny_weights for their order."
        )
    if not np.isfinite(start).all():
        raise ValueError("weights must be finite, found NaN or Inf: draw them anew.")
    return start


def _epochs(epochs: int | Integers, members: int) -> Array:
    """Return the largest number of epochs of each member."""
    limits = _per_member(epochs, members, "epochs", np.int64)
    checks.at_least(1, epochs=int(limits.min()))
    if limits.max() > MOST_EPOCHS:
        raise ValueError(
            f"epochs must be at most {MOST_EPOCHS}, found {limits.max()}: train in parts, with "
            "weights."
        )
    return limits


def _stop(options: TinyOptions, members: int, points: int) -> tuple[Array, Array]:
    """Return the number of points right, and the loss, at which each member stops."""
    stop, stop_at = options.stop, options.stop_at
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
    level = _per_member(stop_at, members, "stop_at", np.float64)
    if stop == "loss":
        if not (np.isfinite(level) & (level >= 0)).all():
            raise ValueError(
                f"stop_at must be a finite loss, at least 0, found {level.min()} to {level.max()}: "
                "use stop=None to train for all epochs."
            )
        return never, level
    if not ((level > 0) & (level <= 1)).all():
        raise ValueError(
            "stop_at must be a fraction above 0 and up to 1 for stop='accuracy', found "
            f"{level.min()} to {level.max()}: use 0.95 for 95 percent."
        )
    enough = np.ceil(level * points).astype(np.int64)
    enough -= (enough - 1) / points >= level  # the product may be rounded up
    enough += enough / points < level
    return enough, none


def _per_member(values: Any, members: int, name: str, kind: Any) -> Array:
    """Return one value per member."""
    array = np.asarray(values.numpy() if isinstance(values, Tensor) else values)
    integer = kind is np.int64
    if array.shape not in ((), (members,)) or array.dtype.kind not in ("iu" if integer else "iuf"):
        raise ValueError(
            f"{name} must be one {'integer' if integer else 'number'}, or one for each of the "
            f"{members} seeds, found {array.dtype} of shape {array.shape}: pass one or {members}."
        )
    return np.broadcast_to(array, (members,)).astype(kind)


def _numbers(values: Values, number: Any) -> Array:
    """Return values as a contiguous array in a precision; an overflow becomes infinite."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=number)
