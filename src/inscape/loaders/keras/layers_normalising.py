"""Layers that normalise or rescale."""

import numpy as np
import torch
from torch import Tensor, nn

from inscape.loaders.keras.config import KerasLayer
from inscape.loaders.keras.layers_dense import (
    Array,
    Builder,
    Moved,
    Weights,
    parameter,
    sized,
    unpacked,
)


def _batch_norm(layer: KerasLayer, weights: Weights) -> nn.Module:
    parts = (layer.flag("scale", True), layer.flag("center", True), True, True)
    arrays = unpacked(layer, weights, *[1] * sum(parts))
    gamma, beta, mean, variance = (arrays.pop(0) if present else None for present in parts)
    assert mean is not None
    assert variance is not None
    module = _Normalised(len(mean), eps=layer.number("epsilon", 1e-3), affine=False)
    for name, array in (("weight", gamma), ("bias", beta)):
        if array is not None:
            sized(layer, array, mean.shape, f"its {name}")
            setattr(module, name, parameter(array))
    sized(layer, variance, mean.shape, "variances")
    module.running_mean, module.running_var = (parameter(a).detach() for a in (mean, variance))
    return Moved(module, one_axis(layer))


class _Normalised(nn.BatchNorm2d):
    """Batch normalisation over any number of axes."""

    def _check_input_dim(self, input: Tensor) -> None:
        pass


def one_axis(layer: KerasLayer) -> int:
    """Return the one axis that a layer works on."""
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
        normalised = centred * torch.rsqrt(
            centred.square().mean(self.axes, keepdim=True) + self.epsilon
        )
        normalised = normalised if self.weight is None else normalised * self.weight
        return normalised if self.bias is None else normalised + self.bias


def _layer_norm(layer: KerasLayer, weights: Weights) -> nn.Module:
    setting = layer.settings.get("axis", -1)
    axes = setting if isinstance(setting, list) else [setting]
    if not all(type(axis) is int and axis != 0 for axis in axes):
        layer.refuse("axes other than that of samples", setting)
    rms = bool(layer.settings.get("rms_scaling") or layer.kind == "RMSNormalization")
    module = LayerNorm(axes, layer.number("epsilon", 1e-3), rms)
    keys = ["weight"] * layer.flag("scale", True)
    keys += ["bias"] * (layer.flag("center", True) and layer.kind != "RMSNormalization")
    if len(weights) != len(keys) or (len(axes) > 1 and sorted(axes) != axes):
        layer.refuse(f"{len(keys)} weights", len(weights))
    for key, array in zip(keys, weights, strict=True):
        setattr(module, key, parameter(array))
    return module


def _group_norm(layer: KerasLayer, weights: Weights) -> nn.Module:
    parts = [layer.flag("scale", True), layer.flag("center", True)]
    arrays = unpacked(layer, weights, *[1] * sum(parts))
    if not arrays:
        layer.refuse("scale or center", "neither")
    channels = len(arrays[0])
    groups = layer.integer("groups", 32)
    module = nn.GroupNorm(channels if groups == -1 else groups, channels, affine=False,
                        eps=layer.number("epsilon", 1e-3))  # fmt: skip
    for name, present in zip(("weight", "bias"), parts, strict=True):
        if present:
            setattr(module, name, parameter(arrays.pop(0)))
    return Moved(module, one_axis(layer))


class ScaleAndOffset(nn.Module):
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


def _rescaling(layer: KerasLayer, _: Weights) -> nn.Module:
    values = [layer.settings.get(key, n) for key, n in (("scale", 1.0), ("offset", 0.0))]
    arrays = [np.asarray(value if isinstance(value, list) else [value]) for value in values]
    if any(a.dtype.kind not in "fiu" or a.ndim != 1 for a in arrays):
        layer.refuse("numbers as scale and offset", values)
    return ScaleAndOffset(*arrays)


def _normalization(layer: KerasLayer, weights: Weights) -> nn.Module:
    if layer.settings.get("invert"):
        layer.refuse("invert false", True)
    statistics = [layer.settings.get(key) for key in ("mean", "variance")]
    arrays = (
        list(weights[:2])
        if statistics[0] is None
        else [np.asarray(v, np.float64) for v in statistics]
    )
    if len(arrays) < 2:
        layer.refuse("means and variances", "none")
    deviation = np.maximum(np.sqrt(np.asarray(arrays[1], np.float64)), 1e-7)
    if deviation.ndim > 1 and layer.settings.get("axis") not in (-1, [-1]):
        layer.refuse("means over all axes but the last", arrays[0].shape)
    return ScaleAndOffset(1 / deviation, -np.asarray(arrays[0], np.float64) / deviation)


NORMALISING: dict[str, Builder] = {
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "LayerNormalization": _layer_norm,
    "Normalization": _normalization,
    "RMSNormalization": _layer_norm,
    "Rescaling": _rescaling,
}
