"""Which operations of an exported graph are affine, and which bend at known places."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

#: Affine in one tensor argument as long as the others are constant.
AFFINE = frozenset(
    {
        *(
            "linear",
            "addmm",
            "mm",
            "mv",
            "matmul",
            "bmm",
            "einsum",
            "mul",
            "div",
            "neg",
            "mean",
            "sum",
        ),
        *("convolution", "conv1d", "conv2d", "conv3d", "dropout", "feature_dropout"),
        *("batch_norm", "_native_batch_norm_legit_no_training", "_batch_norm_no_update"),
        *("view", "_unsafe_view", "reshape", "flatten", "unflatten", "permute", "transpose", "t"),
        *("numpy_T", "movedim", "unsqueeze", "squeeze", "expand", "expand_as", "clone", "to"),
        *("contiguous", "detach", "alias", "lift_fresh_copy", "_to_copy", "getitem"),
        *("slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind"),
        *("index_select", "flip", "roll", "pad", "constant_pad_nd"),
        *("avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d"),
        *("_adaptive_avg_pool2d", "upsample_nearest1d", "upsample_nearest2d"),
        "upsample_bilinear2d",
    }
)

#: Affine in all their tensor arguments together.
SUMS = frozenset({"add", "sub", "rsub", "cat", "concat", "concatenate", "stack"})

#: Their value depends on the shape of the input only.
SHAPES = frozenset(
    {
        *("sym_size", "sym_numel", "sym_stride", "zeros_like", "ones_like", "full_like"),
        *("empty_like", "new_zeros", "new_ones", "new_full", "new_empty"),
        *("sym_constrain_range_for_size", "_assert_scalar", "_assert_tensor_metadata"),
    }
)


def name_of(node: fx.Node) -> str:
    """Return the plain name of a node's operation: ``aten.linear.default`` gives ``linear``."""
    target = node.target
    if isinstance(target, str):
        return target
    schema = getattr(target, "_schema", None)
    return schema.name.split("::")[-1] if schema is not None else getattr(target, "__name__", "?")


def place_of(node: fx.Node) -> str:
    """Say in which module of the model a node was written."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values() if path]
    return f"{name_of(node)!r} in module {paths[-1]!r}" if paths else f"{name_of(node)!r}"


def arguments(node: fx.Node) -> list[fx.Node]:
    """Return the nodes that a node reads, as often as it reads them: x * x reads x twice."""
    found: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def is_affine(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether a node is affine in what it reads of the ``moving`` nodes."""
    name = name_of(node)
    if not _is_real(node) or node.kwargs.get("rounding_mode") is not None:
        return False
    if name in SUMS:
        return True
    divisor = node.args[1] if name == "div" else None
    if isinstance(divisor, fx.Node) and moving(divisor):
        return False
    return name in AFFINE and sum(map(moving, arguments(node))) <= 1


def _is_real(node: fx.Node) -> bool:
    """Tell whether all tensors that a node makes hold real numbers: rounding is not affine."""
    value = node.meta.get("val")
    values = value if isinstance(value, tuple | list) else [value]
    return all(v.is_floating_point() for v in values if isinstance(v, Tensor))


def is_relu(node: fx.Node) -> bool:
    """Tell whether a node is max(0, x), however it is written."""
    name, args = name_of(node), node.args
    if name == "relu":
        return True
    if name == "clamp_min":
        return args[1:] == (0,)
    if name == "clamp":
        return args[1:] in ((0,), (0, None)) and not node.kwargs
    return name == "threshold" and args[1:] == (0, 0)


def bends(node: fx.Node, moving: Callable[[fx.Node], bool]) -> Callable[..., list[Tensor]] | None:
    """Return what gives, from a node's arguments, tensors at whose zeros its slope changes.

    None where the operation is not known to be continuous and piecewise linear.
    """
    name = name_of(node)
    if name in ("maximum", "minimum"):
        return lambda one, two: [one - two]
    if any(isinstance(arg, fx.Node) and moving(arg) for arg in node.args[1:]):
        return None
    if is_relu(node) or name in ("abs", "leaky_relu", "prelu"):
        return lambda z, *_, **__: [z]
    if name == "threshold":  # continuous only where it replaces a value by itself
        return (lambda z, at, _: [z - at]) if node.args[1] == node.args[2] else None
    return _CLAMPS.get(name)


def _clamped(z: Tensor, min: Any = None, max: Any = None) -> list[Tensor]:
    return [z - limit for limit in (min, max) if limit is not None]


def _hardtanh(z: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> list[Tensor]:
    return _clamped(z, min_val, max_val)


_CLAMPS: dict[str, Callable[..., list[Tensor]]] = {
    "clamp": _clamped,
    "clamp_min": _clamped,
    "clamp_max": _clamped,
    "hardtanh": _hardtanh,
    "relu6": lambda z: _clamped(z, 0.0, 6.0),
}


def keeps_batch(node: fx.Node, batch: Any) -> bool:
    """Tell whether the first dimension of what a node makes is the batch.

    Of several tensors the first counts; the others have nodes of their own if they are used.
    """
    value = node.meta.get("val")
    value = value[0] if isinstance(value, tuple | list) else value
    if not isinstance(value, Tensor):
        return True
    size = value.shape[0] if value.ndim else None
    return isinstance(size, torch.SymInt) and str(size) == str(batch)
