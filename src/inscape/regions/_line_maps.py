"""Activation patterns, affine maps and gradient jumps of the pieces of lines."""

from collections.abc import Iterator

import torch
from jaxtyping import Float64, Integer
from torch import Tensor

from inscape._core import BudgetError, UnsupportedModelError
from inscape.functional.jacobians import jacobians
from inscape.piecewise.lines.evaluation import SegmentEvaluation, differentiable, settled_patterns
from inscape.piecewise.lines.gradient_jumps import Jumps, summed
from inscape.piecewise.lines.segments import CutSegments

#: Numbers that maps in input space, or patterns, may hold in all: 512 MiB of float64.
LARGEST = 2**26

#: Pieces in a batch where the time is limited.
WATCHED = 16

#: What to do with a model whose gradient is detached.
GRADIENTS = "leave gradients out"


class PieceDetails:
    """Patterns, maps and gradient jumps, as requested, of a growing number of pieces."""

    def __init__(
        self, rows: SegmentEvaluation, *, patterns: bool, maps: bool, gradients: bool
    ) -> None:
        self._rows, self._net = rows, rows.net
        self._wants_patterns, self._wants_maps = patterns, maps
        self._patterns: list[Tensor] = []
        self._matrices: list[Tensor] = []
        self._constants: list[Tensor] = []
        self._jumps = Jumps(rows, GRADIENTS) if gradients else None
        self._units = sum(len(p[0]) for p in self._net.patterns(rows.a[:1])) if patterns else 0
        self._looked_at = 0
        self.error: UnsupportedModelError | None = None  # not of the lines, but of what was asked

    @property
    def starts(self) -> Float64[Tensor, "n *d"]:
        """Return where the segments start."""
        return self._rows.a

    @property
    def is_asked_for(self) -> bool:
        """Tell whether there is anything to do."""
        return self._wants_patterns or self._wants_maps or self._jumps is not None

    def steps(self, cuts: CutSegments, *, watched: bool) -> Iterator[None]:
        """Process the new pieces, in batches."""
        if self._jumps is not None:
            try:
                yield from self._jumps.steps(cuts)
            except UnsupportedModelError as error:
                self.error = error
                raise
        if self._wants_patterns or self._wants_maps:
            yield from self._middles(cuts, watched)

    def _middles(self, cuts: CutSegments, watched: bool) -> Iterator[None]:
        pieces, net = len(cuts.segment), self._net
        if self._wants_patterns:
            _refuse_large(pieces * self._units, "patterns")
        if self._wants_maps:
            _refuse_large(pieces * net.outputs * net.inputs, "maps")
        step = min(WATCHED, self._rows.most) if watched else self._rows.most
        for first in range(self._looked_at, pieces, step):
            block = slice(first, min(first + step, pieces))
            self._look(self._rows.at(cuts.segment[block], cuts.middles[block]))
            self._looked_at = block.stop
            yield

    def _look(self, at: Float64[Tensor, "k *d"]) -> None:
        """Compute patterns and maps at some points.

        A line that runs inside a kink has the map of the pattern in the middle there, ties off.
        """
        net = self._net
        if self._wants_patterns:
            self._patterns.append(torch.cat(settled_patterns(net, at), 1))
        if self._wants_maps:
            matrices = jacobians(differentiable(net), at)
            self._matrices.append(matrices)
            self._constants.append(net.values(at) - (matrices @ at.flatten(1)[:, :, None])[:, :, 0])

    def known(self, pieces: int) -> int:
        """Return the number of first pieces that are fully processed."""
        done = [pieces]
        if self._jumps is not None:
            done.append(self._jumps.done)
        if self._wants_patterns or self._wants_maps:
            done.append(self._looked_at)
        return min(done)

    def of(self, cuts: CutSegments) -> CutSegments:
        """Return the first pieces, those that are fully processed."""
        known = self.known(len(cuts.slopes))
        return cuts if known == len(cuts.slopes) else cuts.first(known)

    def patterns(self, pieces: int) -> Integer[Tensor, "pieces units"] | None:
        """Return the activation patterns in the middle of the first pieces."""
        return torch.cat(self._patterns)[:pieces] if self._wants_patterns else None

    def maps(self, pieces: int) -> tuple[Tensor | None, Tensor | None]:
        """Return matrix and constant of the affine maps of the first pieces."""
        if not self._wants_maps:
            return None, None
        return torch.cat(self._matrices)[:pieces], torch.cat(self._constants)[:pieces]

    def turned(
        self, cuts: CutSegments, *, joined: bool, closed: bool
    ) -> tuple[Float64[Tensor, " n"] | None, Float64[Tensor, " joints"] | None]:
        """Return the gradient's variation inside segments, and its jumps from one to the next."""
        if self._jumps is None:
            return None, None
        jumps = self._jumps.closed(cuts) if closed else self._jumps.known()
        return summed(cuts, jumps, joined=joined, closed=closed)


def _refuse_large(numbers: int, name: str) -> None:
    if numbers > LARGEST:
        raise BudgetError(
            f"{name} of all pieces must hold at most {LARGEST} numbers, but they would hold "
            f"{numbers}: take fewer segments."
        )
