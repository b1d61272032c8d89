"""What rounding hides of a cut plane: cells too narrow to be told from the kinks around them."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.piecewise.planes import resolution_kernels
from inscape.piecewise.planes.threads import Workers

Array = npt.NDArray[Any]

#: Fewer edges than these are not shared among threads.
LEAST = 8192


@dataclass(eq=False, kw_only=True)
class Rounding:
    """How far rounding moves the kinks of a plane while it is cut.

    ``width`` is the widest strip around a kink in which its function has no certain sign, and
    ``undecided`` counts the pairs of a cell and a unit whose function has none on the whole cell,
    though it is not zero; ``undecided_area`` is the area of these cells.
    """

    width: float = 0.0
    undecided: int = 0
    undecided_area: float = 0.0

    def add_lines(self, coef: Array) -> None:
        """Add the strips around lines: their slopes, offset, and the size that counts as zero."""
        if len(coef):
            steepness = np.maximum(np.hypot(coef[:, 0], coef[:, 1]), np.finfo(np.float64).tiny)
            self.width = max(self.width, float((2 * coef[:, 3] / steepness).max()))

    def add_undecided(self, pairs: int, area: float) -> None:
        """Add pairs of a cell and a unit without a sign, and the area of the cells."""
        self.undecided += pairs
        self.undecided_area += area


@dataclass(frozen=True, eq=False, kw_only=True)
class Losses:
    """What rounding may hide of finished cells.

    ``jumps`` counts the edges across which the outputs jump, so that cells between are missing;
    ``coinciding`` those across which several units switch, at kinks that rounding does not
    separate. ``area`` is that of the strips around all kinks and of undecided cells, in which any
    missing cell lies, in the coordinates of the window.
    """

    jumps: int
    coinciding: int
    undecided: int
    area: float


def losses(
    rounding: Rounding,
    edges: tuple[Array, Array, Array],
    place: Array,
    maps: Array,
    noise: Array,
    patterns: tuple[Array, Array],
    workers: Workers,
) -> Losses:
    """Return what rounding may hide, from edges (ends, sides, makers), maps and packed patterns.

    ``patterns`` are the bytes of all cells, and for each byte its place in the index of a window,
    or -1 where it stands for eight units.
    """
    ends, sides, made = edges
    jumps, switching = np.empty(len(ends), np.bool_), np.empty(len(ends), np.int32)
    seen = (ends, sides, place, np.ascontiguousarray(maps), noise, rounding.width, jumps)
    workers.over(len(ends), partial(_over, resolution_kernels.jumping, seen), LEAST)
    bits = (sides, *patterns, switching)
    workers.over(len(ends), partial(_over, resolution_kernels.switches, bits), LEAST)
    step = place[ends[:, 1]] - place[ends[:, 0]]
    length = float(np.hypot(step[:, 0], step[:, 1])[made[:, 0] >= 0].sum())
    return Losses(
        jumps=int(jumps.sum()),
        coinciding=int((switching > 1).sum()),
        undecided=rounding.undecided,
        area=rounding.width * length + rounding.undecided_area,
    )


def _over(kernel: Any, arrays: tuple[Any, ...], begin: int, end: int) -> None:
    kernel(begin, end, *arrays)
