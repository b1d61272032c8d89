"""Layers: products, convolutions, pooling and normalisation."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from inscape.loaders.onnx.nodes import Node
from inscape.loaders.onnx.operators_pointwise import Operator

#: The largest settings of a window; oneDNN crashes from a stride of 7,000 on.
_LARGEST = {"strides": 512, "output_padding": 512, "pads": 65_536, "dilations": 65_536}
#: The most dimensions that a window has.
_DIMENSIONS = 3


def _gemm(node: Node, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    a = a.t() if node.integer("transA", 0) else a
    b = b if node.integer("transB", 0) else b.t()
    if c is not None and c.ndim == 1 and c.shape[0] == b.shape[0] and alpha == beta == 1.0:
        return functional.linear(a, b, c)
    product = functional.linear(a, b)
    product = product if alpha == 1.0 else alpha * product
    return product if c is None else product + (c if beta == 1.0 else beta * c)


def _matmul(_: Node, a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a, b)


def _einsum(node: Node, *tensors: Tensor) -> Tensor:
    equation = node.text("equation", "").replace(" ", "")
    if not equation:
        node.refuse("an equation", "none")
    return torch.einsum(equation, *tensors)


class OnnxWindow:
    """Kernel, strides, dilations and pads of a window, as checked."""

    def __init__(self, node: Node, x: Tensor, kernel: list[int] | None) -> None:
        self.node, self.dims = node, x.ndim - 2
        if not 1 <= self.dims <= _DIMENSIONS:
            node.refuse("an input of 3, 4 or 5 dimensions", x.ndim)
        self.kernel = self._listed("kernel_shape", kernel or node.integers("kernel_shape"), 1)
        self.strides = self._listed("strides", node.integers("strides"), 1)
        self.dilations = self._listed("dilations", node.integers("dilations"), 1)
        self.begin, self.end = self._pads(list(x.shape[2:]))
        self.ceil = bool(node.integer("ceil_mode", 0))

    @property
    def symmetric(self) -> bool:
        """Tell whether the pads before and after are the same."""
        return self.begin == self.end

    @property
    def around(self) -> list[int]:
        """Return the pads as ``functional.pad`` wants them."""
        pairs = zip(self.begin[::-1], self.end[::-1], strict=True)
        return [pad for pair in pairs for pad in pair]

    def _listed(self, key: str, values: list[int] | None, fill: int) -> list[int]:
        sizes = values or [fill] * self.dims
        if len(sizes) != self.dims or not all(1 <= v <= _LARGEST.get(key, 2**31) for v in sizes):
            self.node.refuse(f"{self.dims} positive {key} of a reasonable size", sizes)
        return sizes

    def _pads(self, sizes: list[int]) -> tuple[list[int], list[int]]:
        how = self.node.text("auto_pad", "NOTSET")
        if how in ("SAME_UPPER", "SAME_LOWER"):
            zipped = zip(sizes, self.kernel, self.strides, self.dilations, strict=True)
            total = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) for n, k, s, d in zipped]
            less, more = [t // 2 for t in total], [t - t // 2 for t in total]
            return (less, more) if how == "SAME_UPPER" else (more, less)
        pads = self.node.integers("pads") or [0] * 2 * self.dims
        if how == "VALID":
            pads = [0] * 2 * self.dims
        if len(pads) != 2 * self.dims or not all(0 <= p <= _LARGEST["pads"] for p in pads):
            self.node.refuse(f"{2 * self.dims} pads of a reasonable size, none negative", pads)
        return pads[: self.dims], pads[self.dims :]


def _conv(node: Node, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    window = OnnxWindow(node, x, list(weight.shape[2:]))
    if not window.symmetric:
        x = functional.pad(x, window.around)
    convolve = getattr(functional, f"conv{window.dims}d")
    pads = window.begin if window.symmetric else 0
    groups = node.integer("group", 1)
    output: Tensor = convolve(x, weight, bias, window.strides, pads, window.dilations, groups)
    return output


def _conv_transpose(node: Node, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if (
        node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
        or "output_shape" in node.settings
    ):
        node.refuse("explicit pads", "auto_pad or output_shape")
    window = OnnxWindow(node, x, list(weight.shape[2:]))
    more = node.integers("output_padding") or [0] * window.dims
    if len(more) != window.dims or not all(0 <= p <= _LARGEST["output_padding"] for p in more):
        node.refuse(f"{window.dims} output_padding", more)
    convolve = getattr(functional, f"conv_transpose{window.dims}d")
    pads = window.begin if window.symmetric else 0
    groups = node.integer("group", 1)
    output: Tensor = convolve(x, weight, bias, window.strides, pads, more, groups, window.dilations)
    return output if window.symmetric else functional.pad(output, [-pad for pad in window.around])


def _max_pool(node: Node, x: Tensor) -> Tensor:
    if len(node.outputs) > 1:
        node.refuse("one output", "places of the maxima as well")
    window = OnnxWindow(node, x, None)
    pool = getattr(functional, f"max_pool{window.dims}d")
    pads: Any = window.begin
    ceil = window.ceil
    if not window.symmetric and not ceil and _as_ceil(window, x):
        pads, ceil = 0, True
    elif not window.symmetric:
        x, pads = functional.pad(x, window.around, value=float("-inf")), 0
    output: Tensor = pool(x, window.kernel, window.strides, pads, window.dilations, ceil)
    return output


def _as_ceil(window: OnnxWindow, x: Tensor) -> bool:
    """Tell whether pads at the end alone are what rounding the number of windows up gives."""
    zipped = zip(x.shape[2:], window.kernel, window.strides, window.dilations, strict=True)
    reach = [(n - (k - 1) * d - 1, s) for n, k, s, d in zipped]
    up = [-(-room // s) for room, s in reach]
    down = [(room + end) // s for (room, s), end in zip(reach, window.end, strict=True)]
    return not any(window.begin) and up == down and all(room >= 0 for room, _ in reach)


def _average_pool(node: Node, x: Tensor) -> Tensor:
    window = OnnxWindow(node, x, None)
    if any(dilation != 1 for dilation in window.dilations):
        node.refuse("dilations of 1", window.dilations)
    pool = getattr(functional, f"avg_pool{window.dims}d")
    padded = bool(node.integer("count_include_pad", 0))
    kernel, strides = window.kernel, window.strides
    if window.symmetric:
        output: Tensor = pool(x, kernel, strides, window.begin, window.ceil, padded)
        return output
    if window.ceil:
        node.refuse("the same pads on both sides where ceil_mode is set", window.around)
    output = pool(functional.pad(x, window.around), kernel, strides)
    if padded:
        return output
    ones = functional.pad(torch.ones_like(x[:1, :1]), window.around)
    covered: Tensor = pool(ones, kernel, strides)
    return output / covered


def _global_average(_: Node, x: Tensor) -> Tensor:
    return x.mean(list(range(2, x.ndim)), keepdim=True)


def _global_max(node: Node, x: Tensor) -> Tensor:
    if not 3 <= x.ndim <= 5:
        node.refuse("an input of 3, 4 or 5 dimensions", x.ndim)
    pool = getattr(functional, f"max_pool{x.ndim - 2}d")
    output: Tensor = pool(x, list(x.shape[2:]))
    return output


def _batch_norm(
    node: Node, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor
) -> Tensor:
    if node.integer("training_mode", 0) or len(node.outputs) > 1:
        node.refuse("the form for inference", "that for training")
    epsilon = node.number("epsilon", 1e-5)
    return functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)


def _instance_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    epsilon = node.number("epsilon", 1e-5)
    return functional.instance_norm(x, weight=scale, bias=bias, eps=epsilon)


def _layer_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    if len(node.outputs) > 1:
        node.refuse("one output", "mean and deviation as well")
    axis = node.axis(node.integer("axis", -1), x.ndim)
    normalised = functional.layer_norm(x, list(x.shape[axis:]), eps=node.number("epsilon", 1e-5))
    return normalised * scale if bias is None else normalised * scale + bias


def _group_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups = node.integer("num_groups", 1)
    if node.opset < 21:
        channels = x.shape[1] // max(groups, 1)
        scale, bias = scale.repeat_interleave(channels), bias.repeat_interleave(channels)
    return functional.group_norm(x, groups, scale, bias, node.number("epsilon", 1e-5))


LAYERS: dict[str, Operator] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average,
    "GlobalMaxPool": _global_max,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
}
