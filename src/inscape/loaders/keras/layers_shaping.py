"""Layers without weights that join, repeat and reshape."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from inscape.loaders.keras.config import KerasLayer
from inscape.loaders.keras.layers_dense import Builder, Weights, alone
from inscape.loaders.keras.layers_normalising import one_axis


class Joined(nn.Module):
    """Several inputs of one shape made into one; of two arguments, one may be a number."""

    def __init__(self, join: Callable[[Any, Any], Any], mean: bool = False) -> None:
        super().__init__()
        self._join, self._mean = join, mean

    def forward(self, *arguments: Any) -> Tensor:
        """Return the inputs, combined."""
        inputs = arguments[0] if len(arguments) == 1 else arguments
        output: Tensor = reduce(self._join, inputs)
        return output / len(inputs) if self._mean else output


class Concatenated(nn.Module):
    """Several inputs, one behind the other."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, inputs: list[Tensor]) -> Tensor:
        """Return them as one."""
        return torch.cat(inputs, dim=self.axis)


class Shaped(nn.Module):
    """Samples of another shape."""

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        """Return the same numbers."""
        return x.reshape(x.shape[0], *self.shape)


class Flat(nn.Module):
    """Flattened samples; channels are last."""

    def __init__(self, channels_first: bool) -> None:
        super().__init__()
        self._first = channels_first

    def forward(self, x: Tensor) -> Tensor:
        """Return the same numbers."""
        moved = x.movedim(1, -1) if self._first and x.ndim > 2 else x
        return moved.flatten(1) if moved.ndim > 1 else moved[:, None]


class Permuted(nn.Module):
    """The axes of a sample in another order."""

    def __init__(self, axes: list[int]) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        """Return the same numbers."""
        return x.permute(0, *self.axes)


class Repeated(nn.Module):
    """Each sample, repeated."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows with one axis more."""
        return x[:, None].expand(-1, self.times, -1)


def _reshape(layer: KerasLayer, _: Weights) -> nn.Module:
    shape = layer.settings.get("target_shape")
    if not isinstance(shape, list) or not all(type(n) is int and n >= -1 for n in shape):
        layer.refuse("sizes as target_shape", shape)
    return Shaped(list(shape))


def _permute(layer: KerasLayer, _: Weights) -> nn.Module:
    axes = layer.settings.get("dims")
    if not isinstance(axes, list) or sorted(map(str, axes)) != [
        str(n + 1) for n in range(len(axes))
    ]:
        layer.refuse("each axis once as dims", axes)
    return Permuted([int(axis) for axis in axes])


SHAPING: dict[str, Builder] = {
    "Add": alone(lambda _: Joined(operator.add)),
    "Average": alone(lambda _: Joined(operator.add, mean=True)),
    "Concatenate": alone(lambda layer: Concatenated(one_axis(layer))),
    "Divide": alone(lambda _: Joined(operator.truediv)),
    "Flatten": alone(lambda layer: Flat(layer.settings.get("data_format") == "channels_first")),
    "Maximum": alone(lambda _: Joined(torch.maximum)),
    "Minimum": alone(lambda _: Joined(torch.minimum)),
    "Multiply": alone(lambda _: Joined(operator.mul)),
    "Permute": _permute,
    "RepeatVector": alone(lambda layer: Repeated(layer.integers("n", 1, 1)[0])),
    "Reshape": _reshape,
    "Subtract": alone(lambda _: Joined(operator.sub)),
    "TrueDivide": alone(lambda _: Joined(operator.truediv)),
}
