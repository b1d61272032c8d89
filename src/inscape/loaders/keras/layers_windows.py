"""Layers that slide a window over one, two or three axes: convolutions, pooling, padding."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from inscape.loaders.keras.activations import activation
from inscape.loaders.keras.config import KerasLayer
from inscape.loaders.keras.layers_dense import (
    Builder,
    Moved,
    Weights,
    followed,
    parameter,
    sized,
    unpacked,
)

#: The largest stride; oneDNN crashes from 7,000 on.
_STRIDE = 512


def _dims(layer: KerasLayer) -> int:
    """Return over how many axes a layer works, by its name: Conv2D, GlobalMaxPooling1D."""
    digits = [int(c) for c in layer.kind if c in "123"]
    return digits[-1]


def _placed(layer: KerasLayer, module: nn.Module) -> nn.Module:
    """Return a layer for channels where Keras has them: last, unless the file says otherwise."""
    layer.only("data_format", None, "channels_last", "channels_first")
    return module if layer.settings.get("data_format") == "channels_first" else Moved(module)


class Padded(nn.Module):
    """A layer behind its padding, where Keras pads more on the right than on the left."""

    def __init__(self, layer: nn.Module, window: "KerasWindow", *, fill: float = 0.0) -> None:
        super().__init__()
        self.layer, self._window, self._fill = layer, window, fill

    def forward(self, x: Tensor) -> Tensor:
        """Return what the layer makes of the padded input."""
        pads = self._window.pads(list(x.shape[2:]))
        output: Tensor = self.layer(functional.pad(x, pads, value=self._fill) if any(pads) else x)
        return output


class KerasWindow:
    """Kernel, strides, dilations and padding of a window, as checked."""

    def __init__(self, layer: KerasLayer, kernel: list[int], strides: Any = 1) -> None:
        dims = _dims(layer)
        self.kernel, self.how = kernel, layer.text("padding", "valid").lower()
        default = layer.settings.get("strides")
        self.strides = kernel if default is None and strides is None else self._positive(
            layer, "strides", dims
        )  # fmt: skip
        self.dilations = self._positive(layer, "dilation_rate", dims)
        if min(kernel, default=0) < 1 or max(self.strides) > _STRIDE:
            layer.refuse(f"windows from 1 on and strides up to {_STRIDE}", [kernel, self.strides])
        if self.how not in ("valid", "same", "causal"):
            layer.refuse("padding 'valid', 'same' or 'causal'", self.how)

    @staticmethod
    def _positive(layer: KerasLayer, key: str, dims: int) -> list[int]:
        values = layer.integers(key, dims, 1)
        return values if min(values) > 0 else layer.refuse(f"{key} from 1 on", values)

    def pads(self, sizes: list[int]) -> list[int]:
        """Return the pads of an input as ``functional.pad`` wants them."""
        zipped = list(zip(sizes, self.kernel, self.strides, self.dilations, strict=True))[::-1]
        pads: list[int] = []
        for n, k, s, d in zipped:
            reach = (k - 1) * d
            total = max((-(-n // s) - 1) * s + reach + 1 - n, 0)
            ends = {"valid": (0, 0), "causal": (reach, 0)}
            pads += ends.get(self.how, (total // 2, total - total // 2))
        return pads

    def even(self) -> list[int] | None:
        """Return the same pads for both sides and every input, if such ones do."""
        reaches = [(k - 1) * d for k, d in zip(self.kernel, self.dilations, strict=True)]
        if self.how == "valid" or not any(reaches):
            return [0] * len(reaches)
        symmetric = self.how == "same" and all(s == 1 for s in self.strides)
        return [r // 2 for r in reaches] if symmetric and not any(r % 2 for r in reaches) else None


def _convolution(window: KerasWindow, weight: nn.Parameter, bias: Any, groups: int) -> nn.Module:
    """Return a convolution; torch pads it where it can."""
    dims, even = len(window.kernel), window.even()
    module = getattr(nn, f"Conv{dims}d")(
        weight.shape[1] * groups, weight.shape[0], window.kernel, window.strides,
        padding=even or 0, dilation=window.dilations, groups=groups, bias=bias is not None,
        device="meta",
    )  # fmt: skip
    module.weight = weight
    if bias is not None:
        module.bias = parameter(bias)
    return module if even is not None else Padded(module, window)


def _conv(layer: KerasLayer, weights: Weights) -> nn.Module:
    dims, biased = _dims(layer), layer.flag("use_bias", True)
    kernel, *bias = unpacked(layer, weights, *((dims + 2, 1) if biased else (dims + 2,)))
    groups = layer.integer("groups", 1)
    filters = layer.integer("filters", kernel.shape[-1])
    sizes = layer.integers("kernel_size", dims, 1)
    sized(layer, kernel, (*sizes, kernel.shape[-2], filters), "a kernel")
    if bias:
        sized(layer, bias[0], (filters,), "biases")
    if groups < 1 or filters % groups:
        layer.refuse("a number of groups that divides the filters", groups)
    weight = parameter(kernel, dims + 1, dims, *range(dims))
    module = _convolution(KerasWindow(layer, sizes), weight, bias[0] if bias else None, groups)
    return followed(_placed(layer, module), activation(layer))


def _depthwise(layer: KerasLayer, weights: Weights) -> nn.Module:
    dims, biased = _dims(layer), layer.flag("use_bias", True)
    kernel, *bias = unpacked(layer, weights, *((dims + 2, 1) if biased else (dims + 2,)))
    module = _by_channel(layer, kernel, bias[0] if bias else None)
    return followed(_placed(layer, module), activation(layer))


def _by_channel(layer: KerasLayer, kernel: Any, bias: Any) -> nn.Module:
    """Return a convolution of each channel by itself."""
    dims = _dims(layer)
    sizes = layer.integers("kernel_size", dims, 1)
    channels, times = kernel.shape[-2:]
    sized(layer, kernel, (*sizes, channels, layer.integer("depth_multiplier", 1)), "a kernel")
    moved = np.transpose(kernel, (dims, dims + 1, *range(dims)))
    weight = parameter(moved.reshape(channels * times, 1, *sizes))
    if bias is not None:
        sized(layer, bias, (channels * times,), "biases")
    return _convolution(KerasWindow(layer, sizes), weight, bias, channels)


def _separable(layer: KerasLayer, weights: Weights) -> nn.Module:
    dims, biased = _dims(layer), layer.flag("use_bias", True)
    shapes = (dims + 2, dims + 2, 1) if biased else (dims + 2, dims + 2)
    kernel, points, *bias = unpacked(layer, weights, *shapes)
    inside = kernel.shape[-1] * kernel.shape[-2]
    filters = layer.integer("filters", points.shape[-1])
    sized(layer, points, (*[1] * dims, inside, filters), "a pointwise kernel")
    unit_steps = KerasLayer(kind=layer.kind, name=layer.name, settings={})
    weight = parameter(points, dims + 1, dims, *range(dims))
    last = _convolution(KerasWindow(unit_steps, [1] * dims), weight, bias[0] if bias else None, 1)
    both = nn.Sequential(_by_channel(layer, kernel, None), last)
    return followed(_placed(layer, both), activation(layer))


class Transposed(nn.Module):
    """A transposed convolution, cut to the size that Keras gives it."""

    def __init__(
        self, window: KerasWindow, weight: nn.Parameter, bias: nn.Parameter | None
    ) -> None:
        super().__init__()
        self.weight, self.bias, self._window = weight, bias, window

    def forward(self, x: Tensor) -> Tensor:
        """Return the widened input."""
        window = self._window
        convolve = getattr(functional, f"conv_transpose{x.ndim - 2}d")
        output: Tensor = convolve(x, self.weight, None, window.strides, dilation=window.dilations)
        pads: list[int] = []
        for k, s, d in zip(window.kernel, window.strides, window.dilations, strict=True):
            total = (k - 1) * d + 1 - s  # by how much the whole is longer than n * stride
            before = max(total, 0) // 2 if window.how == "same" else 0
            pads = [-before, before - total if window.how == "same" else max(-total, 0), *pads]
        output = functional.pad(output, pads) if any(pads) else output
        if self.bias is None:
            return output
        return output + self.bias.reshape(-1, *[1] * (x.ndim - 2))


def _transposed(layer: KerasLayer, weights: Weights) -> nn.Module:
    layer.only("output_padding", None)
    dims, biased = _dims(layer), layer.flag("use_bias", True)
    kernel, *bias = unpacked(layer, weights, *((dims + 2, 1) if biased else (dims + 2,)))
    sizes = layer.integers("kernel_size", dims, 1)
    filters = layer.integer("filters", kernel.shape[-2])
    sized(layer, kernel, (*sizes, filters, kernel.shape[-1]), "a kernel")
    weight = parameter(kernel, dims + 1, dims, *range(dims))
    module = Transposed(KerasWindow(layer, sizes), weight, parameter(bias[0]) if bias else None)
    return followed(_placed(layer, module), activation(layer))


class Averaged(nn.Module):
    """Means over windows; what pads the input does not count."""

    def __init__(self, window: KerasWindow) -> None:
        super().__init__()
        self._window = window

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        window = self._window
        pool = getattr(functional, f"avg_pool{x.ndim - 2}d")
        pads = window.pads(list(x.shape[2:]))
        output: Tensor = pool(functional.pad(x, pads), window.kernel, window.strides)
        if not any(pads):
            return output
        ones = functional.pad(torch.ones_like(x[:1, :1]), pads)
        covered: Tensor = pool(ones, window.kernel, window.strides)
        return output / covered


def _pool(layer: KerasLayer, _: Weights) -> nn.Module:
    dims = _dims(layer)
    window = KerasWindow(layer, layer.integers("pool_size", dims, 2), None)
    if not layer.kind.startswith("Max"):
        return _placed(layer, Averaged(window))
    module = getattr(nn, f"MaxPool{dims}d")(window.kernel, window.strides)
    low = Padded(module, window, fill=float("-inf"))
    return _placed(layer, module if window.how == "valid" else low)


class Everywhere(nn.Module):
    """The mean or the largest of each channel."""

    def __init__(self, largest: bool, keep: bool) -> None:
        super().__init__()
        self._largest, self._keep = largest, keep

    def forward(self, x: Tensor) -> Tensor:
        """Return one number for each channel."""
        axes = list(range(2, x.ndim))
        output = x.flatten(2).amax(2) if self._largest else x.flatten(2).mean(2)
        return output.reshape(*output.shape, *[1] * len(axes)) if self._keep else output


def _global(layer: KerasLayer, _: Weights) -> nn.Module:
    keep = layer.flag("keepdims", False)
    module = Everywhere("Max" in layer.kind, keep)
    first = layer.settings.get("data_format") == "channels_first"
    if keep or first:
        return _placed(layer, module)
    return nn.Sequential(_ToFront(), module)


class _ToFront(nn.Module):
    """Channels first."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the same numbers."""
        return x.movedim(-1, 1)


