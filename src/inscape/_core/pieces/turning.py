"""How much the whole gradient of a network turns along segments: its jumps where pieces meet."""

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.deadline import NEVER, Deadline
from inscape._core.errors import UnsupportedModelError
from inscape._core.front import Slopes
from inscape._core.functional import ROWS, jacobians, norm
from inscape._core.pieces.line_graph import Rows, differentiable
from inscape._core.pieces.line_segments import Lines

#: Pieces at which gradients are held against slopes.
ASKED = 64


def turning(
    rows: Rows, found: Lines, *, joined: bool = False, closed: bool = False, instead: str
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, " joints"]]:
    """Return the gradient's variation inside each segment, and its jumps from one to the next.

    The jumps are those at the inner vertices of a polyline and, where it is closed, at its first;
    none where the segments are not joined. ``instead`` says what else a user may do whose model has
    no such gradient.
    """
    return summed(found, jumps(rows, found, instead=instead), joined=joined, closed=closed)


def summed(
    found: Lines, jumps: Float64[Tensor, " _"], *, joined: bool, closed: bool
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, " joints"]]:
    """Return the sum of the jumps inside each segment, and those from one segment to the next."""
    inner = found.inner
    inside = found.total(jumps[inner], found.segment[inner])
    if not joined:
        return inside, jumps[:0]
    firsts = found.pieces.cumsum(0)
    return inside, jumps[firsts if closed else firsts[:-1]]


def jumps(
    rows: Rows, found: Lines, *, instead: str, deadline: Deadline = NEVER
) -> Float64[Tensor, " _"]:
    """Return how far the gradient of each piece is from that of the piece before it.

    The first of them has none; after the last follows the first again. Where the time is over, the
    jumps of the first pieces alone are returned.
    """
    _refuse_other_slopes(rows, found, instead)
    order = torch.cat([torch.arange(len(found.segment)), torch.zeros(1, dtype=torch.int64)])
    gradients = Slopes(differentiable(rows.net), rows=len(order) * rows.net.outputs)
    sizes, step = [torch.zeros(1, dtype=torch.float64)], max(1, min(ROWS, rows.most) - 1)
    for first in range(0, len(order) - 1, step):
        some = order[first : first + step + 1]
        matrices, front = gradients.at(rows.at(found.segment[some], found.middles[some]))
        turns = matrices.diff(dim=0)
        sizes.append(norm(turns, dim=(1, 2)) if front is None else front.norm(turns))
        if deadline.passed():
            break
    return torch.cat(sizes)


def _refuse_other_slopes(rows: Rows, found: Lines, instead: str) -> None:
    """Hold gradients against slopes in some pieces: code that detaches has values without them."""
    some = torch.arange(len(found.segment))[:: max(1, len(found.segment) // ASKED)]
    segment = found.segment[some]
    gradients = jacobians(differentiable(rows.net), rows.at(segment, found.middles[some]))
    way = (rows.b - rows.a)[segment].flatten(1)
    off = (gradients @ way[:, :, None])[:, :, 0] - found.slopes[some]
    if float(off.abs().max()) > 1e-6 * (1 + float(found.slopes.abs().max())):
        raise UnsupportedModelError(
            "the gradient of the model must belong to its values, but it does not: take .detach() "
            f"out of its forward, or {instead}."
        )
