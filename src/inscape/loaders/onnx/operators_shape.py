"""Operators that move numbers about: shapes, slices, gathering, padding, other precisions."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from inscape.loaders.onnx.nodes import Node
from inscape.loaders.onnx.operators_pointwise import Operator

#: Kinds of numbers in a file, by ONNX's count. Floats are all of the network's own precision.
FLOATS = (1, 10, 11, 16)
WHOLE = {2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64}
BOOL = 9


def _reshape(node: Node, x: Tensor, shape: Any) -> Tensor:
    sizes = node.sizes(shape, "a shape")
    if not node.integer("allowzero", 0):
        for at, size in enumerate(sizes):
            if isinstance(size, int) and size == 0:
                sizes[at] = x.shape[at]
    return x.reshape(sizes)


def _flatten(node: Node, x: Tensor) -> Tensor:
    axis = node.integer("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    if axis == 1 and x.ndim > 1:
        return x.flatten(1)
    if not 0 <= axis <= x.ndim:
        node.refuse(f"an axis of {x.ndim} dimensions", axis)
    return x.reshape(int(np.prod(x.shape[:axis], dtype=object)), -1)


def _transpose(node: Node, x: Tensor) -> Tensor:
    return x.permute(node.integers("perm", list(range(x.ndim))[::-1]) or [])


def _is_one(size: Any) -> bool:
    """Tell whether a size is 1, whatever the number of rows."""
    return isinstance(size, int) and size == 1


def _axes(node: Node, axes: Any) -> list[int] | None:
    if node.opset < 13:
        return node.integers("axes")
    return None if axes is None else node.sizes(axes, "axes")


def _squeeze(node: Node, x: Tensor, axes_input: Any = None) -> Tensor:
    axes = _axes(node, axes_input)
    if axes is None:
        axes = [at for at, size in enumerate(x.shape) if _is_one(size)]
    for axis in sorted((node.axis(axis, x.ndim) for axis in axes), reverse=True):
        if x.shape[axis] != 1:
            node.refuse(f"a size of 1 at axis {axis}", x.shape[axis])
        x = x.squeeze(axis)
    return x


def _unsqueeze(node: Node, x: Tensor, axes_input: Any = None) -> Tensor:
    axes = _axes(node, axes_input) or []
    for axis in sorted(node.axis(axis, x.ndim + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x


def _concat(node: Node, *tensors: Tensor) -> Tensor:
    return torch.cat(tensors, node.axis(node.integer("axis", 0), tensors[0].ndim))


def _split(node: Node, x: Tensor, sizes_input: Any = None) -> tuple[Tensor, ...]:
    axis = node.axis(node.integer("axis", 0), x.ndim)
    sizes = node.integers("split") if node.opset < 13 else None
    if sizes_input is not None:
        sizes = node.sizes(sizes_input, "sizes")
    if sizes is None:
        return torch.split(x, -(-x.shape[axis] // len(node.outputs)), axis)
    return torch.split(x, sizes, axis)


def _slice(node: Node, x: Tensor, *inputs: Any) -> Tensor:
    if node.opset < 10:
        starts, ends = node.integers("starts") or [], node.integers("ends") or []
        axes, steps = node.integers("axes"), None
    else:
        lists = [None if v is None else node.sizes(v, "a slice") for v in (*inputs, None, None)]
        starts, ends, axes, steps = lists[0] or [], lists[1] or [], lists[2], lists[3]
    axes = axes or list(range(len(starts)))
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts), strict=True):
        x = _sliced(node, x, node.axis(axis, x.ndim), start, end, step)
    return x


def _sliced(node: Node, x: Tensor, axis: int, start: Any, end: Any, step: int) -> Tensor:
    place = (slice(None),) * axis
    if step > 0:
        return x[(*place, slice(start, end, step))]
    places = range(x.shape[axis])[start:end:step] if step else node.refuse("steps other than 0", 0)
    return x.index_select(axis, torch.tensor(list(places), dtype=torch.long, device=x.device))


def _gather(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    axis = node.axis(node.integer("axis", 0), x.ndim)
    places = torch.where(indices < 0, indices + x.shape[axis], indices).long()
    if places.ndim == 1:
        return x.index_select(axis, places)
    gathered = x.index_select(axis, places.reshape(-1))
    return gathered.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])


def _gather_elements(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    axis = node.axis(node.integer("axis", 0), x.ndim)
    return x.gather(axis, torch.where(indices < 0, indices + x.shape[axis], indices).long())


def _pad(
    node: Node, x: Tensor, pads_input: Any = None, value: Any = None, along: Any = None
) -> Tensor:
    mode = node.text("mode", "constant")
    if node.opset < 11:
        pads, fill = node.integers("pads") or [], node.number("value", 0.0)
    else:
        pads = node.sizes(pads_input, "pads")
        fill = 0.0 if value is None else node.numbers(value, "a value")[0]
    axes = list(range(x.ndim)) if along is None else node.sizes(along, "axes")
    if len(pads) != 2 * len(axes):
        node.refuse(f"{2 * len(axes)} pads", pads)
    before, after = [0] * x.ndim, [0] * x.ndim
    for at, axis in enumerate(axes):
        place = node.axis(axis, x.ndim)
        before[place], after[place] = pads[at], pads[len(axes) + at]
    if mode == "constant":
        pairs = [pair for both in zip(before[::-1], after[::-1], strict=True) for pair in both]
        while len(pairs) > 2 and pairs[-2:] == [0, 0]:
            pairs = pairs[:-2]
        return functional.pad(x, pairs, value=fill) if any(pairs) else x
    for axis, (begin, end) in enumerate(zip(before, after, strict=True)):
        if begin or end:
            x = _mirrored(node, x, axis, begin, end, mode)
    return x


def _mirrored(node: Node, x: Tensor, axis: int, begin: int, end: int, mode: str) -> Tensor:
    size = x.shape[axis]
    if not (max(begin, end) < size and min(begin, end) >= 0) or mode not in _NUMPY:
        node.refuse(f"pads of mode {mode} smaller than the size {size}", (begin, end))
    places = np.pad(np.arange(size), (begin, end), mode=_NUMPY[mode])  # type: ignore[call-overload]
    return x.index_select(axis, torch.tensor(places.tolist(), device=x.device))


_NUMPY = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def _expand(node: Node, x: Tensor, shape: Any) -> Tensor:
    sizes = node.sizes(shape, "a shape")
    own = [1] * (len(sizes) - x.ndim) + list(x.shape)
    sizes = [1] * (len(own) - len(sizes)) + sizes
    both = list(zip(own, sizes, strict=True))
    if any(not _is_one(a) and b not in (1, a) for a, b in both[1:]):
        node.refuse(f"a shape that {tuple(x.shape)} can be repeated to", sizes)
    return x.expand([b if _is_one(a) else a for a, b in both])


def _tile(node: Node, x: Tensor, repeats: Any) -> Tensor:
    return x.repeat(node.sizes(repeats, "repeats"))


def _cast(node: Node, x: Tensor, like: Tensor) -> Tensor:
    kind = node.integer("to", 0)
    if kind in FLOATS:
        return x.to(like.dtype)
    if kind == BOOL:
        return x != 0
    if kind not in WHOLE:
        node.refuse("a cast to floats, integers or truth values", kind)
    return x.to(WHOLE[kind])


def _constant_of_shape(node: Node, shape: Any, like: Tensor) -> Tensor:
    fill = np.ravel(node.settings.get("value", np.zeros(1, np.float32)))[0]
    dtype = like.dtype if fill.dtype.kind == "f" else torch.bool if fill.dtype == bool else None
    sizes = node.sizes(shape, "a shape")
    return torch.full(sizes, fill.item(), dtype=dtype or torch.int64, device=like.device)


def _blocks(node: Node, x: Tensor) -> tuple[int, list[Any]]:
    size = node.integer("blocksize", 1)
    if x.ndim != 4 or size < 1:
        node.refuse("four dimensions and a positive blocksize", (x.ndim, size))
    return size, list(x.shape)


def _depth_to_space(node: Node, x: Tensor) -> Tensor:
    size, (n, c, h, w) = _blocks(node, x)
    if node.text("mode", "DCR") == "DCR":
        parts = x.reshape(n, size, size, c // size**2, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, c // size**2, size, size, h, w).permute(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, c // size**2, h * size, w * size)


def _space_to_depth(node: Node, x: Tensor) -> Tensor:
    size, (n, c, h, w) = _blocks(node, x)
    parts = x.reshape(n, c, h // size, size, w // size, size).permute(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * size**2, h // size, w // size)


SHAPING: dict[str, Operator] = {
    "Cast": _cast,
    "CastLike": lambda _, x, other: x.to(other.dtype),
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Dropout": lambda _, x, *__: x,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Identity": lambda _, x: x,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
