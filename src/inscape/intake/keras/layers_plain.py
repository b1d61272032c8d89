"""Layers of any number of axes: dense, normalising, joining, reshaping."""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from inscape.intake.keras.activations import LAYERS_OF_ONE, activation
from inscape.intake.keras.config import Layer

Array = NDArray[Any]
Weights = Sequence[Array]
Builder = Callable[[Layer, Weights], nn.Module]


def parameter(array: Array, *axes: int) -> nn.Parameter:
    """Return an array of a file as a parameter, its axes in another order."""
    moved = np.transpose(array, axes) if axes else array
    kind = np.float64 if array.dtype == np.float64 else np.float32
    return nn.Parameter(torch.from_numpy(np.array(moved, dtype=kind, order="C")))


def unpacked(layer: Layer, weights: Weights, *dimensions: int) -> list[Array]:
    """Return the weights of a layer if there are so many, with so many dimensions each."""
    shapes = [array.ndim for array in weights]
    if shapes != list(dimensions):
        listed = ", ".join(map(str, dimensions))
        expected = f"{len(dimensions)} weights of {listed} dimensions"
        layer.refuse(expected, [array.shape for array in weights])
    if any(array.dtype.kind not in "fiu" for array in weights):
        layer.refuse("weights that are numbers", "others")
    return list(weights)


def sized(layer: Layer, array: Array, expected: Sequence[int], what: str) -> None:
    """Refuse an array of another shape than the description says."""
    if tuple(array.shape) != tuple(expected):
        layer.refuse(f"{what} of shape {tuple(expected)}", tuple(array.shape))


def followed(layer: nn.Module, last: nn.Module) -> nn.Module:
    """Return a layer with its activation behind it."""
    return layer if isinstance(last, nn.Identity) else nn.Sequential(layer, last)


def dense(layer: Layer, weights: Weights) -> nn.Module:
    """Return a dense layer; it works on the last axis."""
    biased = layer.flag("use_bias", True)
    kernel, *bias = unpacked(layer, weights, *((2, 1) if biased else (2,)))
    units = layer.integer("units", kernel.shape[1])
    sized(layer, kernel, (kernel.shape[0], units), "a kernel")
    made = nn.Linear(kernel.shape[0], units, bias=biased, device="meta")
    made.weight = parameter(kernel, 1, 0)
    if bias:
        sized(layer, bias[0], (units,), "biases")
        made.bias = parameter(bias[0])
    return followed(made, activation(layer))


