"""Cut a segment of the input space at every place where the network bends."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, fx

from inscape._core.errors import UnsupportedModelError
from inscape._core.pieces.ops import AFFINE, SHAPES, SUMS, bends, name_of, place_of
from inscape._core.pieces.program import Program

#: Pieces narrower than this many roundings of the segment are none: coincident bends count once.
NARROW = 4000


@dataclass(frozen=True, eq=False)
class Cut:
    """Where f((1-t) a + t b) bends, and its values there; linear in between."""

    t: Float[Tensor, " knots"]
    values: Float[Tensor, "knots c"]


@torch.no_grad()
def cut(program: Program, a: Float[Tensor, "*d"], b: Float[Tensor, "*d"]) -> Cut:
    """Return all knots of a piecewise-linear network on the segment from ``a`` to ``b``.

    Exact up to rounding: every unit's zero is solved for on the pieces where it is linear. Raises
    ``UnsupportedModelError`` naming the first operation that is not known to be piecewise linear.
    """
    t = torch.tensor([0.0, 1.0], dtype=a.dtype, device=a.device)
    moving: dict[fx.Node, Any] = {program.input: torch.stack([a, b])}
    constants: dict[fx.Node, Any] = dict(program.constants)
    for node in program.nodes:
        if not any(arg in moving for arg in node.all_input_nodes):
            constants[node] = program.step(node, constants)
            continue
        if name_of(node) not in SHAPES and not _is_affine(node, moving):
            t = _cut_at(node, t, moving, constants)
        moving[node] = program.step(node, {**constants, **moving})
    y = moving[program.output] if program.output in moving else constants[program.output]
    y = y.expand(len(t), *y.shape[1:]).reshape(len(t), -1)
    keep = _distinct(t)
    return Cut(t=t[keep], values=y[keep])


def _distinct(t: Float[Tensor, " knots"]) -> Tensor:
    """Choose one of each cluster of knots that rounding has drawn apart; both ends stay."""
    narrow = NARROW * torch.finfo(t.dtype).eps
    keep = torch.cat([t.new_ones(1, dtype=torch.bool), t.diff() > narrow])
    keep &= 1 - t > narrow
    keep[0] = keep[-1] = True
    return keep


def _is_affine(node: fx.Node, moving: dict[fx.Node, Any]) -> bool:
    name = name_of(node)
    if name in SUMS:
        return True
    divisor = node.args[1] if name == "div" else None
    return name in AFFINE and divisor not in moving and _moving_args(node, moving) == 1


def _moving_args(node: fx.Node, moving: dict[fx.Node, Any]) -> int:
    """Count the arguments whose values vary along the segment (sizes do not)."""
    return sum(isinstance(moving.get(arg), (Tensor, tuple, list)) for arg in node.all_input_nodes)


def _cut_at(
    node: fx.Node, t: Tensor, moving: dict[fx.Node, Any], constants: dict[fx.Node, Any]
) -> Tensor:
    """Add the zeros at which ``node`` bends to ``t`` and to every moving value."""
    zeros = bends(node, _lookup({**constants, **moving}))
    if zeros is None:
        raise UnsupportedModelError(
            f"the network must be piecewise linear, found {place_of(node)}: ask for an estimate."
        )
    crossings = torch.cat([_crossings(t, z.expand(len(t), *z.shape[1:])) for z in zeros])
    new: Tensor = torch.unique(torch.cat([t, crossings]))
    left = (torch.searchsorted(t, new, right=True) - 1).clamp(0, len(t) - 2)
    share = (new - t[left]) / (t[left + 1] - t[left])
    for key, value in moving.items():
        if isinstance(value, Tensor) and value.ndim and len(value) == len(t):
            weight = share.reshape(-1, *[1] * (value.ndim - 1)).to(value.dtype)
            moving[key] = torch.lerp(value[left], value[left + 1], weight)
    return new


def _lookup(values: dict[fx.Node, Any]) -> Callable[[Any], Any]:
    return lambda arg: values[arg] if isinstance(arg, fx.Node) else arg


def _crossings(t: Float[Tensor, " knots"], z: Tensor) -> Float[Tensor, " found"]:
    """Return where any entry of ``z``, linear between the knots, changes sign strictly inside."""
    z = z.reshape(len(t), -1)
    left, right = z[:-1], z[1:]
    piece, unit = torch.nonzero(left * right < 0, as_tuple=True)
    start, end = left[piece, unit], right[piece, unit]
    return t[piece] + (t[piece + 1] - t[piece]) * (start / (start - end))
