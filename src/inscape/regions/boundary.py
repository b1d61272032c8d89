"""Boundary: where the decision of a network changes in a plane, or its output has a level."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.piecewise.planes import Frame
from inscape.piecewise.planes.budget import Ending
from inscape.piecewise.planes.contours import Cover, contours
from inscape.piecewise.planes.polylines import Polylines
from inscape.regions.plane_regions import PlaneRegions, cut_plane

#: Jump of the outputs across an edge, relative to the largest there, beyond rounding.
JUMP = 1e-3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Boundary(Result):
    """Polylines in a plane, as flat arrays: those of a level set, or between two decisions.

    Polyline ``i`` has the points ``points[first[i]:first[i + 1]]`` in the plane's coordinates; a
    closed one ends with its first point. ``between[i]`` are the two outputs that are both largest
    along it; for the level set of one output, that output and -1. ``lengths`` are those in the
    input space. ``domain``, ``asked``, ``covered``, ``ended_by``, ``unresolved`` and
    ``unresolved_area`` are as in ``PlaneRegions``.
    """

    range: ClassVar[Range] = NONNEGATIVE

    points: Float64[Tensor, "p 2"]
    first: Int64[Tensor, " m"]
    closed: Bool[Tensor, " lines"]
    between: Int64[Tensor, "lines 2"]
    lengths: Float64[Tensor, " lines"]
    level: float | None
    output: int | None
    domain: Float64[Tensor, "sides 2"]
    origin: Float64[Tensor, "*d"]
    axes: Float64[Tensor, "2 *d"]
    covered: float
    complete: bool
    converted: str | None
    ended_by: Ending | None = None
    asked: Float64[Tensor, "sides 2"] | None = None
    unresolved: int = 0
    unresolved_area: float = 0.0

    @property
    def length(self) -> float:
        """Return the total length of all polylines."""
        return float(self.lengths.sum())

    @cached_property
    def frame(self) -> Frame:
        """Return the plane."""
        return Frame(origin=self.origin, axes=self.axes)

    def polyline(self, line: int) -> Float64[Tensor, "k 2"]:
        """Return the points of one polyline."""
        return self.points[self.first[line] : self.first[line + 1]]

    def inputs(self) -> Float64[Tensor, "p *d"]:
        """Return all points in the input space."""
        return self.frame.at(self.points)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each polyline, or a single empty one where there is none."""
        sizes = self.first.diff().tolist()
        if not sizes:
            yield {"points": 0, "length": 0.0, "closed": False, "one": None, "other": None}
        for line, size in enumerate(sizes):
            left, right = self.between[line].tolist()
            yield {
                "points": size,
                "length": float(self.lengths[line]),
                "closed": bool(self.closed[line]),
                "one": left,
                "other": None if right < 0 else right,
            }

    def summary(self) -> Summary:
        """Return the length."""
        count, closed = len(self.lengths), int(self.closed.sum())
        place = "between decisions" if self.level is None else f"at level {self.level:.4g}"
        lines = "1 polyline" if count == 1 else f"{count} polylines"
        basis = f"{lines} {place}, {closed} of them closed"
        if self.unresolved:
            lost = f"regions too narrow for float64 may be missing in {self.unresolved} places"
            basis = f"{lost}; {basis}"
        if self.complete:
            kind: Kind = "estimate" if self.unresolved else "exact"
            return Summary(value=self.length, kind=kind, basis=basis)
        spent = f"{self.covered:.1%} of the window, then the budget ({self.ended_by}) was spent"
        basis = f"{spent}; {basis}"
        return Summary(value=self.length, kind="lower bound", basis=basis)


@instrument(
    reads="function",
    larger="a more intricate decision",
    cost="seconds",
    work=lambda n, c: 10_000,
    setup=1.0,
    meaning="In this window the decision boundary has a length of {value}, in units of the input.",
    cites="sattelberg2026linearity, chapters 5 and 6",
    least_rows=3,
    exempt=("unresolved_area",),  # rounding depends on the order of units
)
@anytime
def boundary(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    plane: Frame | None = None,
    domain: Float[Tensor, "k 2"] | None = None,
    level: float = 0.0,
    output: int | None = None,
    regions: int = 1_000_000,
    seconds: float | None = None,
    memory: int | None = None,
    threads: int | None = None,
) -> Iterator[Boundary | NotApplicable]:
    r"""Find where the decision of a network changes in a polygon of a plane.

    .. math:: \{x : f(x) = \ell\}, \qquad
              \{x : f_a(x) = f_b(x) = \max_k f_k(x) \text{ for some } a \ne b\}

    Exact in float64, up to rounding: on each linear region the boundary is straight. One output
    decides by its sign; of several the largest does. What is on the boundary with an area is not
    counted: a region on which the output *is* the level, or on which two outputs are equal, belongs
    to no boundary; an edge belongs to it if the decision differs on its two sides. Costs what
    ``plane_regions`` does and little more.

    Args:
        f: Piecewise-linear network in eval mode, as for ``plane_regions``.
        x: Points that give the plane and the window, as for ``plane_regions``.
        plane: Plane to cut; by default that of a two-dimensional input space, or through the first
            three points.
        domain: Corners of a convex polygon in the plane's coordinates; by default a box around the
            points, a tenth wider.
        level: Level of the one output.
        output: Draw the level set of this output, instead of where the largest changes.
        regions: Stop at this many cells.
        seconds: Stop after this time, with the largest window whose boundary was found.
        memory: Stop before taking more than about this many bytes.
        threads: Threads; by default those of torch.

    >>> import torch
    >>> corners = torch.tensor([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
    >>> found = boundary(lambda x: x.abs().sum(1, keepdim=True), corners, level=1.0)
    >>> found.closed.tolist(), round(found.length, 6)
    ([True], 5.656854)
    """

    def line(regions: PlaneRegions) -> Boundary:
        if regions.intercepts.shape[1] == 1 or output is not None:
            return level_set(regions, output=output or 0, level=level)
        if level != 0.0:
            raise ValueError(
                f"level must be 0 where the largest of several outputs decides, found {level}: "
                "pass output as well, for the level set of one of them."
            )
        return decision_boundary(regions)

    steps = cut_plane(
        f, x, line, plane=plane, domain=domain, regions=regions, seconds=seconds, memory=memory,
        threads=threads,
    )  # fmt: skip
    for step in steps:
        if isinstance(step, NotApplicable):
            step = NotApplicable(what="boundary", reason=step.reason)
        yield step


