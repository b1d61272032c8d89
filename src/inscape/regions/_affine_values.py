"""Affine functions of a network with fixed patterns, read off at a point and one step from it."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from inscape._core.sampling import generator
from inscape.functional.jacobians import MEMORY
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp
from inscape.piecewise.lines.rounding import NOISE, with_sizes

#: Copies of the widest values that one evaluation of a batch takes.
COPIES = 6


def affine_values(
    net: Piecewise,
    point: Float64[Tensor, "*d"],
    patterns: Sequence[Tensor],
    *,
    at: int | None = None,
    memory: int = MEMORY,
) -> tuple[Float64[Tensor, "m D"], Float64[Tensor, " m"]]:
    """Return Jacobian and values of the outputs, or pre-activations of ``at``, at a point.

    With the patterns of the point fixed they are affine. The Jacobian is computed from differences
    between unit vectors and zero, in chunks; entries within their rounding are zero.
    """
    d, shape = net.inputs, net.input_shape

    def values(rows: Tensor) -> Tensor:
        fixed = [pattern.expand(len(rows), -1) for pattern in patterns]
        return net.values(rows, fixed) if at is None else net.functions(rows, at, fixed)

    zero, at_point = values(torch.stack([torch.zeros_like(point), point]))
    slopes = torch.empty(len(zero), d, dtype=torch.float64)
    widest = max(len(zero), d, *(pattern.shape[1] for pattern in patterns))
    rows = max(1, min(d, memory // (8 * COPIES * widest)))
    for start in range(0, d, rows):
        count = min(rows, d - start)
        steps = torch.zeros(count, d, dtype=torch.float64)
        steps[torch.arange(count), start + torch.arange(count)] = 1.0
        slopes[:, start : start + count] = (values(steps.reshape(-1, *shape)) - zero).T
    noise = 1e-14 * (zero.abs() + slopes.abs().amax(1))
    slopes[slopes.abs() <= noise[:, None]] = 0.0
    return slopes, at_point


def ties(
    net: Piecewise, x: Float64[Tensor, "n *d"], patterns: Sequence[Tensor]
) -> Bool[Tensor, " n"]:
    """Tell which points lie exactly on a kink of some unit.

    Functions that are equal all around a point make no kink there, such as two units that are off
    in one window of max pooling: those are equal at a second place, too.
    """
    draw = torch.randn(x.shape[1:], generator=generator(0), dtype=torch.float64)
    away = x + (1.0 + x.abs().max()) * draw
    is_tied = torch.zeros(len(x), dtype=torch.bool)
    for at, op in enumerate(net.ops):
        near = net.functions(x, at, patterns)
        far, sizes = with_sizes(net, away, at, torch.arange(len(x)), patterns)
        pattern = patterns[at].long().expand(len(x), -1)
        equal = _gaps(op, near, pattern) == 0
        if op.windows is not None:
            sizes = sizes[:, op.windows].amax(2, keepdim=True).expand(-1, -1, len(op.windows[0]))
        is_distinct = _gaps(op, far, pattern).abs() > NOISE * sizes.flatten(1)
        is_tied |= (equal & is_distinct).any(1)
    return is_tied


def _gaps(op: PiecewiseOp, functions: Tensor, pattern: Tensor) -> Float64[Tensor, "n gaps"]:
    """Return how far each unit is from its kink, or each entry of a window from its maximum."""
    if op.windows is None:
        return functions
    window = functions[:, op.windows]
    chosen = window.gather(2, pattern.unsqueeze(2))
    gaps = window - chosen
    return gaps.scatter(2, pattern.unsqueeze(2), -1.0).flatten(1)