class Framed(nn.Module):
    """An input with zeros around it, or cut (negative)."""

    def __init__(self, pads: list[int]) -> None:
        super().__init__()
        self.pads = pads

    def forward(self, x: Tensor) -> Tensor:
        """Return the padded or cut input."""
        return functional.pad(x, self.pads)


def _frame(layer: KerasLayer, _: Weights) -> nn.Module:
    dims, cuts = _dims(layer), layer.kind.startswith("Cropping")
    key = "cropping" if cuts else "padding"
    setting = layer.settings.get(key, 1)
    pairs = (
        [[n, n] if type(n) is int else n for n in setting] if isinstance(setting, list) else None
    )
    if dims == 1 and isinstance(setting, list):
        pairs = [setting]
    checked = KerasLayer(kind=layer.kind, name=layer.name, settings={key: setting if pairs is None
                                                                else pairs})  # fmt: skip
    values = checked.integers(key, 2 * dims, 1)
    sign = -1 if cuts else 1
    pads = [sign * v for pair in range(dims)[::-1] for v in values[2 * pair : 2 * pair + 2]]
    return _placed(layer, Framed(pads))


def _upsampling(layer: KerasLayer, _: Weights) -> nn.Module:
    dims = _dims(layer)
    scale = [float(n) for n in layer.integers("size", dims, 2, 4096)]
    how = layer.text("interpolation", "nearest")
    if how not in ("nearest", "bilinear") or (how == "bilinear" and dims != 2):
        layer.refuse("interpolation 'nearest' or 'bilinear'", how)
    return _placed(layer, nn.Upsample(scale_factor=tuple(scale), mode=how))


def _named(pattern: str, builder: Builder, dims: str = "123") -> dict[str, Builder]:
    return {pattern.format(n): builder for n in dims}


WINDOWS: dict[str, Builder] = {
    **_named("Conv{}D", _conv),
    **_named("Convolution{}D", _conv),
    **_named("Conv{}DTranspose", _transposed),
    **_named("DepthwiseConv{}D", _depthwise, "12"),
    **_named("SeparableConv{}D", _separable, "12"),
    **_named("MaxPooling{}D", _pool),
    **_named("AveragePooling{}D", _pool),
    **_named("GlobalMaxPooling{}D", _global),
    **_named("GlobalAveragePooling{}D", _global),
    **_named("ZeroPadding{}D", _frame),
    **_named("Cropping{}D", _frame),
    **_named("UpSampling{}D", _upsampling),
}
