"""Which operations of an exported graph are affine, and which bend at known places."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, fx

#: Affine in one tensor argument as long as the others are constant.
AFFINE = frozenset(
    {
        *("linear", "addmm", "mm", "matmul", "bmm", "einsum", "mul", "div", "neg", "mean", "sum"),
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


def bends(node: fx.Node, values: Callable[[Any], Any]) -> list[Tensor] | None:
    """Return tensors at whose zeros a piecewise-linear operation changes slope.

    ``values`` gives the current value of an argument. None where the operation is not known as
    piecewise linear.
    """
    name = name_of(node)
    args = [values(arg) for arg in node.args]
    if is_relu(node) or name in ("abs", "leaky_relu", "prelu"):
        return [args[0]]
    if name in ("clamp", "hardtanh", "clamp_min", "clamp_max", "relu6", "threshold"):
        return [args[0] - limit for limit in _limits(name, args, node.kwargs)]
    if name in ("maximum", "minimum"):
        return [args[0] - args[1]]
    return None


def _limits(name: str, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return the values at which a clamp begins and ends."""
    if name == "relu6":
        return [0.0, 6.0]
    if name == "hardtanh":
        return [*args[1:], -1.0, 1.0][:2] if len(args) < 3 else args[1:3]
    named = [kwargs.get("min"), kwargs.get("max")]
    return [limit for limit in [*args[1:3], *named] if limit is not None]
