"""What all layers share; dense layers, embeddings, activations and what does nothing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from inscape.loaders.keras.activations import LAYERS_OF_ONE, activation
from inscape.loaders.keras.config import KerasLayer

Array = NDArray[Any]
Weights = Sequence[Array]
Builder = Callable[[KerasLayer, Weights], nn.Module]


def parameter(array: Array, *axes: int) -> nn.Parameter:
    """Return an array of a file as a parameter, its axes in another order."""
    moved = np.transpose(array, axes) if axes else array
    kind = np.float64 if array.dtype == np.float64 else np.float32
    return nn.Parameter(torch.from_numpy(np.array(moved, dtype=kind, order="C")))


def unpacked(layer: KerasLayer, weights: Weights, *dimensions: int) -> list[Array]:
    """Return the weights of a layer if there are so many, with so many dimensions each."""
    shapes = [array.ndim for array in weights]
    if shapes != list(dimensions):
        listed = ", ".join(map(str, dimensions))
        expected = f"{len(dimensions)} weights of {listed} dimensions"
        layer.refuse(expected, [array.shape for array in weights])
    if any(array.dtype.kind not in "fiu" for array in weights):
        layer.refuse("weights that are numbers", "others")
    return list(weights)


def sized(layer: KerasLayer, array: Array, expected: Sequence[int], role: str) -> None:
    """Refuse an array of another shape than the description says."""
    if tuple(array.shape) != tuple(expected):
        layer.refuse(f"{role} of shape {tuple(expected)}", tuple(array.shape))


def followed(layer: nn.Module, last: nn.Module) -> nn.Module:
    """Return a layer with its activation behind it."""
    return layer if isinstance(last, nn.Identity) else nn.Sequential(layer, last)


def dense(layer: KerasLayer, weights: Weights) -> nn.Module:
    """Return a dense layer; it works on the last axis."""
    biased = layer.flag("use_bias", True)
    kernel, *bias = unpacked(layer, weights, *((2, 1) if biased else (2,)))
    units = layer.integer("units", kernel.shape[1])
    sized(layer, kernel, (kernel.shape[0], units), "a kernel")
    module = nn.Linear(kernel.shape[0], units, bias=biased, device="meta")
    module.weight = parameter(kernel, 1, 0)
    if bias:
        sized(layer, bias[0], (units,), "biases")
        module.bias = parameter(bias[0])
    return followed(module, activation(layer))


class Embedded(nn.Module):
    """An embedding; token ids that arrive as floats are rounded."""

    def __init__(self, table: nn.Parameter) -> None:
        super().__init__()
        self.embedding = nn.Embedding(table.shape[0], table.shape[1], device="meta")
        self.embedding.weight = table

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of some tokens."""
        tokens = x.round().long() if x.is_floating_point() else x
        vectors: Tensor = self.embedding(tokens)
        return vectors


def _embedding(layer: KerasLayer, weights: Weights) -> nn.Module:
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
        output: Tensor = self.layer(x.movedim(self.axis, 1))
        return output.movedim(1, self.axis)


def _prelu(layer: KerasLayer, weights: Weights) -> nn.Module:
    if len(weights) != 1:
        layer.refuse("one weight", len(weights))
    (slope,) = weights
    if slope.size == slope.shape[-1]:
        module = nn.PReLU(slope.size, device="meta")
        module.weight = parameter(slope.reshape(-1))
        return Moved(module)
    return _Sloped(parameter(slope))


class _Sloped(nn.Module):
    """A leaky rectifier with a slope for each number of a sample."""

    def __init__(self, slope: nn.Parameter) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified input."""
        return functional.relu(x) - self.slope * functional.relu(-x)


def alone(build: Callable[[KerasLayer], nn.Module]) -> Builder:
    """Return the builder of a layer that has no weights."""
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
_CALLED: dict[str, Callable[[], nn.Module]] = {
    "Relu": nn.ReLU,
    "Relu6": nn.ReLU6,
    "Sigmoid": nn.Sigmoid,
    "Silu": nn.SiLU,
    "Tanh": nn.Tanh,
}


def _called(constructor: Callable[[], nn.Module]) -> Builder:
    return lambda *_: constructor()


PLAIN: dict[str, Builder] = {
    **{kind: alone(build) for kind, build in LAYERS_OF_ONE.items()},
    **{kind: alone(lambda _: nn.Identity()) for kind in _IDLE},
    **{kind: _called(constructor) for kind, constructor in _CALLED.items()},
    "Dense": dense,
    "Embedding": _embedding,
    "PReLU": _prelu,
}
