"""Where the activation pattern changes between neighbouring points of a line."""

import numpy as np
import torch
from jaxtyping import Float64, Int64, Integer
from torch import Tensor

from inscape.piecewise.graph.piecewise_ops import PiecewiseOp
from inscape.piecewise.lines.rounding import NOISE


def changes(
    op: PiecewiseOp,
    functions: Float64[Tensor, "k m"],
    sizes: Float64[Tensor, "g m"],
    group: Int64[Tensor, " k"],
) -> tuple[Int64[Tensor, " found"], Float64[Tensor, " found"]]:
    """Return the pieces between neighbouring rows, and the fraction, where the pattern changes.

    ``sizes`` are those of what the functions of a segment, a group of rows, are summed from.
    """
    within = group.diff() == 0  # no piece lies between two segments
    if op.windows is not None:
        noise = NOISE * sizes[:, op.windows].amax(2)
        return _window_changes(functions, noise, torch.where(within, group[1:], -1), op.windows)
    above = functions > 0
    differs = above[1:] ^ above[:-1]
    if not bool(within.all()):
        differs &= within[:, None]
    piece, unit = torch.nonzero(differs, as_tuple=True)
    start, end = functions[piece, unit], functions[piece + 1, unit]
    crosses = (start != 0) & (end != 0)  # not only touches
    large = torch.maximum(start.abs(), end.abs()) > NOISE * sizes[group[piece], unit]
    return piece[crosses & large], (start / (start - end))[crosses & large]


def middle_pattern(
    op: PiecewiseOp, functions: Float64[Tensor, "k m"], left: Int64[Tensor, " pieces"]
) -> Integer[Tensor, "pieces units"]:
    """Return the activation patterns in the middle of pieces that begin at the given rows."""
    is_single = len(left) == len(functions) - 1  # segment: no need to copy
    ends = (functions[:-1], functions[1:]) if is_single else (functions[left], functions[left + 1])
    twice = ends[0] + ends[1]
    if op.windows is None:
        return op.pattern(twice)
    from inscape.piecewise.lines.maxima_kernels import winners

    choice = torch.empty(len(left), len(op.windows), dtype=torch.int64)
    winners(twice.numpy(), op.windows.contiguous().numpy(), choice.numpy())
    return choice


def _window_changes(
    functions: Tensor, noise: Tensor, group: Tensor, windows: Int64[Tensor, "w k"]
) -> tuple[Int64[Tensor, " found"], Float64[Tensor, " found"]]:
    """Return where the maximum of a window switches."""
    from inscape.piecewise.lines.maxima_kernels import window_changes

    room = len(functions) + len(windows)
    given = (
        functions.contiguous().numpy(),
        noise.numpy(),
        group.numpy(),
        windows.contiguous().numpy(),
    )
    while True:
        piece, fraction = np.empty(room, np.int64), np.empty(room)
        count = window_changes(*given, piece, fraction)
        if count <= room:
            return torch.from_numpy(piece[:count]), torch.from_numpy(fraction[:count])
        room = count
