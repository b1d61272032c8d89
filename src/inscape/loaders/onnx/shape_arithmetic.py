"""Arithmetic of sizes with Python's integers, so that shapes are known before any input is.

A batch of any size passes through as a symbol; integers are Python's own (dtype object).
"""

import operator
from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from inscape.loaders.onnx.nodes import Node
from inscape.loaders.onnx.operators_shape import BOOL, FLOATS, WHOLE

#: Numbers that a list of sizes may have.
LARGEST = 4096


def on_host(array: Any) -> Any:
    """Return numbers as they are kept here."""
    if not isinstance(array, np.ndarray | np.generic | list):  # one number, or a symbol for it
        alone = np.empty((), object)
        alone[()] = array
        return alone
    array = np.asarray(array)
    return array.astype(object) if array.dtype.kind in "iu" else array


def _bounded(node: Node, shape: list[Any]) -> list[Any]:
    if any(size < 0 for size in shape) or prod(shape) > LARGEST:
        node.refuse(f"at most {LARGEST} sizes", shape)
    return shape


def _axes(node: Node, axes_input: Any) -> list[int] | None:
    axes = node.integers("axes")
    return axes if axes_input is None else [int(axis) for axis in np.ravel(axes_input)]


def _slice(node: Node, x: Any, *inputs: Any) -> Any:
    if node.opset < 10:
        lists = [node.integers(key) for key in ("starts", "ends", "axes")] + [None]
    else:
        lists = [None if v is None else list(np.ravel(v)) for v in (*inputs, None, None)]
    starts, ends = lists[0] or [], lists[1] or []
    axes, steps = lists[2] or range(len(starts)), lists[3] or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = (slice(None),) * node.axis(axis, x.ndim)
        x = x[(*place, slice(start, end, step or node.refuse("steps other than 0", 0)))]
    return x


def _gather(node: Node, x: Any, indices: Any) -> Any:
    return np.asarray(np.take(x, indices.astype(int), axis=node.integer("axis", 0)))


def _unsqueeze(node: Node, x: Any, axes_input: Any = None) -> Any:
    axes = _axes(node, axes_input) or []
    return np.expand_dims(x, tuple(node.axis(axis, x.ndim + len(axes)) for axis in axes))


def _squeeze(node: Node, x: Any, axes_input: Any = None) -> Any:
    axes = _axes(node, axes_input)
    return np.squeeze(x, None if axes is None else tuple(axes))


def _cast(node: Node, x: Any) -> Any:
    kind = node.integer("to", 0)
    if kind in FLOATS:
        known = x.dtype != object or all(isinstance(v, int) for v in x.flat)
        return x.astype(np.float64) if known else x  # a symbol is what it is
    if kind == BOOL:
        return x.astype(bool)
    if kind not in WHOLE:
        node.refuse("a cast to floats, integers or truth values", kind)
    return x if x.dtype == object else on_host(np.trunc(x.astype(np.float64)).astype(np.int64))


def _div(_: Node, a: Any, b: Any) -> Any:
    return a // b if a.dtype == object and b.dtype == object else a / b


def _reshape(node: Node, x: Any, shape: Any) -> Any:
    return x.reshape([int(size) for size in np.ravel(shape)])


def _constant_of_shape(node: Node, shape: Any) -> Any:
    fill = node.settings.get("value", np.zeros(1, np.float32))
    sizes = _bounded(node, [int(size) for size in shape])
    return on_host(np.full(sizes, np.ravel(fill)[0]))


def _range(node: Node, start: Any, limit: Any, step: Any) -> Any:
    count = max(-(-(limit.item() - start.item()) // step.item()), 0)
    _bounded(node, [int(count)])
    return on_host(np.asarray([start.item() + i * step.item() for i in range(int(count))]))


def _expand(node: Node, x: Any, shape: Any) -> Any:
    sizes = np.broadcast_shapes(x.shape, _bounded(node, [int(size) for size in shape]))
    return np.broadcast_to(x, _bounded(node, list(sizes)))


def _product(node: Node, x: Any, axes_input: Any = None) -> Any:
    axes = _axes(node, axes_input)
    keep = bool(node.integer("keepdims", 1))
    return np.asarray(np.prod(x, axis=None if axes is None else tuple(axes), keepdims=keep))


def _real(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda _, x: function(x.astype(np.float64))


def _compared(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda _, a, b: np.asarray(function(a, b), dtype=bool)


HOST: dict[str, Callable[..., Any]] = {
    "Add": lambda _, a, b: a + b,
    "And": _compared(np.logical_and),
    "Cast": _cast,
    "Ceil": _real(np.ceil),
    "Concat": lambda node, *parts: np.concatenate(parts, node.integer("axis", 0)),
    "ConstantOfShape": _constant_of_shape,
    "Div": _div,
    "Equal": lambda _, a, b: np.asarray(a == b, dtype=bool),
    "Expand": _expand,
    "Floor": _real(np.floor),
    "Gather": _gather,
    "Greater": _compared(operator.gt),
    "GreaterOrEqual": _compared(operator.ge),
    "Identity": lambda _, x: x,
    "Less": _compared(operator.lt),
    "LessOrEqual": _compared(operator.le),
    "Max": lambda _, *parts: reduce(np.maximum, parts),
    "Min": lambda _, *parts: reduce(np.minimum, parts),
    "Mul": lambda _, a, b: a * b,
    "Neg": lambda _, x: -x,
    "Not": lambda _, x: np.logical_not(x.astype(bool)),
    "Or": _compared(np.logical_or),
    "Range": _range,
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Slice": _slice,
    "Sqrt": _real(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": lambda _, a, b: a - b,
    "Transpose": lambda node, x: np.transpose(x, node.integers("perm")),
    "Unsqueeze": _unsqueeze,
    "Where": lambda _, condition, a, b: np.where(condition, a, b),
}
