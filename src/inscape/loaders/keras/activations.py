"""Activation functions by the names that Keras gives them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from inscape.loaders.keras.config import KerasLayer

Builder = Callable[[], nn.Module]


class Pointwise(nn.Module):
    """A function of each number, as a module with a name."""

    def __init__(self, function: Callable[[Tensor], Tensor], name: str) -> None:
        super().__init__()
        self._function, self._name = function, name

    def forward(self, x: Tensor) -> Tensor:
        """Return the function's values."""
        return self._function(x)

    def extra_repr(self) -> str:
        """Return the name."""
        return self._name


def _hard_sigmoid(x: Tensor) -> Tensor:
    return functional.relu6(x + 3) / 6


def _old_hard_sigmoid(x: Tensor) -> Tensor:
    return torch.clamp(0.2 * x + 0.5, 0.0, 1.0)


def _hard_swish(x: Tensor) -> Tensor:
    return x * functional.relu6(x + 3) / 6


ACTIVATIONS: dict[str, Builder] = {
    "celu": nn.CELU,
    "elu": nn.ELU,
    "exponential": partial(Pointwise, torch.exp, "exp"),
    "gelu": nn.GELU,
    "hard_shrink": nn.Hardshrink,
    "hard_sigmoid": partial(Pointwise, _hard_sigmoid, "hard_sigmoid"),
    "hard_silu": partial(Pointwise, _hard_swish, "hard_silu"),
    "hard_swish": partial(Pointwise, _hard_swish, "hard_swish"),
    "hard_tanh": nn.Hardtanh,
    "leaky_relu": partial(nn.LeakyReLU, 0.2),
    "linear": nn.Identity,
    "log_sigmoid": nn.LogSigmoid,
    "log_softmax": partial(nn.LogSoftmax, dim=-1),
    "mish": nn.Mish,
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "selu": nn.SELU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "soft_shrink": nn.Softshrink,
    "softmax": partial(nn.Softmax, dim=-1),
    "softplus": nn.Softplus,
    "softsign": nn.Softsign,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
    "tanh_shrink": nn.Tanhshrink,
}


def activation(layer: KerasLayer, key: str = "activation", default: str = "linear") -> nn.Module:
    """Return the activation that a setting names, by a word or as a layer of its own."""
    setting: Any = layer.settings.get(key, default)
    setting = default if setting is None else setting
    if isinstance(setting, Mapping) and setting.get("class_name") == "function":
        setting = setting["config"]
    if isinstance(setting, Mapping):
        inner = KerasLayer(
            kind=setting["class_name"], name=layer.name, settings=setting["config"] or {}
        )
        if inner.kind in LAYERS_OF_ONE:
            return LAYERS_OF_ONE[inner.kind](inner)
        setting = inner.kind
    if setting == "hard_sigmoid" and layer.settings.get("keras_2"):
        return Pointwise(_old_hard_sigmoid, "hard_sigmoid of Keras 2")
    if setting not in ACTIVATIONS:
        layer.refuse(f"a known {key}", setting)
    return ACTIVATIONS[setting]()


class RectifiedLinear(nn.Module):
    """Keras' ReLU: 0 or a slope below a threshold, cut off at a largest value."""

    def __init__(self, slope: float, threshold: float, largest: float | None) -> None:
        super().__init__()
        self.slope, self.threshold, self.largest = slope, threshold, largest

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified input."""
        above = torch.where(x >= self.threshold, x, self.slope * (x - self.threshold))
        return above if self.largest is None else torch.clamp(above, max=self.largest)


def _relu(layer: KerasLayer) -> nn.Module:
    slope = layer.number("negative_slope", 0.0)
    threshold = layer.number("threshold", 0.0)
    largest = None if layer.settings.get("max_value") is None else layer.number("max_value", 0.0)
    if threshold == 0.0 and largest is None:
        return nn.LeakyReLU(slope) if slope else nn.ReLU()
    if threshold == slope == 0.0 and largest is not None and largest > 0:
        return nn.ReLU6() if largest == 6.0 else nn.Hardtanh(0.0, largest)
    return RectifiedLinear(slope, threshold, largest)


def _softmax(layer: KerasLayer) -> nn.Module:
    return nn.Softmax(dim=layer.integer("axis", -1))


def _leaky(layer: KerasLayer) -> nn.Module:
    key = "negative_slope" if "negative_slope" in layer.settings else "alpha"
    return nn.LeakyReLU(layer.number(key, 0.3))


#: Layers without weights that are activations.
LAYERS_OF_ONE: dict[str, Callable[[KerasLayer], nn.Module]] = {
    "Activation": activation,
    "ELU": lambda layer: nn.ELU(layer.number("alpha", 1.0)),
    "LeakyReLU": _leaky,
    "ReLU": _relu,
    "Softmax": _softmax,
}
