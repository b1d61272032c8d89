"""Total variation of the gradient along segments: its jumps at the breakpoints."""

from collections.abc import Iterator

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape.errors import UnsupportedModelError
from inscape.functional.first_layer import JacobianFactors
from inscape.functional.jacobians import ROWS, jacobians, norm
from inscape.piecewise.lines.evaluation import SegmentEvaluation, differentiable
from inscape.piecewise.lines.segments import CutSegments

#: Pieces at which gradients are compared with the slopes along the segment.
ASKED = 64


def turning(
    rows: SegmentEvaluation,
    cuts: CutSegments,
    *,
    joined: bool = False,
    closed: bool = False,
    instead: str,
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, " joints"]]:
    """Return the gradient's variation inside each segment, and its jumps from one to the next.

    The jumps are those at the inner vertices of a polyline and, where it is closed, at its first;
    none where the segments are not joined. ``instead`` completes the error for a model whose
    gradient is detached: what the user may do instead.
    """
    return summed(cuts, jumps(rows, cuts, instead=instead), joined=joined, closed=closed)


def summed(
    cuts: CutSegments, jumps: Float64[Tensor, " _"], *, joined: bool, closed: bool
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, " joints"]]:
    """Return the sum of the jumps inside each segment, and those from one segment to the next."""
    inner = cuts.inner
    inside = cuts.total(jumps[inner], cuts.segment[inner])
    if not joined:
        return inside, jumps[:0]
    firsts = cuts.pieces.cumsum(0)
    return inside, jumps[firsts if closed else firsts[:-1]]


def jumps(rows: SegmentEvaluation, cuts: CutSegments, *, instead: str) -> Float64[Tensor, " _"]:
    """Return the norm of the gradient's jump from each piece to the next.

    The first of them has none; after the last follows the first again.
    """
    turns = Jumps(rows, instead)
    for _ in turns.steps(cuts):
        pass
    return turns.closed(cuts)


class Jumps:
    """Norms of the gradient's jumps between pieces, for a growing number of pieces.

    The first piece has none.
    """

    def __init__(self, rows: SegmentEvaluation, instead: str) -> None:
        self._rows, self._instead = rows, instead
        self._gradients: JacobianFactors | None = None
        self._sizes = [torch.zeros(1, dtype=torch.float64)]
        self.done = 0

    def steps(self, cuts: CutSegments) -> Iterator[None]:
        """Compute the jumps of new pieces, in batches."""
        if not self.done:
            _refuse_other_slopes(self._rows, cuts, self._instead)
        order = torch.arange(max(0, self.done - 1), len(cuts.segment))
        step = max(1, min(ROWS, self._rows.most) - 1)
        for first in range(0, max(len(order) - 1, not self.done), step):
            block = order[first : first + step + 1]
            self._sizes.append(self._between(cuts, block))
            self.done = int(block[-1]) + 1
            yield

    def _between(
        self, cuts: CutSegments, indices: Int64[Tensor, " k"]
    ) -> Float64[Tensor, " k_less_one"]:
        if self._gradients is None:
            net, pieces = self._rows.net, len(cuts.segment) + 1
            self._gradients = JacobianFactors(differentiable(net), rows=pieces * net.outputs)
        at = self._rows.at(cuts.segment[indices], cuts.middles[indices])
        matrices, front = self._gradients.at(at)
        turns = matrices.diff(dim=0)
        return norm(turns, dim=(1, 2)) if front is None else front.norm(turns)

    def known(self) -> Float64[Tensor, " done"]:
        """Return the jumps computed so far."""
        return torch.cat(self._sizes)

    def closed(self, cuts: CutSegments) -> Float64[Tensor, " done_and_one"]:
        """Return all jumps, and that from the last piece to the first."""
        last = self._between(cuts, torch.tensor([len(cuts.segment) - 1, 0]))
        return torch.cat([self.known(), last])


def _refuse_other_slopes(rows: SegmentEvaluation, cuts: CutSegments, instead: str) -> None:
    """Compare gradients with slopes in some pieces, to refuse models that detach."""
    pieces = len(cuts.segment)
    sample = torch.arange(pieces)[:: -(-pieces // min(ASKED, rows.most))]
    segment = cuts.segment[sample]
    gradients = jacobians(differentiable(rows.net), rows.at(segment, cuts.middles[sample]))
    direction = (rows.b - rows.a)[segment].flatten(1)
    off = (gradients @ direction[:, :, None])[:, :, 0] - cuts.slopes[sample]
    if float(off.abs().max()) > 1e-6 * (1 + float(cuts.slopes.abs().max())):
        raise UnsupportedModelError(
            "autograd must return the gradient of the model, but it does not: take .detach() "
            f"out of its forward, or {instead}."
        )