class Embedded(nn.Module):
    """An embedding; token ids that arrive as floats are rounded."""

    def __init__(self, table: nn.Parameter) -> None:
        super().__init__()
        self.embedding = nn.Embedding(*table.shape, device="meta")
        self.embedding.weight = table

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of some tokens."""
        tokens = x.round().long() if x.is_floating_point() else x
        found: Tensor = self.embedding(tokens)
        return found


def _embedding(layer: Layer, weights: Weights) -> nn.Module:
    if layer.settings.get("mask_zero"):
        layer.refuse("mask_zero false", True)
    (table,) = unpacked(layer, weights, 2)
    sizes = [layer.integer(key, n) for key, n in zip(("input_dim", "output_dim"), table.shape,
                                                     strict=True)]  # fmt: skip
    sized(layer, table, sizes, "a table")
    return Embedded(parameter(table))


class Moved(nn.Module):
    """A layer with its channels first, where Keras has them on another axis."""

    def __init__(self, layer: nn.Module, axis: int = -1) -> None:
        super().__init__()
        self.layer, self.axis = layer, axis

    def forward(self, x: Tensor) -> Tensor:
        """Return what the layer makes, the channels where they were."""
        made: Tensor = self.layer(x.movedim(self.axis, 1))
        return made.movedim(1, self.axis)


def _batch_norm(layer: Layer, weights: Weights) -> nn.Module:
    parts = (layer.flag("scale", True), layer.flag("center", True), True, True)
    arrays = unpacked(layer, weights, *[1] * sum(parts))
    gamma, beta, mean, variance = (arrays.pop(0) if there else None for there in parts)
    assert mean is not None
    assert variance is not None
    made = _Normalised(len(mean), eps=layer.number("epsilon", 1e-3), affine=False)
    for name, array in (("weight", gamma), ("bias", beta)):
        if array is not None:
            sized(layer, array, mean.shape, f"its {name}")
            setattr(made, name, parameter(array))
    sized(layer, variance, mean.shape, "variances")
    made.running_mean, made.running_var = (parameter(a).detach() for a in (mean, variance))
    return Moved(made, _axis(layer))


class _Normalised(nn.BatchNorm2d):
    """Batch normalisation over any number of axes."""

    def _check_input_dim(self, input: Tensor) -> None:
        pass


def _axis(layer: Layer) -> int:
    axis = layer.settings.get("axis", -1)
    axis = axis[0] if isinstance(axis, list) and len(axis) == 1 else axis
    if type(axis) is not int or axis == 0 or not -5 <= axis <= 5:
        layer.refuse("one axis other than that of samples", axis)
    return int(axis)


class LayerNorm(nn.Module):
    """Keras' layer normalisation over some axes, with or without the mean."""

    def __init__(self, axes: list[int], epsilon: float, rms: bool) -> None:
        super().__init__()
        self.axes, self.epsilon, self.rms = axes, epsilon, rms
        self.weight: nn.Parameter | None = None
        self.bias: nn.Parameter | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised input."""
        centred = x if self.rms else x - x.mean(self.axes, keepdim=True)
        made = centred * torch.rsqrt(centred.square().mean(self.axes, keepdim=True) + self.epsilon)
        made = made if self.weight is None else made * self.weight
        return made if self.bias is None else made + self.bias


def _layer_norm(layer: Layer, weights: Weights) -> nn.Module:
    found = layer.settings.get("axis", -1)
    axes = found if isinstance(found, list) else [found]
    if not all(type(axis) is int and axis != 0 for axis in axes):
        layer.refuse("axes other than that of samples", found)
    rms = bool(layer.settings.get("rms_scaling") or layer.kind == "RMSNormalization")
    made = LayerNorm(axes, layer.number("epsilon", 1e-3), rms)
    keys = ["weight"] * layer.flag("scale", True)
    keys += ["bias"] * (layer.flag("center", True) and layer.kind != "RMSNormalization")
    if len(weights) != len(keys) or (len(axes) > 1 and sorted(axes) != axes):
        layer.refuse(f"{len(keys)} weights", len(weights))
    for key, array in zip(keys, weights, strict=True):
        setattr(made, key, parameter(array))
    return made


def _group_norm(layer: Layer, weights: Weights) -> nn.Module:
    parts = [layer.flag("scale", True), layer.flag("center", True)]
    arrays = unpacked(layer, weights, *[1] * sum(parts))
    if not arrays:
        layer.refuse("scale or center", "neither")
    channels = len(arrays[0])
    groups = layer.integer("groups", 32)
    made = nn.GroupNorm(channels if groups == -1 else groups, channels, affine=False,
                        eps=layer.number("epsilon", 1e-3))  # fmt: skip
    for name, there in zip(("weight", "bias"), parts, strict=True):
        if there:
            setattr(made, name, parameter(arrays.pop(0)))
    return Moved(made, _axis(layer))


class Affine(nn.Module):
    """A fixed affine map of each number: ``x * scale + offset``."""

    scale: Tensor
    offset: Tensor

    def __init__(self, scale: Array, offset: Array) -> None:
        super().__init__()
        self.register_buffer("scale", torch.from_numpy(np.array(scale, np.float32)))
        self.register_buffer("offset", torch.from_numpy(np.array(offset, np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the mapped numbers."""
        return x * self.scale + self.offset


def _rescaling(layer: Layer, _: Weights) -> nn.Module:
    values = [layer.settings.get(key, n) for key, n in (("scale", 1.0), ("offset", 0.0))]
    arrays = [np.asarray(value if isinstance(value, list) else [value]) for value in values]
    if any(a.dtype.kind not in "fiu" or a.ndim != 1 for a in arrays):
        layer.refuse("numbers as scale and offset", values)
    return Affine(*arrays)


def _normalization(layer: Layer, weights: Weights) -> nn.Module:
    if layer.settings.get("invert"):
        layer.refuse("invert false", True)
    given = [layer.settings.get(key) for key in ("mean", "variance")]
    arrays = list(weights[:2]) if given[0] is None else [np.asarray(v, np.float64) for v in given]
    if len(arrays) < 2:
        layer.refuse("means and variances", "none")
    deviation = np.maximum(np.sqrt(np.asarray(arrays[1], np.float64)), 1e-7)
    if deviation.ndim > 1 and layer.settings.get("axis") not in (-1, [-1]):
        layer.refuse("means over all axes but the last", arrays[0].shape)
    return Affine(1 / deviation, -np.asarray(arrays[0], np.float64) / deviation)


class Joined(nn.Module):
    """Several inputs of one shape made into one; of two arguments, one may be a number."""

    def __init__(self, join: Callable[[Any, Any], Any], mean: bool = False) -> None:
        super().__init__()
        self._join, self._mean = join, mean

    def forward(self, *given: Any) -> Tensor:
        """Return the sum, product or whatever it is."""
        inputs = given[0] if len(given) == 1 else given
        made: Tensor = reduce(self._join, inputs)
        return made / len(inputs) if self._mean else made


