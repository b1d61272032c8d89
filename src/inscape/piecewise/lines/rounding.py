"""What goes into the functions of a bend: sums of sizes, of which their rounding is a share."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, Integer
from torch import Tensor, fx

from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.graph.ops import name_of
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp

#: A share of what a number is summed from that may be rounding.
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
    """Return what bend ``at`` looks at, for each row, and how large its summands are in a group.

    For W h + b that is |W| |h| + |b|, where |h| is the largest of a group of neighbouring rows,
    each entry for itself: the scale of one unit does not bear on another.
    """
    program, one = net.program, net.ops[at]
    number = {op.node: k for k, op in enumerate(net.ops)}
    needed, near = {one.node} | _before(one.node, ()), _before(one.node, number)
    reader = {arg: node for node in program.nodes if node in needed for arg in node.all_input_nodes}
    values: Values = {**program.constants, program.input: x}
    sized: Values = {program.input: largest(x, group)}
    for node in program.nodes:
        if node is one.node:
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
    args, kwargs = _arguments(one.node, values)
    functions = one.source(*args, **kwargs).expand(len(x), -1)
    return functions, summands(net, at, values, sized).expand(int(group[-1] - group[0]) + 1, -1)


def settled_run(net: Piecewise, x: Float64[Tensor, "n *d"]) -> tuple[Tensor, list[Tensor]]:
    """Return the outputs by the pieces that were chosen, and the choices of all bends.

    On a line that runs inside a kink rounding would choose, here and there otherwise: what it
    cannot tell from a tie is one.
    """
    program, ops = net.program, {op.node: op for op in net.ops}
    whole = torch.zeros(len(x), dtype=torch.int64)
    values: Values = {**program.constants, program.input: x}
    sized: Values = {program.input: largest(x, whole)}
    choices: list[Tensor] = []
    for node in program.nodes:
        if (op := ops.get(node)) is None:
            values[node] = program.step(node, values)
            if any(arg in sized for arg in node.all_input_nodes):
                sized[node] = sizes_after(node, values, sized)
            continue
        args, kwargs = _arguments(node, values)
        functions = op.source(*args, **kwargs).detach().expand(len(x), -1)
        most = NOISE * summands(net, len(choices), values, sized)
        choices.append(_settled(net, x.detach(), functions, most, choices))
        values[node] = op.chosen(choices[-1], *args, **kwargs)
        sized[node] = largest(values[node], whole)
    return values[program.output], choices


@torch.no_grad()
def _settled(
    net: Piecewise, x: Tensor, functions: Tensor, most: Tensor, before: Sequence[Tensor]
) -> Integer[Tensor, "n units"]:
    """Return the choices of the bend after those given, whose functions have these values.

    ``most`` is the noise of all rows together; only those that it puts in doubt are weighed.
    """
    at = len(before)
    one, pattern = net.ops[at], net.ops[at].pattern(functions)
    rows = _in_doubt(one, functions, most).nonzero()[:, 0]
    if not len(rows):
        return pattern
    some, fixed = functions[rows], [choices[rows] for choices in before]
    noise = NOISE * with_sizes(net, x[rows], at, torch.arange(len(rows)), fixed)[1]
    if one.windows is None:
        pattern[rows] = (some > noise).to(pattern.dtype)
    else:
        entries, near = some[:, one.windows], noise[:, one.windows].amax(2, keepdim=True)
        ties = entries >= entries.amax(2, keepdim=True) - near
        pattern[rows] = ties.to(torch.uint8).argmax(2).to(pattern.dtype)
    return pattern


def _in_doubt(one: PiecewiseOp, functions: Tensor, noise: Tensor) -> Bool[Tensor, " n"]:
    """Tell which rows come as near to a kink as the noise, without lying on it."""
    if one.windows is None:
        return ((functions != 0) & (functions.abs() <= noise)).any(1)
    entries, near = functions[:, one.windows], noise[:, one.windows].amax(2, keepdim=True)
    behind = entries.amax(2, keepdim=True) - entries
    return ((behind > 0) & (behind <= near)).flatten(1).any(1)


def _before(node: fx.Node, stops: Collection[fx.Node]) -> set[fx.Node]:
    """Return the nodes that a node comes from, back to these."""
    found: set[fx.Node] = set()
    stack = list(node.all_input_nodes)
    while stack:
        arg = stack.pop()
        if arg not in found:
            found.add(arg)
            stack += [] if arg in stops else arg.all_input_nodes
    return found


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
    """Do to sizes what an affine node does to values, without that anything cancels."""
    known = {
        arg: sized[arg] if arg in sized else _size(values[arg]) for arg in node.all_input_nodes
    }
    args, kwargs = _arguments(node, known)
    name = name_of(node)
    if name in ("add", "sub", "rsub"):
        weight = abs(kwargs.get("alpha", args[2] if len(args) > 2 else 1))
        one, two = (abs(arg) for arg in args[:2])
        return weight * one + two if name == "rsub" else one + weight * two
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
    """Return the sizes of a bend's functions; of z - limit the sum of both."""
    one = net.ops[at]
    found = []
    for sign in (1.0, -1.0):
        known = {
            arg: sign * sized[arg] if arg in sized else values[arg]
            for arg in one.node.all_input_nodes
        }
        args, kwargs = _arguments(one.node, known)
        found.append(one.source(*args, **kwargs).abs())
    return torch.maximum(*found)
