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
        *("convolution", "conv1d", "conv2d", "conv3d"),
        *("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"),
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

#: Products of matrices: where each of their two factors stands among the arguments.
_PRODUCTS = {"mm": (0, 1), "mv": (0, 1), "matmul": (0, 1), "bmm": (0, 1), "addmm": (1, 2)}

#: Numbers that they are given are sizes, not values.
_SIZED = frozenset({"zeros", "ones", "full", "empty", "expand", "repeat", "view", "reshape"})


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


def setting(node: fx.Node, name: str) -> Any:
    """Return an argument of a node by its name, given or by default; None where it has none."""
    known = getattr(getattr(node.target, "_schema", None), "arguments", ())
    for at, argument in enumerate(known):
        if argument.name == name:
            default = node.kwargs.get(name, argument.default_value)
            return node.args[at] if at < len(node.args) else default
    return None


def is_random(node: fx.Node) -> bool:
    """Tell whether a node draws at random: dropout does where it was not told of eval mode."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    share = next((p for key in ("p", "dropout_p") if (p := setting(node, key)) is not None), None)
    return share != 0 and not any(setting(node, key) is False for key in ("train", "training"))


def is_affine(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether a node is affine in what it reads of the ``moving`` nodes, row by row."""
    name = name_of(node)
    if _rounds(node, moving) or _reads_numbers_of_rows(node, moving):
        return False
    if name in SUMS:
        return True
    divisor = node.args[1] if name == "div" else None
    if isinstance(divisor, fx.Node) and moving(divisor):
        return False
    if name == "batch_norm" and (setting(node, "training") or not moving(arguments(node)[0])):
        return False
    if not _multiplies_row_by_row(node, moving):
        return False
    return name in AFFINE and sum(map(moving, arguments(node))) <= 1


def _rounds(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether a node makes numbers of a precision, or a kind, that does not hold its own."""
    made = _dtypes(node)
    read = [dtype for arg in arguments(node) if moving(arg) for dtype in _dtypes(arg)]
    return (
        node.kwargs.get("rounding_mode") is not None
        or not all(dtype.is_floating_point for dtype in made)
        or any(torch.promote_types(before, after) != after for before in read for after in made)
    )


def _dtypes(node: fx.Node) -> list[torch.dtype]:
    value = node.meta.get("val")
    values = value if isinstance(value, tuple | list) else [value]
    return [v.dtype for v in values if isinstance(v, Tensor)]


def _reads_numbers_of_rows(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether a node computes with how many rows there are, or with a number for each."""
    if name_of(node) not in {"mul", "div", *SUMS}:
        return False
    return any(_counts_rows(arg) for arg in arguments(node) if not moving(arg))


def _counts_rows(node: fx.Node) -> bool:
    if isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat):
        return True
    read = [] if name_of(node) in SHAPES else arguments(node)
    if name_of(node) in _SIZED:
        read = [arg for arg in read if isinstance(arg.meta.get("val"), Tensor)]
    return any(map(_counts_rows, read))


def _multiplies_row_by_row(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether a product, if it is one, does not sum over the rows of the batch."""
    name, args = name_of(node), node.args
    if name == "einsum":
        return _sums_within_rows(node, moving)
    for at, least in zip(_PRODUCTS.get(name, ()), (2, 3), strict=False):
        factor = args[at]
        if isinstance(factor, fx.Node) and moving(factor) and factor.meta["val"].ndim < least:
            return False
    return True


def _sums_within_rows(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether the first index of what moves is the first index of what einsum makes."""
    before, arrow, after = str(node.args[0]).replace(" ", "").replace("...", ".").partition("->")
    if not arrow:
        after = "".join(sorted(i for i in set(before) - {","} if i == "." or before.count(i) == 1))
    indices = zip(before.split(","), arguments(node), strict=True)
    return all(index[:1] == after[:1] for index, arg in indices if moving(arg))


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


def extreme(node: fx.Node) -> float:
    """Return 1 for the larger of two tensors, -1 for the smaller, and 0 for anything else."""
    name, form = name_of(node), getattr(node.target, "_overloadname", "")
    if name in ("max", "min") and form != "other":
        return 0.0
    return {"maximum": 1.0, "max": 1.0, "minimum": -1.0, "min": -1.0}.get(name, 0.0)


def bends(node: fx.Node, moving: Callable[[fx.Node], bool]) -> Callable[..., list[Tensor]] | None:
    """Return what gives, from a node's arguments, tensors at whose zeros its slope changes.

    None where the operation is not known to be continuous and piecewise linear.
    """
    name = name_of(node)
    if extreme(node):
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

    Of several tensors the first counts; the others have nodes of their own if they are used. In no
    other dimension may the size depend on the number of rows, or rows could change their places.
    """
    if _shuffles(node):
        return False
    value = node.meta.get("val")
    value = value[0] if isinstance(value, tuple | list) else value
    if not isinstance(value, Tensor):
        return True
    size, *others = value.shape or [None]
    if any(isinstance(other, torch.SymInt) for other in others):
        return False
    return isinstance(size, torch.SymInt) and str(size) == str(batch)


def _shuffles(node: fx.Node) -> bool:
    """Tell whether a node changes the places of the rows, of which there stay as many."""
    name = name_of(node)
    if name not in ("flip", "roll", "index_select", "pad", "constant_pad_nd"):
        return False
    dimensions = arguments(node)[0].meta["val"].ndim
    if "pad" in name:
        return any(setting(node, "pad")[2 * dimensions - 2 :])
    dims = setting(node, "dim") if name == "index_select" else setting(node, "dims")
    listed = [dims] if isinstance(dims, int) else dims or [0]
    return any(dim % dimensions == 0 for dim in listed)
