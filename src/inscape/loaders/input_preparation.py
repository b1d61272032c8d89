"""Inputs as the model wants them: shape, scale, normalisation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.errors import DataError
from inscape.loaders.arrays import Array

#: Mean and standard deviation of each channel over the training images, values from 0 to 1.
STATISTICS = {
    "mnist": ((0.1307,), (0.3081,)),
    "cifar10": ((0.49139968, 0.48215841, 0.44653091), (0.24703223, 0.24348513, 0.26158784)),
}


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How examples of a file become inputs of the model; the same for both splits."""

    shape: tuple[int, ...] | None = None
    divide: float | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """Return what is recorded, under the names of the options."""
        return {
            "input_shape": self.shape,
            "divide": self.divide,
            "normalise": (self.mean, self.std) if self.std else None,
        }

    def apply(self, x: Array, dtype: torch.dtype) -> tuple[Tensor, tuple[str, ...]]:
        """Return the inputs, and what there is to say about their shape."""
        tensor = torch.from_numpy(np.require(x, requirements=["C", "W"])).to(dtype)
        tensor = tensor[:, None] if tensor.ndim == 1 else tensor
        if self.divide is not None:
            tensor = tensor / self.divide
        notes: tuple[str, ...] = ()
        if self.shape is not None:
            tensor, notes = reshaped(tensor, self.shape)
        if self.std:
            mean, std = (self._spread(values, tensor) for values in (self.mean, self.std))
            tensor = (tensor - mean) / std
        return tensor.contiguous(), notes

    def _spread(self, values: tuple[float, ...], x: Tensor) -> Tensor:
        if len(values) > 1 and len(values) != x.shape[1]:
            raise DataError(
                f"normalise must have one number for each channel, found {len(values)} for "
                f"examples of shape {tuple(x.shape[1:])}: use --input-shape, channels first."
            )
        return x.new_tensor(values).reshape(1, -1, *[1] * (x.ndim - 2))


def read_preparation(
    x: Array, *, input_shape: Any, divide: Any, normalise: Any
) -> tuple[Preparation, tuple[str, ...]]:
    """Read the user's wishes; what is guessed about the range of the inputs is said."""
    divisor, notes = _divisor(divide, x)
    mean, std = _normalise(normalise)
    shape = None if input_shape is None else _shape(input_shape)
    return Preparation(shape=shape, divide=divisor, mean=mean, std=std), notes


def reshaped(x: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, tuple[str, ...]]:
    """Reshape each example; images with their channels last are transposed first."""
    row = tuple(x.shape[1:])
    if row == shape:
        return x, ()
    if len(row) == 3 and shape == (row[2], row[0], row[1]) and row[2] > 1:
        return x.permute(0, 3, 1, 2), ("moved the channels from last to first",)
    if len(row) == 3 and shape == (row[1], row[2], row[0]) and row[0] > 1:
        return x.permute(0, 2, 3, 1), ("moved the channels from first to last",)
    if math.prod(row) != math.prod(shape):
        raise DataError(
            f"input shape {'x'.join(map(str, shape))} must hold {math.prod(shape)} numbers, found "
            f"examples of shape {row} with {math.prod(row)}: give a shape that fits."
        )
    return x.reshape(len(x), *shape), ()


def _shape(option: Any) -> tuple[int, ...]:
    words = option.split("x") if isinstance(option, str) else option
    try:
        shape = tuple(int(word) for word in words)
    except (TypeError, ValueError):
        shape = ()
    if not shape or min(shape) < 1:
        raise ValueError(
            f"input shape must be integers such as 1x28x28, found {option!r}: write one."
        )
    return shape


def _divisor(option: Any, x: Array) -> tuple[float | None, tuple[str, ...]]:
    integer = x.dtype.kind in "iu"
    span = f"x holds integers from {x.min()} to {x.max()}" if integer else ""
    if option == "auto" and integer and x.min() >= 0 and 128 <= x.max() <= 255:
        return 255.0, (f"{span}: divided by 255 (use --divide 1 otherwise)",)
    if option in (None, "auto"):
        hint = " (use --divide 255 to divide)" if option is None and integer and x.max() > 1 else ""
        return None, (f"{span}: taken as they are{hint}",) if integer else ()
    try:
        divide = float(option)
    except (TypeError, ValueError):
        divide = math.nan
    if not math.isfinite(divide) or divide == 0:
        raise ValueError(
            f"divide must be a number to divide by, or auto, found {option!r}: give one."
        )
    return divide, ()


def _normalise(option: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if option is None:
        return (), ()
    if isinstance(option, str) and option.lower() in STATISTICS:
        return STATISTICS[option.lower()]
    try:
        mean, std = _halves(option)
    except (TypeError, ValueError):
        mean, std = (), ()
    finite = all(map(math.isfinite, (*mean, *std)))
    if not mean or len(mean) != len(std) or not finite or min(std) <= 0:
        raise ValueError(
            f"normalise must be MEAN,STD or MEANS/STDS with one of each per channel and STD above "
            f"0, or one of {', '.join(STATISTICS)}, found {option!r}: write e.g. 0.5,0.25."
        )
    return mean, std


def _halves(option: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if isinstance(option, str):
        option = option.split("/") if "/" in option else option.split(",")
    mean, std = option
    return _numbers(mean), _numbers(std)


def _numbers(option: Any) -> tuple[float, ...]:
    if isinstance(option, str):
        return tuple(float(word) for word in option.split(","))
    if isinstance(option, Sequence | np.ndarray | Tensor) and np.ndim(option):
        return tuple(float(value) for value in option)
    return (float(option),)
