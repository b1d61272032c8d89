"""Resize and Upsample, axis by axis: nearest and linear, in every way to place the samples."""

from collections.abc import Callable
from math import ceil, floor
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from inscape.loaders.onnx.nodes import Node
from inscape.loaders.onnx.operators_pointwise import Operator


def _resize(node: Node, x: Tensor, *inputs: Any) -> Tensor:
    scales, sizes, axes = _settings(node, x, *inputs)
    how = _how(node)
    doubled = _doubling(how, scales, sizes, axes, x.ndim)
    if doubled is not None:
        return functional.interpolate(x, size=[sizes[axis] for axis in doubled], mode="nearest")
    for scale, size, axis in zip(scales, sizes, axes, strict=True):
        if scale != 1.0 or size != x.shape[axis]:
            x = _along(node, x, axis, size, scale, how)
    return x


def _how(node: Node) -> tuple[str, str, str]:
    """Return the mode, how coordinates are made, and how they are rounded."""
    mode = node.text("mode", "nearest")
    if mode not in ("nearest", "linear") or node.integer("antialias", 0):
        node.refuse("the mode nearest or linear, without antialias", mode)
    if node.opset < 11:  # Upsample, and Resize before it had a choice
        return mode, "asymmetric", "floor"
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        node.refuse("the sizes as they are", policy)
    place = node.text("coordinate_transformation_mode", "half_pixel")
    return mode, place, node.text("nearest_mode", "round_prefer_floor")


def _settings(node: Node, x: Tensor, *inputs: Any) -> tuple[list[Any], list[Any], list[int]]:
    """Return for each axis that is named its scale and its new size."""
    axes = [node.axis(axis, x.ndim) for axis in node.integers("axes") or range(x.ndim)]
    old = [x.shape[axis] for axis in axes]
    values = [*inputs, None, None, None]
    factors, lengths = (values[0], None) if node.opset < 11 else (values[1], values[2])
    if node.op == "Upsample" and node.opset < 9:
        factors = node.settings.get("scales", ())
    if lengths is not None:
        sizes = node.sizes(lengths, "sizes")
        scales = [1.0 if n is m else n / m for n, m in zip(sizes, old, strict=True)]
        return scales, sizes, axes
    scales = node.numbers(factors if factors is not None else [], "scales")
    if len(scales) != len(axes) or not all(0 < scale < 2**31 for scale in scales):
        node.refuse(f"{len(axes)} positive scales", scales)
    both = zip(old, scales, strict=True)
    return scales, [n if s == 1.0 else floor(n * s) for n, s in both], axes


def _doubling(
    how: tuple[str, str, str], scales: list[Any], sizes: list[Any], axes: list[int], ndim: int
) -> list[int] | None:
    """Return the axes of an image that are repeated an integer number of times, or None."""
    mode, place, rounding = how
    supported = (place, rounding) in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))
    integer = all(scale.is_integer() for scale in scales)
    image = axes == list(range(ndim)) and 3 <= ndim <= 5 and scales[:2] == [1.0, 1.0]
    return axes[2:] if mode == "nearest" and supported and integer and image and sizes else None


def _along(
    node: Node, x: Tensor, axis: int, size: int, scale: float, how: tuple[str, str, str]
) -> Tensor:
    mode, place, rounding = how
    length = x.shape[axis]
    if not 0 <= size <= 2**24:
        node.refuse("sizes up to 16 million", size)
    at = [_coordinate(node, place, i, length, size, scale) for i in range(size)]
    if mode == "nearest":
        return x.index_select(axis, _indices(x, [_rounded(node, rounding, v) for v in at], length))
    low, high = ([floor(v) + step for v in at] for step in (0, 1))
    fraction = torch.tensor([v - floor(v) for v in at], dtype=x.dtype, device=x.device)
    fraction = fraction.reshape([-1] + [1] * (x.ndim - 1 - axis))
    first, second = (x.index_select(axis, _indices(x, v, length)) for v in (low, high))
    return first * (1 - fraction) + second * fraction


def _indices(x: Tensor, places: list[int], length: int) -> Tensor:
    return torch.tensor([min(max(p, 0), length - 1) for p in places], device=x.device)


def _coordinate(node: Node, place: str, i: int, old: int, new: int, scale: float) -> float:
    if place == "asymmetric":
        return i / scale
    if place == "align_corners":
        return i * (old - 1) / (new - 1) if new > 1 else 0.0
    if place == "half_pixel" or (place == "pytorch_half_pixel" and new > 1):
        return (i + 0.5) / scale - 0.5
    if place == "pytorch_half_pixel":
        return 0.0
    if place == "half_pixel_symmetric":
        return old / 2 * (1 - new / (scale * old)) + (i + 0.5) / scale - 0.5
    return node.refuse("a way to place samples without a region of interest", place)


def _rounded(node: Node, rounding: str, value: float) -> int:
    ways: dict[str, Callable[[float], int]] = {
        "floor": floor,
        "ceil": ceil,
        "round_prefer_floor": lambda v: ceil(v - 0.5),
        "round_prefer_ceil": lambda v: floor(v + 0.5),
    }
    if rounding not in ways:
        node.refuse(f"a nearest_mode among {', '.join(ways)}", rounding)
    return ways[rounding](value)


RESIZING: dict[str, Operator] = {"Resize": _resize, "Upsample": _resize}
