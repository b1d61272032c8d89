"""Operators that work number by number, and those that reduce: ONNX's, made of torch's."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from inscape.loaders.onnx.nodes import Node

Operator = Callable[..., Any]


def _unary(function: Callable[[Tensor], Tensor]) -> Operator:
    return lambda _, x: function(x)


def _pair(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    return lambda _, a, b: function(a, b)


def _all(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    return lambda _, *tensors: reduce(function, tensors)


def _div(_: Node, a: Tensor, b: Tensor) -> Tensor:
    integers = not (a.is_floating_point() or b.is_floating_point())
    return torch.div(a, b, rounding_mode="trunc") if integers else a / b


def _pow(_: Node, a: Tensor, b: Tensor) -> Tensor:
    return torch.pow(a, b).to(a.dtype)


def _mod(node: Node, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmod(a, b) if node.integer("fmod", 0) else torch.remainder(a, b)


def _mean(_: Node, *tensors: Tensor) -> Tensor:
    return reduce(torch.add, tensors) / len(tensors)


def _clip(node: Node, x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    if node.opset < 11:
        limits = [node.number(k, 0.0) if k in node.settings else None for k in ("min", "max")]
    else:
        limits = [None if v is None else node.numbers(v, "a limit")[0] for v in (low, high)]
    if limits == [0.0, None]:
        return functional.relu(x)
    return x if limits == [None, None] else torch.clamp(x, *limits)


def _prelu(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    """Return x where it is positive, and else a multiple: torch's own where it is by channel."""
    shape = node.integers("slopes") or list(slope.shape)  # of slopes that were made flat
    by_channel = len(shape) == x.ndim - 1 and slope.numel() == shape[0] == x.shape[1]
    if slope.numel() == 1 or by_channel:
        return functional.prelu(x, slope if slope.ndim == 1 else slope.reshape(-1))
    return functional.relu(x) - slope.reshape(shape) * functional.relu(-x)


def _leaky(node: Node, x: Tensor) -> Tensor:
    return functional.leaky_relu(x, node.number("alpha", 0.01))


def _hard_sigmoid(node: Node, x: Tensor) -> Tensor:
    return torch.clamp(node.number("alpha", 0.2) * x + node.number("beta", 0.5), 0.0, 1.0)


def _elu(node: Node, x: Tensor) -> Tensor:
    return functional.elu(x, node.number("alpha", 1.0))


def _celu(node: Node, x: Tensor) -> Tensor:
    return functional.celu(x, node.number("alpha", 1.0))


def _selu(node: Node, x: Tensor) -> Tensor:
    alpha, gamma = node.number("alpha", 1.67326319), node.number("gamma", 1.05070102)
    return gamma * functional.elu(x, alpha)


def _gelu(node: Node, x: Tensor) -> Tensor:
    return functional.gelu(x, approximate=node.text("approximate", "none"))


def _shrunk(node: Node, x: Tensor) -> Tensor:
    at = node.number("alpha", 1.0)
    return torch.where(x > at, x, torch.zeros_like(x))


def _softmax(function: Callable[..., Tensor]) -> Operator:
    def run(node: Node, x: Tensor) -> Tensor:
        if node.opset >= 13:
            return function(x, dim=node.axis(node.integer("axis", -1), x.ndim))
        axis = node.axis(node.integer("axis", 1), x.ndim)
        if axis == x.ndim - 1:
            return function(x, dim=axis)
        return function(x.flatten(axis), dim=axis).reshape(x.shape)  # all axes from there on

    return run


def _reduction(function: Callable[..., Tensor], axes_are_input: int = 18) -> Operator:
    """Return a reduction over some axes, which newer files give as an input."""

    def run(node: Node, x: Tensor, axis_input: Any = None) -> Tensor:
        axes = node.integers("axes")
        if node.opset >= axes_are_input:
            axes = None if axis_input is None else node.sizes(axis_input, "axes")
        if not axes and node.integer("noop_with_empty_axes", 0):
            return x
        dims = [node.axis(axis, x.ndim) for axis in axes or range(x.ndim)]
        return function(x, dims, bool(node.integer("keepdims", 1))) if dims else x

    return run


