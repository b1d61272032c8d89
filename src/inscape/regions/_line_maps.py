"""What the pieces of lines have beside their slopes: patterns, and affine maps in input space."""

import torch
from jaxtyping import Integer
from torch import Tensor

from inscape._core import BudgetError
from inscape._core.deadline import Deadline
from inscape._core.functional import jacobians
from inscape._core.pieces.line_graph import Rows, differentiable, settled_patterns
from inscape._core.pieces.line_segments import Lines

#: Numbers that maps in input space, or patterns, may hold in all: 512 MiB of float64.
LARGEST = 2**26


def patterns_of(rows: Rows, found: Lines, deadline: Deadline) -> Integer[Tensor, "pieces units"]:
    """Return the choices of all units in the middle of the pieces that there is time for."""
    units = sum(len(p[0]) for p in rows.net.patterns(rows.a[:1]))
    _refuse_large(len(found.segment) * units, "patterns")
    parts = []
    for _, at in rows.parts(found.segment, found.middles):
        parts.append(torch.cat(settled_patterns(rows.net, at), 1))
        if deadline.passed():
            break
    return torch.cat(parts)


def maps_of(rows: Rows, found: Lines, deadline: Deadline) -> tuple[Tensor, Tensor]:
    """Return matrix and constant of the affine maps of the pieces that there is time for.

    A line that runs inside a kink has the map of the pattern in the middle there, with ties off.
    """
    net = rows.net
    _refuse_large(len(found.segment) * net.outputs * net.inputs, "maps")
    matrices, constants = [], []
    for _, at in rows.parts(found.segment, found.middles):
        matrices.append(jacobians(differentiable(net), at))
        constants.append(net.values(at) - (matrices[-1] @ at.flatten(1)[:, :, None])[:, :, 0])
        if deadline.passed():
            break
    return torch.cat(matrices), torch.cat(constants)


def _refuse_large(numbers: int, name: str) -> None:
    if numbers > LARGEST:
        raise BudgetError(
            f"{name} of all pieces must hold at most {LARGEST} numbers, but they would hold "
            f"{numbers}: take fewer segments."
        )
