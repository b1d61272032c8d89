"""How much the whole gradient of a network turns along segments: its jumps where pieces meet."""

from collections.abc import Iterator

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape.errors import UnsupportedModelError
from inscape.functional.first_layer import Slopes
from inscape.functional.jacobians import ROWS, jacobians, norm
from inscape.piecewise.lines.evaluation import Rows, differentiable
from inscape.piecewise.lines.segments import Lines

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


def jumps(rows: Rows, found: Lines, *, instead: str) -> Float64[Tensor, " _"]:
    """Return how far the gradient of each piece is from that of the piece before it.

    The first of them has none; after the last follows the first again.
    """
    turns = Jumps(rows, instead)
    for _ in turns.steps(found):
        pass
    return turns.closed(found)


class Jumps:
    """How far the gradient of each piece is from that of the piece before it, of ever more pieces.

    The first piece has none.
    """

    def __init__(self, rows: Rows, instead: str) -> None:
        self._rows, self._instead = rows, instead
        self._gradients: Slopes | None = None
        self._sizes = [torch.zeros(1, dtype=torch.float64)]
        self.done = 0

    def steps(self, found: Lines) -> Iterator[None]:
        """Look at the pieces that were not known before, some at a time."""
        if not self.done:
            _refuse_other_slopes(self._rows, found, self._instead)
        order = torch.arange(max(0, self.done - 1), len(found.segment))
        step = max(1, min(ROWS, self._rows.most) - 1)
        for first in range(0, max(len(order) - 1, not self.done), step):
            some = order[first : first + step + 1]
            self._sizes.append(self._between(found, some))
            self.done = int(some[-1]) + 1
            yield

    def _between(self, found: Lines, some: Int64[Tensor, " k"]) -> Float64[Tensor, " k_less_one"]:
        if self._gradients is None:
            net, pieces = self._rows.net, len(found.segment) + 1
            self._gradients = Slopes(differentiable(net), rows=pieces * net.outputs)
        at = self._rows.at(found.segment[some], found.middles[some])
        matrices, front = self._gradients.at(at)
        turns = matrices.diff(dim=0)
        return norm(turns, dim=(1, 2)) if front is None else front.norm(turns)

    def known(self) -> Float64[Tensor, " done"]:
        """Return the jumps that are known."""
        return torch.cat(self._sizes)

    def closed(self, found: Lines) -> Float64[Tensor, " done_and_one"]:
        """Return all jumps, and that from the last piece to the first."""
        last = self._between(found, torch.tensor([len(found.segment) - 1, 0]))
        return torch.cat([self.known(), last])


def _refuse_other_slopes(rows: Rows, found: Lines, instead: str) -> None:
    """Hold gradients against slopes in some pieces: code that detaches has values without them."""
    pieces = len(found.segment)
    some = torch.arange(pieces)[:: -(-pieces // min(ASKED, rows.most))]
    segment = found.segment[some]
    gradients = jacobians(differentiable(rows.net), rows.at(segment, found.middles[some]))
    way = (rows.b - rows.a)[segment].flatten(1)
    off = (gradients @ way[:, :, None])[:, :, 0] - found.slopes[some]
    if float(off.abs().max()) > 1e-6 * (1 + float(found.slopes.abs().max())):
        raise UnsupportedModelError(
            "the gradient of the model must belong to its values, but it does not: take .detach() "
            f"out of its forward, or {instead}."
        )
