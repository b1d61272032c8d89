"""The linear maps of a network's layers, on the feature maps that they really have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import did_you_mean
from inscape.spectra.convolution import CONVOLUTIONS, Convolution

#: Layers with weights of their own that are neither Linear nor a convolution.
OTHERS = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Bilinear,
          nn.MultiheadAttention, nn.RNNBase)  # fmt: skip

Sizes = Mapping[str, Sequence[int]]


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerMap:
    """The linear part of a layer: a matrix, or a convolution on a feature map of its size."""

    name: str
    module: nn.Module
    matrix: Float64[Tensor, "o i"] | None = None
    convolution: Convolution | None = None

    @property
    def size(self) -> tuple[int, ...]:
        """Return the size of the feature map; none for a matrix."""
        return () if self.convolution is None else self.convolution.size

    @property
    def text(self) -> str:
        """Return what kind of map it is, in a few words."""
        if self.convolution is None:
            assert self.matrix is not None
            return f"{self.matrix.shape[1]} to {self.matrix.shape[0]}"
        conv = self.convolution
        words = [f"{conv.weight.shape[1] * conv.groups} to {conv.weight.shape[0]}"]
        words.append("x".join(map(str, conv.kernel)))
        words += [f"stride {max(conv.stride)}"] * (max(conv.stride) > 1)
        words += [f"dilation {max(conv.dilation)}"] * (max(conv.dilation) > 1)
        words += [f"{conv.groups} groups"] * (conv.groups > 1)
        return ", ".join([*words, f"on {'x'.join(map(str, conv.size))}"])


def layer_maps(
    model: nn.Module,
    x: Tensor,
    *,
    layers: Sequence[str] | None = None,
    sizes: Sizes | None = None,
) -> list[LayerMap]:
    """Return the maps of all Linear and convolutional layers, in the order of the modules.

    The size of a feature map is that of the first call in a forward pass on the first sample.
    Convolutions that it does not call (an average of weights beside the network, a head for
    training alone) are left out unless ``layers`` or ``sizes`` names them.

    Args:
        model: A module in eval mode.
        x: Data; the first sample goes through the model.
        layers: Names of the layers that are wanted; all by default.
        sizes: By the name of a layer, the size of its feature map, instead of that.
    """
    named = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | CONVOLUTIONS[0] | CONVOLUTIONS[1] | CONVOLUTIONS[2])
    }
    for name in [*(layers or ()), *(sizes or ())]:
        if name not in named:
            raise ValueError(
                f"a Linear or convolutional layer was expected, found no {name!r} among the "
                f"layers of the model: {did_you_mean(name, list(named), quoted=True)}"
            )
    wanted = {name: m for name, m in named.items() if layers is None or name in layers}
    convolutions = {n: m for n, m in wanted.items() if not isinstance(m, nn.Linear)}
    known = {name: tuple(size) for name, size in (sizes or {}).items()}
    if convolutions.keys() - known.keys():
        known = {**feature_sizes(model, x, convolutions), **known}
    if layers is None:
        wanted = {n: m for n, m in wanted.items() if isinstance(m, nn.Linear) or n in known}
    return [_map(name, module, known) for name, module in wanted.items()]


def left_out(
    model: nn.Module, maps: Sequence[LayerMap], layers: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the names of layers with weights whose spectra are not computed.

    Args:
        model: The network.
        maps: The maps of its layers that are known.
        layers: The layers that were asked for; None if all were.
    """
    known = {layer.name for layer in maps}
    return tuple(
        name
        for name, module in model.named_modules()
        if isinstance(module, OTHERS)
        or (layers is None and isinstance(module, CONVOLUTIONS) and name not in known)
    )


@torch.no_grad()
def feature_sizes(
    model: nn.Module, x: Tensor, convolutions: Mapping[str, nn.Module]
) -> dict[str, tuple[int, ...]]:
    """Return by name the size of the map that reaches each convolution in a forward pass."""
    sizes: dict[str, tuple[int, ...]] = {}
    handles = []
    for name, module in convolutions.items():

        def note(module: nn.Module, inputs: tuple[Tensor, ...], name: str = name) -> None:
            axes = len(module.kernel_size)  # type: ignore[arg-type]
            sizes.setdefault(name, tuple(inputs[0].shape[-axes:]))

        handles.append(module.register_forward_pre_hook(note))
    try:
        checks.call(model, x[:1].clone())
    finally:
        for handle in handles:
            handle.remove()
    return sizes


def _map(name: str, module: nn.Module, sizes: Mapping[str, tuple[int, ...]]) -> LayerMap:
    if isinstance(module, nn.Linear):
        return LayerMap(name=name, module=module, matrix=module.weight.detach().double().cpu())
    axes = len(module.kernel_size)  # type: ignore[arg-type]
    if name not in sizes:
        raise ValueError(
            f"the size of the feature map of {name!r} must be known, but the forward pass did not "
            f"call it: pass sizes={{{name!r}: {(32,) * axes}}} with its size, or leave it out "
            "with layers=[...]."
        )
    size = sizes[name]
    if len(size) != axes or min(size) < 1:
        raise ValueError(
            f"the size of the feature map of {name!r} must be {axes} integers above 0, found "
            f"{size}: pass for example {(32,) * axes}."
        )
    convolution = Convolution.of(module, size)
    if min(convolution.out_size) < 1:
        raise ValueError(
            f"the feature map of {name!r} must be as large as its kernel, found {size} for a "
            f"kernel that reaches over {convolution.extent}: pass larger sizes."
        )
    return LayerMap(name=name, module=module, convolution=convolution)
