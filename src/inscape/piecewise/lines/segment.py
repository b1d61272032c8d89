"""Cut a segment of the input space at every breakpoint of the network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, fx

from inscape.errors import UnsupportedModelError
from inscape.piecewise.graph.ops import (
    SHAPES,
    arguments,
    is_affine,
    keeps_batch,
    name_of,
    ops,
    place_of,
)
from inscape.piecewise.graph.program import Program

#: Knots nearer than this many roundings of the segment are one: coincident kinks count once.
NARROW = 4000

#: Where inside each piece the network is checked for being affine, as a fraction.
INSIDE = (0.381966, 0.723607)

PiecewiseOp = tuple[fx.Node, Callable[..., list[Tensor]]]


@dataclass(frozen=True, eq=False)
class Cut:
    """The breakpoints of f((1-t) a + t b), and its values there; linear in between."""

    t: Float64[Tensor, " knots"]
    values: Float[Tensor, "knots c"]


@torch.no_grad()
def cut(program: Program, a: Float[Tensor, "*d"], b: Float[Tensor, "*d"]) -> Cut:
    """Return all knots of a piecewise-linear network on the segment from ``a`` to ``b``.

    Exact up to rounding: every unit's zero is solved for on the pieces where it is linear, layer
    by layer, and the result is checked against the network inside every piece. Raises
    ``UnsupportedModelError`` naming the first operation that is not known to be piecewise linear.
    """
    ops = list(_ops(program))
    t = torch.tensor([0.0, 1.0], dtype=torch.float64, device=a.device)
    for node, zeros in ops:
        values = _arguments_at(program, node, torch.lerp(a, b, _column(t, a)))
        functions = zeros(*values[0], **values[1])
        crossings = [_crossings(t, z.expand(len(t), *z.shape[1:])) for z in functions]
        t = torch.unique(torch.cat([t, *crossings]))
    t = t[_distinct(t, a.dtype)]
    values_there = _values(program, a, b, t)
    _refuse_curved(program, a, b, t, values_there)
    return Cut(t=t, values=values_there)


def _ops(program: Program) -> Iterator[PiecewiseOp]:
    """Yield the piecewise-linear nodes in order, or name the first other nonlinear one."""
    moving = {program.input}
    for node in program.nodes:
        if name_of(node) in SHAPES or not any(arg in moving for arg in arguments(node)):
            continue
        moving.add(node)
        if not keeps_batch(node, program.batch):
            raise UnsupportedModelError(
                f"the batch must stay the first dimension, but {place_of(node)} moves it: "
                "ask for an estimate."
            )
        if is_affine(node, moving.__contains__):
            continue
        zeros = ops(node, moving.__contains__)
        if zeros is None:
            raise UnsupportedModelError(
                f"the network must be piecewise linear, found {place_of(node)}: "
                "ask for an estimate."
            )
        yield node, zeros


def _arguments_at(
    program: Program, node: fx.Node, x: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a node for the rows of ``x``."""
    wanted = arguments(node)
    values = dict(zip(wanted, program.run({program.input: x}, wanted), strict=True))
    args: tuple[Any, ...] = fx.node.map_arg(node.args, values.__getitem__)
    kwargs: dict[str, Any] = fx.node.map_arg(node.kwargs, values.__getitem__)
    return args, kwargs


def _values(program: Program, a: Tensor, b: Tensor, t: Float64[Tensor, " k"]) -> Tensor:
    y: Tensor = program.run({program.input: torch.lerp(a, b, _column(t, a))}, [program.output])[0]
    return y.expand(len(t), *y.shape[1:]).reshape(len(t), -1)


def _column(t: Float64[Tensor, " k"], a: Tensor) -> Tensor:
    return t.to(a.dtype).reshape(-1, *[1] * a.ndim)


def _crossings(t: Float64[Tensor, " knots"], z: Tensor) -> Float64[Tensor, " found"]:
    """Return where any entry of ``z``, linear between the knots, changes sign strictly inside."""
    z = z.reshape(len(t), -1).double()
    left, right = z[:-1], z[1:]
    piece, unit = torch.nonzero(left.sign() * right.sign() < 0, as_tuple=True)
    start, end = left[piece, unit], right[piece, unit]
    return t[piece] + (t[piece + 1] - t[piece]) * (start / (start - end))


def _distinct(t: Float64[Tensor, " knots"], dtype: torch.dtype) -> Bool[Tensor, " knots"]:
    """Keep one of each cluster of knots that differ by rounding; both ends stay."""
    narrow = NARROW * torch.finfo(dtype).eps
    keep, last = [True], 0.0
    for at in t[1:-1].tolist():
        keep.append(last + narrow < at < 1 - narrow)
        last = at if keep[-1] else last
    if dtype != torch.float64 and not all(keep):
        raise UnsupportedModelError(
            f"{dtype} cannot tell its knots apart: give the module itself, or float64."
        )
    return torch.tensor([*keep, True], device=t.device)


def _refuse_curved(program: Program, a: Tensor, b: Tensor, t: Tensor, values: Tensor) -> None:
    """Check the network inside every piece, so that no misread operation passes as exact."""
    scale = 1 + float(values.abs().max())
    tolerance = scale * torch.finfo(a.dtype).eps ** 0.5
    for fraction in INSIDE:
        inside = _values(program, a, b, torch.lerp(t[:-1], t[1:], fraction))
        if float((inside - torch.lerp(values[:-1], values[1:], fraction)).abs().max()) > tolerance:
            raise UnsupportedModelError(
                "the network must be linear between its knots, but it is not: ask for an estimate."
            )
