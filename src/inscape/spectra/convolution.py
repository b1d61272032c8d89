"""A convolution as the linear operator that it is: its kernel, and the size of its feature map."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.nn import functional

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_APPLY = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}


@dataclass(frozen=True, eq=False, kw_only=True)
class Convolution:
    """The linear part of a convolution, from feature maps of one size, in double precision.

    Attributes:
        weight: Kernel: outputs, inputs of a group, then one axis for each dimension of the map.
        size: Size of the feature map that it is applied to, without channels.
        stride: Step of the output in each dimension.
        dilation: Distance of two taps in each dimension.
        padding: In each dimension, what is added before and after.
        groups: Blocks of channels that do not mix.
        mode: What the padding holds: ``"zeros"``, ``"circular"``, ``"reflect"``, ``"replicate"``.
    """

    weight: Float64[Tensor, "o i *k"]
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    mode: str = "zeros"

    @classmethod
    def of(cls, layer: nn.Module, size: tuple[int, ...]) -> "Convolution":
        """Return the operator of a Conv1d, Conv2d or Conv3d on feature maps of that size."""
        conv = cast("Any", layer)
        after_before: list[int] = list(conv._reversed_padding_repeated_twice)
        pairs = list(zip(after_before[::2], after_before[1::2], strict=True))[::-1]
        return cls(
            weight=conv.weight.detach().double().cpu(),
            size=tuple(size),
            stride=tuple(conv.stride),
            dilation=tuple(conv.dilation),
            padding=tuple(pairs),
            groups=conv.groups,
            mode=conv.padding_mode,
        )

    @property
    def kernel(self) -> tuple[int, ...]:
        """Return the size of the kernel."""
        return tuple(self.weight.shape[2:])

    @property
    def extent(self) -> tuple[int, ...]:
        """Return how far the kernel reaches in each dimension, with its dilation."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def out_size(self) -> tuple[int, ...]:
        """Return the size of the feature map that it gives."""
        parts = zip(self.size, self.padding, self.extent, self.stride, strict=True)
        return tuple((n + sum(pad) - reach) // s + 1 for n, pad, reach, s in parts)

    @property
    def inputs(self) -> int:
        """Return how many numbers it is applied to."""
        return self.weight.shape[1] * self.groups * math.prod(self.size)

    @property
    def outputs(self) -> int:
        """Return how many numbers it gives."""
        return self.weight.shape[0] * math.prod(self.out_size)

    @property
    def wraps(self) -> bool:
        """Tell whether it is shift-invariant on a torus: the Fourier transform makes it blocks."""
        strides = zip(self.size, self.out_size, self.stride, strict=True)
        return self.mode == "circular" and all(n == m * s for n, m, s in strides)

    def on_torus(self, *, stride: bool = True) -> "Convolution":
        """Return the same kernel with circular padding, an output for each ``stride`` pixels.

        Without ``stride`` there is one for each pixel (as Sedghi et al. treat every layer).
        """
        steps = self.stride if stride else (1,) * len(self.stride)
        pads = tuple((0, reach - 1) for reach in self.extent)
        return replace(self, stride=steps, padding=pads, mode="circular")

    def group(self, index: int) -> "Convolution":
        """Return one of its groups as a convolution of its own."""
        return replace(self, weight=self.weight.chunk(self.groups)[index], groups=1)

    def __call__(self, maps: Float[Tensor, "n i *size"]) -> Float[Tensor, "n o *out"]:
        """Return the outputs for a batch of feature maps."""
        if self.mode == "zeros":
            flat = [width for pair in reversed(self.padding) for width in pair]
            maps = functional.pad(maps, flat)
        else:
            for axis in range(len(self.size)):
                maps = maps.index_select(axis + 2, self._padded(axis))
        apply = _APPLY[len(self.size)]
        out: Tensor = apply(maps, self.weight, None, self.stride, 0, self.dilation, self.groups)
        return out

    def _padded(self, axis: int) -> Tensor:
        """Return which pixel stands at each place of the padded map, along one dimension."""
        n, (before, after) = self.size[axis], self.padding[axis]
        at = torch.arange(-before, n + after)
        if self.mode == "circular":
            return at % n
        if self.mode == "reflect":
            at = at.abs()
            return torch.where(at >= n, 2 * (n - 1) - at, at)
        return at.clamp(0, n - 1)  # replicate

    def product(self, vector: Float64[Tensor, " inputs"]) -> Float64[Tensor, " outputs"]:
        """Return the product of its matrix with a vector."""
        return self(vector.reshape(1, -1, *self.size)).flatten()

    def transposed_product(self, vector: Float64[Tensor, " outputs"]) -> Float64[Tensor, " inputs"]:
        """Return the product of the transposed matrix with a vector."""
        with torch.enable_grad():
            maps = vector.new_zeros(1, self.inputs // math.prod(self.size), *self.size)
            out = self(maps.requires_grad_())
            (pulled,) = torch.autograd.grad(out, maps, vector.reshape(out.shape))
        return pulled.flatten()

    def matrix(self) -> Float64[Tensor, "outputs inputs"]:
        """Return the matrix, column by column."""
        basis = torch.eye(self.inputs, dtype=self.weight.dtype)
        return self(basis.reshape(self.inputs, -1, *self.size)).flatten(1).T

    def squared_norm(self) -> float:
        """Return the sum of all squared singular values.

        Closed form: each tap counts as often as it falls on the map. (Exact for zero and circular
        padding; for others a pixel may be met by two taps of one output, and the matrix decides.)
        """
        if self.mode not in ("zeros", "circular"):
            return float(self.matrix().square().sum())
        if self.mode == "circular" and any(map(_overlaps, self.extent, self.size)):
            return float(self.matrix().square().sum())
        squares = self.weight.square().sum((0, 1))
        counts = [self._visits(axis) for axis in range(len(self.size))]
        return sum(
            float(squares[place]) * math.prod(c[k] for c, k in zip(counts, place, strict=True))
            for place in product(*map(range, self.kernel))
        )

    def _visits(self, axis: int) -> list[int]:
        """Return for each tap of one dimension how many outputs it serves from within the map."""
        n, m, s, d = self.size[axis], self.out_size[axis], self.stride[axis], self.dilation[axis]
        starts = torch.arange(m) * s - self.padding[axis][0]
        if self.mode == "circular":
            return [m] * self.kernel[axis]
        return [
            int(((starts + d * k >= 0) & (starts + d * k < n)).sum())
            for k in range(self.kernel[axis])
        ]


def _overlaps(reach: int, n: int) -> bool:
    """Tell whether two taps of a kernel may fall on one pixel of a torus."""
    return reach > n
