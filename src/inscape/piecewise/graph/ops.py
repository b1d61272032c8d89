"""Which operations of an exported graph are affine, and which have known breakpoints."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

#: Where this package and torch lie: what is written there is not the user's.
_HOMES = {Path(__file__).parents[2], Path(torch.__file__).parent}

#: Other names of the same operations, with the same arguments.
_ALIASES = {
    **{"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub"},
    **{"negative": "neg", "absolute": "abs", "clip": "clamp"},
    **{"swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim"},
}

#: Affine in one tensor argument as long as the others are constant.
AFFINE = frozenset(
    {
        *("linear", "addmm", "mm", "mv", "matmul", "bmm", "einsum"),
        *("mul", "div", "neg", "positive", "mean", "sum", "cumsum", "diff"),
        *("convolution", "conv1d", "conv2d", "conv3d"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        *("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"),
        *("batch_norm", "_native_batch_norm_legit_no_training", "_batch_norm_no_update"),
        *("view", "_unsafe_view", "reshape", "flatten", "unflatten", "permute", "transpose", "t"),
        *("numpy_T", "movedim", "unsqueeze", "squeeze", "expand", "broadcast_to", "clone", "to"),
        *("contiguous", "detach", "alias", "lift_fresh_copy", "_to_copy", "getitem"),
        *("slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind"),
        *("index", "index_select", "flip", "rot90", "roll", "pad", "constant_pad_nd", "diagonal"),
        *("repeat", "tile", "repeat_interleave", "unfold", "im2col", "col2im"),
        *("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"),
        *("avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d"),
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
        *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
        *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
        *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"),
        *("upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
    }
)

#: Affine in all their tensor arguments together.
SUMS = frozenset(
    {
        *("add", "sub", "rsub", "cat", "concat", "concatenate", "stack"),
        *("hstack", "vstack", "row_stack", "dstack", "column_stack"),
    }
)

#: Affine in all their tensor arguments, as long as that at one of these places is constant.
_WEIGHED = {"lerp": (2,), "where": (0,), "masked_fill": (1,), "addcmul": (1, 2)}

#: Their second argument lends them its shape and nothing else.
_LIKE = frozenset({"expand_as", "view_as", "reshape_as"})

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
    written = _written(node)
    return _ALIASES.get(written, written)


def _written(node: fx.Node) -> str:
    target = node.target
    if isinstance(target, str):
        return target
    schema = getattr(target, "_schema", None)
    return schema.name.split("::")[-1] if schema is not None else getattr(target, "__name__", "?")


def place_of(node: fx.Node) -> str:
    """Say in which module of the model a node was written."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values() if path]
    return f"{_written(node)!r} in module {paths[-1]!r}" if paths else f"{_written(node)!r}"


def line_of(node: fx.Node) -> str:
    """Say in which line of which file a node was written, in brackets; nothing if not known."""
    lines = re.findall(r'File "([^"<]+)", line (\d+)', node.meta.get("stack_trace") or "")
    known = [(path, line) for path, line in lines if not _HOMES & {*Path(path).parents}]
    return f" (line {known[-1][1]} of {Path(known[-1][0]).name})" if known else ""


def arguments(node: fx.Node) -> list[fx.Node]:
    """Return the nodes that a node reads, as often as it reads them: x * x reads x twice."""
    nodes: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), nodes.append)
    return nodes


def setting(node: fx.Node, name: str) -> Any:
    """Return an argument of a node by its name, given or by default; None where it has none."""
    known = getattr(getattr(node.target, "_schema", None), "arguments", ())
    for at, argument in enumerate(known):
        if argument.name == name:
            default = node.kwargs.get(name, argument.default_value)
            return node.args[at] if at < len(node.args) else default
    return None


def is_random(node: fx.Node) -> bool:
    """Tell whether a node draws at random: dropout does unless it is in eval mode."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    fraction = next(
        (p for key in ("p", "dropout_p") if (p := setting(node, key)) is not None), None
    )
    return fraction != 0 and not any(setting(node, key) is False for key in ("train", "training"))


def is_affine(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether a node is affine in its ``moving`` arguments and acts on each row alone."""
    name = name_of(node)
    if _rounds(node, moving) or _reads_numbers_of_rows(node, moving):
        return False
    if name in SUMS or name in _LIKE:
        return True
    if name in _WEIGHED:
        given = [node.args[at] for at in _WEIGHED[name]]
        return not all(isinstance(arg, fx.Node) and moving(arg) for arg in given)
    divisor = node.args[1] if name == "div" else None
    if isinstance(divisor, fx.Node) and moving(divisor):
        return False
    if name == "batch_norm" and (setting(node, "training") or not moving(arguments(node)[0])):
        return False
    if not _multiplies_row_by_row(node, moving):
        return False
    return name in AFFINE and sum(map(moving, arguments(node))) <= 1


def _rounds(node: fx.Node, moving: Callable[[fx.Node], bool]) -> bool:
    """Tell whether a node casts to a dtype that cannot hold its values."""
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
    """Tell whether a node computes with the batch size, or with the index of a row."""
    if name_of(node) not in {"mul", "div", *SUMS, *_WEIGHED}:
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
    signs = {"maximum": 1.0, "max": 1.0, "fmax": 1.0, "minimum": -1.0, "min": -1.0, "fmin": -1.0}
    return signs.get(name, 0.0)


def ops(node: fx.Node, moving: Callable[[fx.Node], bool]) -> Callable[..., list[Tensor]] | None:
    """Return a function from a node's arguments to tensors whose zeros are its breakpoints.

    None where the operation is not known to be continuous and piecewise linear.
    """
    name = name_of(node)
    if extreme(node):
        return lambda first, second: [first - second]
    if any(isinstance(arg, fx.Node) and moving(arg) for arg in node.args[1:]):
        return None
    if is_relu(node) or name in ("abs", "leaky_relu", "prelu", "rrelu"):
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
    "hardsigmoid": lambda z: _clamped(z, -3.0, 3.0),
    "softshrink": lambda z, size=0.5: _clamped(z, -size, size),
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


#: They change the places of entries along dimensions, or sum up along one: where these stand.
_ALONG = {"flip": "dims", "rot90": "dims", "roll": "dims", "index_select": "dim", "cumsum": "dim"}


def _shuffles(node: fx.Node) -> bool:
    """Tell whether a node changes the places of the rows, of which there stay as many."""
    name = name_of(node)
    if name == "index":
        return bool(setting(node, "indices")[0] is not None)
    if name not in (*_ALONG, "pad", "constant_pad_nd"):
        return False
    dimensions = arguments(node)[0].meta["val"].ndim
    if "pad" in name:
        return any(setting(node, "pad")[2 * dimensions - 2 :])
    dims = setting(node, _ALONG[name])
    listed = [dims] if isinstance(dims, int) else dims or [0]
    return any(dim % dimensions == 0 for dim in listed)
