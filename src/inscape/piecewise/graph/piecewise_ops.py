"""Piecewise-linear operations of a graph: units that switch between affine functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import torch
from jaxtyping import Float64, Int64, Integer
from torch import Tensor, fx

from inscape.piecewise.graph.ops import extreme, is_relu, name_of, place_of, setting


@dataclass(frozen=True, eq=False, kw_only=True)
class PiecewiseOp:
    """One piecewise-linear operation of a network.

    ``source`` returns its pre-activations, flat. Without ``windows`` each pre-activation is a unit:
    it is on where that is above zero, and has its kink at zero. With ``windows`` each window is a
    unit: it selects the largest of the pre-activations that it lists, the first of several, and
    returns it times ``sign``. ``chosen`` is the operation with a fixed activation pattern, affine
    in its arguments; ``linear`` is the same without its constants, None where they are found by
    evaluating it at zero.
    """

    node: fx.Node
    place: str
    source: Callable[..., Float64[Tensor, "n m"]]
    chosen: Callable[..., Tensor]
    linear: Callable[..., Tensor] | None = None
    windows: Int64[Tensor, "w k"] | None = None
    sign: float = 1.0
    slope: Callable[..., Tensor] | None = None

    def pattern(self, functions: Float64[Tensor, "n m"]) -> Integer[Tensor, "n units"]:
        """Return the activation pattern for given pre-activations."""
        if self.windows is None:
            return (functions > 0).to(torch.uint8)
        small = self.windows.shape[1] <= 256
        return functions[:, self.windows].argmax(2).to(torch.uint8 if small else torch.int32)


def piecewise_op(node: fx.Node, moving: Callable[[fx.Node], bool]) -> PiecewiseOp | None:
    """Return a node as a piecewise-linear operation; None where it is not known to be one."""
    name, place = name_of(node), place_of(node)
    if sign := extreme(node):
        return _extreme(node, sign)
    if any(isinstance(arg, fx.Node) and moving(arg) for arg in node.args[1:]):
        return None
    if slope := _slope(node):

        def chosen(on: Tensor, z: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            on = on.bool().reshape(len(on), *z.shape[1:])
            if is_relu(node):
                return torch.where(on, z, 0.0)
            return z * torch.where(on, 1.0, slope(z, *args, **kwargs))

        return PiecewiseOp(
            node=node,
            place=place,
            source=lambda z, *_, **__: z.reshape(len(z), -1),
            chosen=chosen,
            linear=chosen,
            slope=slope,
        )
    if name in _LARGEST:
        return _largest(node, _LARGEST[name](node), sign=-1.0 if name == "amin" else 1.0)
    if name == "softshrink":
        return _softshrink(node)
    limits = _LIMITS.get(name)
    if limits is None or (name == "threshold" and node.args[1] != node.args[2]):
        return None
    return PiecewiseOp(
        node=node,
        place=place,
        source=lambda z, *args, **kwargs: _above(
            z, [at for at in limits(*args, **kwargs) if at is not None]
        ),
        chosen=lambda on, z, *args, **kwargs: (
            _clamped(on, z / 6 + 0.5, 0.0, 1.0)
            if name == "hardsigmoid"
            else _clamped(on, z, *limits(*args, **kwargs))
        ),
        linear=lambda on, z, *args, **kwargs: (
            _unclamped(on, z, *limits(*args, **kwargs)) / (6 if name == "hardsigmoid" else 1)
        ),
    )


def _slope(node: fx.Node) -> Callable[..., Tensor] | None:
    """Return the slope below zero of an operation with its only kink at zero."""
    name = name_of(node)
    if is_relu(node):
        return lambda z, *_, **__: z.new_zeros(())
    if name == "abs":
        return lambda z: z.new_tensor(-1.0)
    if name == "leaky_relu":
        return lambda z, slope=0.01: z.new_tensor(slope)
    if name == "rrelu":
        return lambda z, low=1 / 8, high=1 / 3, *_, **__: z.new_tensor((low + high) / 2)
    if name == "prelu":
        return lambda z, weight: (
            weight.reshape(1, -1, *[1] * (z.ndim - 2)) if z.ndim > 1 else weight
        )
    return None


def _between(min: Any = None, max: Any = None) -> tuple[Any, Any]:
    """Return both limits; where the lower one is above the other, torch gives the upper one."""
    if min is None or max is None:
        return min, max
    low, high = (torch.as_tensor(limit, dtype=torch.float64) for limit in (min, max))
    return torch.minimum(low, high), max


def _hardtanh(min_val: Any = -1.0, max_val: Any = 1.0) -> tuple[Any, Any]:
    return min_val, max_val


#: Below the first limit the first is given, above the second the second; of hardsigmoid 0 and 1.
_LIMITS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "clamp": _between,
    "clamp_min": lambda min: (min, None),
    "clamp_max": lambda max: (None, max),
    "hardtanh": _hardtanh,
    "relu6": lambda: (0.0, 6.0),
    "threshold": lambda at, _: (at, None),
    "hardsigmoid": lambda: (-3.0, 3.0),
}


def _clamped(on: Integer[Tensor, "n units"], z: Tensor, low: Any, high: Any) -> Tensor:
    """Return z between its limits, where ``on`` tells which limits it is above."""
    parts = list(on.bool().reshape(len(on), -1, *z.shape[1:]).unbind(1))
    out = z
    if low is not None:
        out = torch.where(parts.pop(0), out, _like(low, z))
    if high is not None:
        out = torch.where(parts.pop(0), _like(high, z), out)
    return out


def _unclamped(on: Integer[Tensor, "n units"], z: Tensor, low: Any, high: Any) -> Tensor:
    """Return z where it lies between its limits, and zero elsewhere."""
    parts = list(on.bool().reshape(len(on), -1, *z.shape[1:]).unbind(1))
    inside = parts.pop(0) if low is not None else True
    if high is not None:
        inside = inside & ~parts.pop(0)
    return torch.where(torch.as_tensor(inside), z, 0.0)


def _above(z: Tensor, limits: Sequence[Any]) -> Float64[Tensor, "n m"]:
    """Return how far z lies above each limit, flat."""
    if z.requires_grad:
        return torch.cat([(z - at).reshape(len(z), -1) for at in limits], 1)
    out = z.new_empty(len(z), len(limits), *z.shape[1:])
    for k, at in enumerate(limits):
        torch.sub(z, at, out=out[:, k])
    return out.reshape(len(z), -1)


def _like(limit: Any, z: Tensor) -> Tensor:
    return torch.as_tensor(limit, dtype=z.dtype, device=z.device).expand_as(z)


def _softshrink(node: fx.Node) -> PiecewiseOp:
    """Return soft shrinkage, zero up to a size and less by that size beyond it."""

    def chosen(on: Tensor, z: Tensor, size: float = 0.5) -> Tensor:
        right, left = on.bool().reshape(len(on), -1, *z.shape[1:]).unbind(1)
        return torch.where(right, z - size, torch.where(left, torch.zeros_like(z), z + size))

    return PiecewiseOp(
        node=node,
        place=place_of(node),
        source=lambda z, size=0.5: torch.cat(
            [(z - at).reshape(len(z), -1) for at in (size, -size)], 1
        ),
        chosen=chosen,
    )


def _extreme(node: fx.Node, sign: float) -> PiecewiseOp:
    """Return the larger (sign 1) or the smaller (-1) of two arguments."""
    units = int(torch.tensor(node.meta["val"].shape[1:]).prod())

    def source(first: Tensor, second: Tensor) -> Tensor:
        shape = (first - second).shape
        both = [sign * part.expand(shape).reshape(shape[0], -1) for part in (first, second)]
        return torch.cat(both, 1)

    def chosen(pattern: Tensor, first: Tensor, second: Tensor) -> Tensor:
        shape = (first - second).shape
        return torch.where(pattern.bool().reshape(len(pattern), *shape[1:]), second, first)

    pairs = torch.stack([torch.arange(units), units + torch.arange(units)], 1)
    return PiecewiseOp(
        node=node, place=place_of(node), source=source, chosen=chosen, windows=pairs, sign=sign
    )


def _largest(node: fx.Node, windows: Int64[Tensor, "w k"], *, sign: float) -> PiecewiseOp:
    """Return the largest (sign 1) or the smallest (-1) entry of each window."""
    after = tuple(node.meta["val"].shape[1:])

    def chosen(pattern: Tensor, z: Tensor, *_: Any, **__: Any) -> Tensor:
        rows = max(len(pattern), len(z))
        begin = torch.arange(len(windows)) * windows.shape[1]
        at = windows.flatten()[begin + pattern.long()].expand(rows, -1)
        return z.flatten(1).expand(rows, -1).gather(1, at).reshape(rows, *after)

    return PiecewiseOp(
        node=node,
        place=place_of(node),
        source=lambda z, *_, **__: z.reshape(len(z), -1) if sign > 0 else -z.reshape(len(z), -1),
        chosen=chosen,
        linear=chosen,
        windows=windows,
        sign=sign,
    )


def _shape(node: Any) -> tuple[int, ...]:
    """Return the output shape of a node, without the batch."""
    return tuple(int(size) for size in node.meta["val"].shape[1:])


def _along(node: fx.Node) -> Int64[Tensor, "w k"]:
    """Return which entries of its flat input each output of amax or amin reads."""
    shape = _shape(node.args[0])
    dims = setting(node, "dim")
    gone = [dim % (len(shape) + 1) - 1 for dim in (dims if isinstance(dims, list) else [dims])]
    kept = [dim for dim in range(len(shape)) if dim not in gone]
    entries = torch.arange(prod(shape)).reshape(shape)
    return entries.permute(*kept, *gone).reshape(prod(shape[dim] for dim in kept), -1)


def _pooled(node: fx.Node) -> Int64[Tensor, "w k"]:
    """Return the windows of max pooling, whatever its padding, stride, dilation and ceiling."""
    names = ("kernel_size", "stride", "padding", "dilation")
    kernel, stride, padding, dilation = (setting(node, name) for name in names)
    sizes, places = _shape(node.args[0])[1:], _shape(node)[1:]
    axes = []
    for axis, (size, count) in enumerate(zip(sizes, places, strict=True)):
        k, p, d = (_at(value, axis) for value in (kernel, padding, dilation))
        step = _at(stride, axis) if stride not in ((), [], None) else k
        rows = [[o * step - p + i * d for i in range(k)] for o in range(count)]
        axes.append([[i for i in row if 0 <= i < size] for row in rows])
    return _windows(_shape(node.args[0]), axes)


def _adapted(node: fx.Node) -> Int64[Tensor, "w k"]:
    """Return the windows of adaptive max pooling: equal parts of each side, rounded outwards."""
    shape, places = _shape(node.args[0]), _shape(node)[1:]
    axes = [
        [list(range(o * size // count, -(-(o + 1) * size // count))) for o in range(count)]
        for size, count in zip(shape[1:], places, strict=True)
    ]
    return _windows(shape, axes)


#: Which entries of its flat input each output of an operation is the largest, or smallest, of.
_LARGEST: dict[str, Callable[[fx.Node], Int64[Tensor, "w k"]]] = {
    **dict.fromkeys(("amax", "amin"), _along),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), _pooled),
    **dict.fromkeys(
        ("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"), _adapted
    ),
}


def _windows(shape: Sequence[int], axes: Sequence[list[list[int]]]) -> Int64[Tensor, "w k"]:
    """Return which entries of a flat input each output reads, from its indices on each axis.

    A window with fewer entries than others repeats its last one, which changes no maximum.
    """
    channels, sizes = shape[0], shape[1:]
    widest = prod(max(map(len, axis)) for axis in axes)
    plane = []
    for window in product(*axes):
        flat = [_flat(at, sizes) for at in product(*window)]
        plane.append(flat + flat[-1:] * (widest - len(flat)))
    indices = torch.tensor(plane)
    return torch.cat([indices + channel * prod(sizes) for channel in range(channels)])


def _flat(at: Sequence[int], sizes: Sequence[int]) -> int:
    index = 0
    for place, size in zip(at, sizes, strict=True):
        index = index * size + place
    return index


def _at(value: Any, axis: int) -> int:
    """Return the entry of a setting that may be given once for all axes."""
    return int(value[min(axis, len(value) - 1)]) if isinstance(value, list | tuple) else int(value)
