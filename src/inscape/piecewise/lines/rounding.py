"""Rounding errors of pre-activations, estimated from the sizes of their summands."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, Integer
from torch import Tensor, fx

from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.graph.ops import name_of
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp

#: Rounding error of a sum, as a fraction of the sizes of its summands.
NOISE = 64 * float(np.finfo(np.float64).eps)

#: Their weights have both signs, so that sizes would cancel.
_SIGNED = ("diff", "upsample_bicubic2d", "_upsample_bicubic2d_aa")

_NORMS = ("batch_norm", "_native_batch_norm_legit_no_training", "_batch_norm_no_update")

Values = dict[fx.Node, Any]


@torch.no_grad()
def with_sizes(
    net: Piecewise,
    x: Float64[Tensor, "n *d"],
    at: int,
    group: Int64[Tensor, " n"],
    patterns: Sequence[Tensor] | None = None,
) -> tuple[Float64[Tensor, "n m"], Float64[Tensor, "g m"]]:
    """Return the pre-activations of operation ``at``, and the sizes of their summands per group.

    For W h + b that is |W| |h| + |b|, where |h| is the largest of a group of neighbouring rows,
    each entry for itself: the scale of one unit does not bear on another.
    """
    program, op = net.program, net.ops[at]
    number = {other.node: k for k, other in enumerate(net.ops)}
    needed, near = {op.node} | _before(op.node, ()), _before(op.node, number)
    reader = {arg: node for node in program.nodes if node in needed for arg in node.all_input_nodes}
    values: Values = {**program.constants, program.input: x}
    sized: Values = {program.input: largest(x, group)}
    for node in program.nodes:
        if node is op.node:
            break
        if node not in needed:
            continue
        k = number.get(node)
        if patterns is None or k is None:
            values[node] = program.step(node, values)
        else:
            args, kwargs = _arguments(node, values)
            values[node] = net.ops[k].chosen(patterns[k], *args, **kwargs)
        if node in near and k is not None:
            sized[node] = largest(values[node], group)
        elif node in near and any(arg in sized for arg in node.all_input_nodes):
            sized[node] = sizes_after(node, values, sized)
        for arg in node.all_input_nodes:
            if reader[arg] is node:
                del values[arg]
    args, kwargs = _arguments(op.node, values)
    functions = op.source(*args, **kwargs).expand(len(x), -1)
    return functions, summands(net, at, values, sized).expand(int(group[-1] - group[0]) + 1, -1)


def settled_run(net: Piecewise, x: Float64[Tensor, "n *d"]) -> tuple[Tensor, list[Tensor]]:
    """Return the outputs and the activation patterns of all piecewise-linear operations.

    On a line inside a kink rounding alone would decide, differently from point to point: a unit
    within rounding of its kink counts as a tie.
    """
    program, ops = net.program, {op.node: op for op in net.ops}
    whole = torch.zeros(len(x), dtype=torch.int64)
    values: Values = {**program.constants, program.input: x}
    sized: Values = {program.input: largest(x, whole)}
    patterns: list[Tensor] = []
    for node in program.nodes:
        if (op := ops.get(node)) is None:
            values[node] = program.step(node, values)
            if any(arg in sized for arg in node.all_input_nodes):
                sized[node] = sizes_after(node, values, sized)
            continue
        args, kwargs = _arguments(node, values)
        functions = op.source(*args, **kwargs).detach().expand(len(x), -1)
        most = NOISE * summands(net, len(patterns), values, sized)
        patterns.append(_settled(net, x.detach(), functions, most, patterns))
        values[node] = op.chosen(patterns[-1], *args, **kwargs)
        sized[node] = largest(values[node], whole)
    return values[program.output], patterns


@torch.no_grad()
def _settled(
    net: Piecewise, x: Tensor, functions: Tensor, most: Tensor, before: Sequence[Tensor]
) -> Integer[Tensor, "n units"]:
    """Return the activation pattern of the operation after those given, ties decided.

    ``most`` is the rounding error of all rows together; only rows within it are examined.
    """
    at = len(before)
    op, pattern = net.ops[at], net.ops[at].pattern(functions)
    rows = _in_doubt(op, functions, most).nonzero()[:, 0]
    if not len(rows):
        return pattern
    doubtful, fixed = functions[rows], [patterns[rows] for patterns in before]
    noise = NOISE * with_sizes(net, x[rows], at, torch.arange(len(rows)), fixed)[1]
    if op.windows is None:
        pattern[rows] = (doubtful > noise).to(pattern.dtype)
    else:
        entries, near = doubtful[:, op.windows], noise[:, op.windows].amax(2, keepdim=True)
        ties = entries >= entries.amax(2, keepdim=True) - near
        pattern[rows] = ties.to(torch.uint8).argmax(2).to(pattern.dtype)
    return pattern


def _in_doubt(op: PiecewiseOp, functions: Tensor, noise: Tensor) -> Bool[Tensor, " n"]:
    """Tell which rows are within rounding of a kink, without lying on it."""
    if op.windows is None:
        return ((functions != 0) & (functions.abs() <= noise)).any(1)
    entries, near = functions[:, op.windows], noise[:, op.windows].amax(2, keepdim=True)
    behind = entries.amax(2, keepdim=True) - entries
    return ((behind > 0) & (behind <= near)).flatten(1).any(1)


def _before(node: fx.Node, stops: Collection[fx.Node]) -> set[fx.Node]:
    """Return the ancestors of a node, back to given nodes."""
    ancestors: set[fx.Node] = set()
    stack = list(node.all_input_nodes)
    while stack:
        arg = stack.pop()
        if arg not in ancestors:
            ancestors.add(arg)
            stack += [] if arg in stops else arg.all_input_nodes
    return ancestors


def largest(values: Tensor, group: Int64[Tensor, " n"]) -> Tensor:
    """Return the largest size of each entry among the rows of a group."""
    if int(group[-1]) == int(group[0]):
        flat = values.detach()
        return torch.maximum(flat.amax(0, keepdim=True), -flat.amin(0, keepdim=True))
    rows = values.detach().abs().expand(len(group), *values.shape[1:])
    firsts = np.flatnonzero(np.concatenate([[True], group.diff().numpy() > 0]))
    return torch.from_numpy(np.maximum.reduceat(rows.numpy(), firsts, axis=0))


def _arguments(node: fx.Node, values: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args: tuple[Any, ...] = fx.node.map_arg(node.args, values.__getitem__)
    kwargs: dict[str, Any] = fx.node.map_arg(node.kwargs, values.__getitem__)
    return args, kwargs


def _size(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_size, value))
    return value.abs() if isinstance(value, Tensor) and value.is_floating_point() else value


@torch.no_grad()
def sizes_after(node: fx.Node, values: Values, sized: Values) -> Any:
    """Propagate sizes through an affine node, without cancellation."""
    known = {
        arg: sized[arg] if arg in sized else _size(values[arg]) for arg in node.all_input_nodes
    }
    args, kwargs = _arguments(node, known)
    name = name_of(node)
    if name in ("add", "sub", "rsub"):
        weight = abs(kwargs.get("alpha", args[2] if len(args) > 2 else 1))
        first, second = (abs(arg) for arg in args[:2])
        return weight * first + second if name == "rsub" else first + weight * second
    if name == "lerp":
        return abs(args[0]) + abs(args[2]) * (abs(args[0]) + abs(args[1]))
    if name == "addcmul":
        return abs(args[0]) + abs(kwargs.get("value", 1)) * abs(args[1] * args[2])
    if name in _SIGNED:
        shape = node.meta["val"].shape[1:]  # no sum is larger than twice the largest entry
        most = args[0].flatten(1).amax(1).reshape(-1, *[1] * len(shape))
        return 2 * most.expand(-1, *map(int, shape))
    if name in _NORMS:
        mean = node.args[3]
        assert isinstance(mean, fx.Node)
        known[mean] = -known[mean]
        args, kwargs = _arguments(node, known)
    assert callable(node.target)
    return _size(node.target(*args, **kwargs))


@torch.no_grad()
def summands(net: Piecewise, at: int, values: Values, sized: Values) -> Tensor:
    """Return the sizes of an operation's pre-activations; of z - limit the sum of both."""
    op = net.ops[at]
    bounds = []
    for sign in (1.0, -1.0):
        known = {
            arg: sign * sized[arg] if arg in sized else values[arg]
            for arg in op.node.all_input_nodes
        }
        args, kwargs = _arguments(op.node, known)
        bounds.append(op.source(*args, **kwargs).abs())
    return torch.maximum(*bounds)