def level_set(regions: PlaneRegions, *, output: int = 0, level: float = 0.0) -> Boundary:
    """Return the level set of one output, from known regions."""
    outputs = regions.intercepts.shape[1]
    if not 0 <= output < outputs:
        raise ValueError(
            f"output must lie between 0 and {outputs - 1}, found {output}: choose another."
        )
    checks.number(level=level)
    intercepts = regions.intercepts[:, [output, output]].clone()
    slopes = regions.slopes[:, [output, output]].clone()
    intercepts[:, 1], slopes[:, 1] = level, 0.0
    chains = contours(_cover(regions, intercepts, slopes))
    between = np.tile(np.array([[output, -1]]), (len(chains.closed), 1))
    return _result(regions, chains, between, level=float(level), output=output)


def decision_boundary(regions: PlaneRegions) -> Boundary:
    """Return the decision boundary, from known regions.

    The decision is the sign of one output, and the largest of several.
    """
    if regions.intercepts.shape[1] == 1:
        return level_set(regions)
    chains = contours(_cover(regions, regions.intercepts, regions.slopes))
    return _result(regions, chains, chains.between, level=None, output=None)


def _cover(
    regions: PlaneRegions,
    intercepts: Float64[Tensor, "cells c"],
    slopes: Float64[Tensor, "cells c 2"],
) -> Cover:
    """Return the cells with the values of some functions at vertices and centroids."""
    corners = regions.corners.numpy()
    owner = np.zeros(len(regions.vertices), np.int64)
    # written backwards, so that the first cell of each vertex stays
    owner[corners[::-1]] = np.repeat(np.arange(regions.cells), regions.first.diff())[::-1]
    cell = torch.from_numpy(owner)
    moved = (regions.vertices - regions.center).unsqueeze(2)
    from_center = (regions.centroids - regions.center).unsqueeze(2)
    _refuse_jumps(regions, intercepts, slopes)
    return Cover(
        place=regions.vertices.numpy(),
        corners=corners,
        first=regions.first.numpy(),
        ends=regions.edges.numpy(),
        sides=regions.neighbours.numpy(),
        values=(intercepts[cell] + (slopes[cell] @ moved).squeeze(2)).numpy(),
        intercepts=(intercepts + (slopes @ from_center).squeeze(2)).numpy(),
        slopes=slopes.numpy(),
    )


def _refuse_jumps(
    regions: PlaneRegions,
    intercepts: Float64[Tensor, "cells c"],
    slopes: Float64[Tensor, "cells c 2"],
) -> None:
    """Refuse regions across whose edges the function jumps: some in between were lost.

    Regions narrower than the rounding of coordinates (a unit that saturates, at data of 1e17) have
    no area in float64, and no boundary that could be computed.
    """
    shared = regions.neighbours.amin(1) >= 0
    sides = regions.neighbours[shared].T
    middles = regions.vertices[regions.edges[shared]].mean(1) - regions.center
    left, right = (intercepts[k] + (slopes[k] @ middles.unsqueeze(2)).squeeze(2) for k in sides)
    if not len(left):
        return
    jump, size = (
        float((left - right).abs().max()),
        float(torch.maximum(left.abs(), right.abs()).max()),
    )
    if jump > JUMP * size:
        raise ValueError(
            "regions must be wider than the rounding of the plane's coordinates, but across an "
            f"edge the outputs jump by {jump:.2g}, where the largest is {size:.2g}: scale the "
            "data, or pass a smaller domain."
        )


def _result(
    regions: PlaneRegions,
    chains: Polylines,
    between: np.typing.NDArray[np.int64],
    *,
    level: float | None,
    output: int | None,
) -> Boundary:
    points, first = torch.from_numpy(chains.points), torch.from_numpy(chains.first)
    step = points.diff(dim=0)
    size = ((step @ regions.frame.gram) * step).sum(1).clamp(min=0).sqrt()
    size[first[1:-1] - 1] = 0.0  # from one polyline to the next
    line = torch.repeat_interleave(torch.arange(len(chains.closed)), first.diff())[1:]
    lengths = torch.zeros(len(chains.closed), dtype=torch.float64).index_add_(0, line, size)
    return Boundary(
        points=points,
        first=first,
        closed=torch.from_numpy(chains.closed),
        between=torch.from_numpy(between),
        lengths=lengths,
        level=level,
        output=output,
        domain=regions.domain,
        origin=regions.origin,
        axes=regions.axes,
        covered=regions.covered,
        complete=regions.complete,
        ended_by=regions.ended_by,
        asked=regions.asked,
        converted=regions.converted,
        unresolved=regions.unresolved,
        unresolved_area=regions.unresolved_area,
    )