def _product(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for dim in sorted(dims, reverse=True):
        x = x.prod(dim, keepdim=keep)
    return x


def _arg(function: Callable[..., Tensor]) -> Operator:
    def run(node: Node, x: Tensor) -> Tensor:
        if node.integer("select_last_index", 0):
            node.refuse("the first of equal numbers selected", "the last")
        dim = node.axis(node.integer("axis", 0), x.ndim)
        return function(x, dim=dim, keepdim=bool(node.integer("keepdims", 1)))

    return run


def _where(_: Node, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition, a, b)


POINTWISE: dict[str, Operator] = {
    "Abs": _unary(torch.abs),
    "Add": _pair(torch.add),
    "And": _pair(torch.logical_and),
    "ArgMax": _arg(torch.argmax),
    "ArgMin": _arg(torch.argmin),
    "Ceil": _unary(torch.ceil),
    "Celu": _celu,
    "Clip": _clip,
    "Cos": _unary(torch.cos),
    "Div": _div,
    "Elu": _elu,
    "Equal": _pair(torch.eq),
    "Erf": _unary(torch.erf),
    "Exp": _unary(torch.exp),
    "Floor": _unary(torch.floor),
    "Gelu": _gelu,
    "Greater": _pair(torch.gt),
    "GreaterOrEqual": _pair(torch.ge),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _unary(lambda x: x * torch.clamp(x / 6 + 0.5, 0.0, 1.0)),
    "LeakyRelu": _leaky,
    "Less": _pair(torch.lt),
    "LessOrEqual": _pair(torch.le),
    "Log": _unary(torch.log),
    "LogSoftmax": _softmax(torch.log_softmax),
    "Max": _all(torch.maximum),
    "Mean": _mean,
    "Min": _all(torch.minimum),
    "Mish": _unary(functional.mish),
    "Mod": _mod,
    "Mul": _pair(torch.mul),
    "Neg": _unary(torch.neg),
    "Not": _unary(torch.logical_not),
    "Or": _pair(torch.logical_or),
    "PRelu": _prelu,
    "Pow": _pow,
    "Reciprocal": _unary(torch.reciprocal),
    "ReduceL1": _reduction(lambda x, dims, keep: x.abs().sum(dims, keepdim=keep)),
    "ReduceL2": _reduction(lambda x, dims, keep: x.square().sum(dims, keepdim=keep).sqrt()),
    "ReduceLogSumExp": _reduction(lambda x, dims, keep: torch.logsumexp(x, dims, keepdim=keep)),
    "ReduceMax": _reduction(lambda x, dims, keep: torch.amax(x, dims, keepdim=keep)),
    "ReduceMean": _reduction(lambda x, dims, keep: x.mean(dims, keepdim=keep)),
    "ReduceMin": _reduction(lambda x, dims, keep: torch.amin(x, dims, keepdim=keep)),
    "ReduceProd": _reduction(_product),
    "ReduceSum": _reduction(lambda x, dims, keep: x.sum(dims, keepdim=keep), 13),
    "ReduceSumSquare": _reduction(lambda x, dims, keep: x.square().sum(dims, keepdim=keep)),
    "Relu": _unary(functional.relu),
    "Round": _unary(torch.round),
    "Selu": _selu,
    "Sigmoid": _unary(torch.sigmoid),
    "Sign": _unary(torch.sign),
    "Sin": _unary(torch.sin),
    "Softmax": _softmax(torch.softmax),
    "Softplus": _unary(lambda x: functional.softplus(x, threshold=80)),
    "Softsign": _unary(functional.softsign),
    "Sqrt": _unary(torch.sqrt),
    "Sub": _pair(torch.sub),
    "Sum": _all(torch.add),
    "Tanh": _unary(torch.tanh),
    "ThresholdedRelu": _shrunk,
    "Where": _where,
    "Xor": _pair(torch.logical_xor),
}