class Concatenated(nn.Module):
    """Several inputs, one behind the other."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, inputs: list[Tensor]) -> Tensor:
        """Return them as one."""
        return torch.cat(inputs, dim=self.axis)


class Shaped(nn.Module):
    """Rows of another shape."""

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        """Return the same numbers."""
        return x.reshape(x.shape[0], *self.shape)


class Flat(nn.Module):
    """Rows without a shape; channels are last."""

    def __init__(self, channels_first: bool) -> None:
        super().__init__()
        self._first = channels_first

    def forward(self, x: Tensor) -> Tensor:
        """Return the same numbers."""
        moved = x.movedim(1, -1) if self._first and x.ndim > 2 else x
        return moved.flatten(1) if moved.ndim > 1 else moved[:, None]


class Permuted(nn.Module):
    """The axes of a row in another order."""

    def __init__(self, axes: list[int]) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        """Return the same numbers."""
        return x.permute(0, *self.axes)


class Repeated(nn.Module):
    """Each row, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows with one axis more."""
        return x[:, None].expand(-1, self.times, -1)


def _reshape(layer: Layer, _: Weights) -> nn.Module:
    shape = layer.settings.get("target_shape")
    if not isinstance(shape, list) or not all(type(n) is int and n >= -1 for n in shape):
        layer.refuse("sizes as target_shape", shape)
    return Shaped(list(shape))


def _permute(layer: Layer, _: Weights) -> nn.Module:
    axes = layer.settings.get("dims")
    if not isinstance(axes, list) or sorted(map(str, axes)) != [
        str(n + 1) for n in range(len(axes))
    ]:
        layer.refuse("each axis once as dims", axes)
    return Permuted([int(axis) for axis in axes])


def _prelu(layer: Layer, weights: Weights) -> nn.Module:
    if len(weights) != 1:
        layer.refuse("one weight", len(weights))
    (slope,) = weights
    if slope.size == slope.shape[-1]:
        made = nn.PReLU(slope.size, device="meta")
        made.weight = parameter(slope.reshape(-1))
        return Moved(made)
    return _Sloped(parameter(slope))


class _Sloped(nn.Module):
    """A leaky rectifier with a slope for each number of a row."""

    def __init__(self, slope: nn.Parameter) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified input."""
        return functional.relu(x) - self.slope * functional.relu(-x)


def _alone(build: Callable[[Layer], nn.Module]) -> Builder:
    return lambda layer, _: build(layer)


#: What does nothing when a model predicts.
_IDLE = (
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "AlphaDropout",
    "ActivityRegularization",
    "InputLayer",
)

#: Operators that a functional model calls without a layer: keras.ops.relu(x).
_CALLED = {
    "Relu": nn.ReLU,
    "Relu6": nn.ReLU6,
    "Sigmoid": nn.Sigmoid,
    "Silu": nn.SiLU,
    "Tanh": nn.Tanh,
}

PLAIN: dict[str, Builder] = {
    **{kind: _alone(lambda _, made=made: made()) for kind, made in _CALLED.items()},
    **{kind: _alone(build) for kind, build in LAYERS_OF_ONE.items()},
    **{kind: _alone(lambda _: nn.Identity()) for kind in _IDLE},
    "Add": _alone(lambda _: Joined(operator.add)),
    "Average": _alone(lambda _: Joined(operator.add, mean=True)),
    "BatchNormalization": _batch_norm,
    "Concatenate": _alone(lambda layer: Concatenated(_axis(layer))),
    "Dense": dense,
    "Divide": _alone(lambda _: Joined(operator.truediv)),
    "Embedding": _embedding,
    "Flatten": _alone(lambda layer: Flat(layer.settings.get("data_format") == "channels_first")),
    "GroupNormalization": _group_norm,
    "LayerNormalization": _layer_norm,
    "Maximum": _alone(lambda _: Joined(torch.maximum)),
    "Minimum": _alone(lambda _: Joined(torch.minimum)),
    "Multiply": _alone(lambda _: Joined(operator.mul)),
    "Normalization": _normalization,
    "PReLU": _prelu,
    "Permute": _permute,
    "RMSNormalization": _layer_norm,
    "RepeatVector": _alone(lambda layer: Repeated(layer.integers("n", 1, 1)[0])),
    "Rescaling": _rescaling,
    "Reshape": _reshape,
    "TrueDivide": _alone(lambda _: Joined(operator.truediv)),
    "Subtract": _alone(lambda _: Joined(operator.sub)),
}
