"""Plane regions: all linear regions of a network in a polygon of a plane, with their maps."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Float64, Int32, Int64, Integer, UInt8
from torch import Tensor

from inscape._core import (
    NotApplicable,
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    checks,
    instrument,
)
from inscape._core.anytime import anytime
from inscape._core.anytime import finished as all_steps
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.precision import name_of
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.piecewise.planes import CanonicalCells, Cells, Frame, in_canonical_order
from inscape.piecewise.planes.budget import Ending, SpentError
from inscape.piecewise.planes.sign_kernels import ROUNDING
from inscape.piecewise.stepping import StepClock
from inscape.regions._domain import plane_of, polygon_of, turns, window
from inscape.regions._growing_windows import TimedSteps, windows
from inscape.regions._input_maps import input_maps
from inscape.regions._plane_cutter import PlaneCutter
from inscape.regions._refusal import refusal

R = TypeVar("R")

#: Bytes that may be taken unless the caller says otherwise.
MEMORY = 2**33


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlaneRegions(Result):
    """Convex cells of constant activation pattern that cover a polygon, as flat arrays.

    Cell ``i`` has the corners ``vertices[corners[first[i]:first[i + 1]]]``, counter-clockwise. On
    it the output at (u, v) is ``intercepts[i] + slopes[i] @ ((u, v) - center)``. ``merged[i]`` is
    the merged region of the cell: cells that touch along an edge and have one affine map on the
    plane. ``edges`` join two vertices; ``neighbours`` are the cells on their left and right (-1:
    none) and ``switching_units`` the operation and its unit that switches across them (-1: side of
    the domain).
    Each unit of operation ``k`` has ``states[k]`` states: 2, or the entries of its window.
    ``converted`` names the precision of the model where it was another than float64.

    ``ended_by`` names the budget that was spent, or is ``"complete"``. When the time was spent,
    ``domain`` is a smaller window with the same centre as ``asked``, covered from side to side;
    with any other budget some cells are missing. ``covered`` is the fraction of what was asked for.

    Cells narrower than the rounding of the kinks around them cannot be found. ``unresolved`` counts
    the places where some may be missing: edges across which the outputs jump, cells on which a
    unit is within rounding of its kink from side to side, and a window below rounding itself.
    ``coinciding`` counts edges across which several units switch: at one kink, or at several with
    cells between them too narrow to be seen. Whatever is missing lies in strips around the kinks
    and in such cells, of about ``unresolved_area`` together (an estimate).
    """

    range: ClassVar[Range] = NONNEGATIVE

    vertices: Float64[Tensor, "v 2"]
    corners: Int32[Tensor, " k"]
    first: Int64[Tensor, " m"]
    slopes: Float64[Tensor, "cells c 2"]
    intercepts: Float64[Tensor, "cells c"]
    areas: Float64[Tensor, " cells"]
    merged: Int64[Tensor, " cells"]
    edges: Int32[Tensor, "e 2"]
    neighbours: Int32[Tensor, "e 2"]
    switching_units: Int32[Tensor, "e 2"]
    patterns: UInt8[Tensor, "cells bytes"]
    ops: tuple[str, ...]
    units: tuple[int, ...]
    states: tuple[int, ...]
    domain: Float64[Tensor, "sides 2"]
    center: Float64[Tensor, " 2"]
    origin: Float64[Tensor, "*d"]
    axes: Float64[Tensor, "2 *d"]
    covered: float
    complete: bool
    converted: str | None
    ended_by: Ending | None = None
    asked: Float64[Tensor, "sides 2"] | None = None
    unresolved: int = 0
    unresolved_area: float = 0.0
    coinciding: int = 0

    @property
    def cells(self) -> int:
        """Return the number of cells of constant activation pattern."""
        return len(self.areas)

    @property
    def regions(self) -> int:
        """Return the number of merged regions: connected, with one affine map."""
        return int(self.merged.max()) + 1

    @cached_property
    def frame(self) -> Frame:
        """Return the plane."""
        return Frame(origin=self.origin, axes=self.axes)

    @cached_property
    def centroids(self) -> Float64[Tensor, "cells 2"]:
        """Return the centre of mass of every cell."""
        return torch.from_numpy(
            _centroids(self.vertices.numpy(), self.corners.numpy(), self.first.numpy())
        )

    def polygon(self, cell: int) -> Float64[Tensor, "k 2"]:
        """Return the corners of one cell."""
        return self.vertices[self.corners[self.first[cell] : self.first[cell + 1]].long()]

    def pattern(self, op: int) -> Integer[Tensor, "cells units"]:
        """Return the pattern of one operation on all cells: 0 off, 1 on, or the maximum's index."""
        begin = sum(_bytes(u, c) for u, c in zip(self.units[:op], self.states, strict=False))
        size = _bytes(self.units[op], self.states[op])
        packed = self.patterns[:, begin : begin + size]
        if self.states[op] > 256:
            return torch.from_numpy(np.ascontiguousarray(packed.numpy()).view(np.int32))
        if self.states[op] > 2:
            return packed
        bits = np.unpackbits(packed.numpy(), axis=1, bitorder="little")
        return torch.from_numpy(bits[:, : self.units[op]])

    def values(
        self, cell: Int64[Tensor, " n"], at: Float64[Tensor, "n 2"]
    ) -> Float64[Tensor, "n c"]:
        """Return the outputs of given cells' maps at places of the plane, one for each row."""
        moved = (at - self.center).unsqueeze(2)
        return self.intercepts[cell] + (self.slopes[cell] @ moved).squeeze(2)

    def integral(self) -> Float64[Tensor, " c"]:
        """Return the integral of the outputs over the cells, exact."""
        at_centroids = self.values(torch.arange(self.cells), self.centroids)
        return self.areas @ at_centroids

    def input_maps(
        self,
        f: Function,
        cells: Int64[Tensor, " k"] | None = None,
        *,
        memory: int = MEMORY,
    ) -> tuple[Float64[Tensor, "k c D"], Float64[Tensor, "k c"]]:
        r"""Return J and b of the map f(x) = J x + b of cells, in the input space itself.

        .. math:: f(x) = v(x_0) + J(x_0) (x - x_0), \quad J \in \mathbb{R}^{c \times d}

        Sattelberg's Eqs. (5.6) and (5.7), as corrected (S12, S13). Exact up to rounding: the graph
        is run with the pattern of each cell, so that no cell is too small. The maps hold on the
        regions of the input space that the plane cuts, off the plane too. Costs a forward and
        ``c`` backward passes for each cell.

        Args:
            f: The network that the regions belong to.
            cells: Numbers of the cells whose maps are wanted; all by default.
            memory: Bytes that the maps may take; 8 GB by default.
        """
        return input_maps(self, f, cells, memory)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each cell."""
        for cell, (area, label) in enumerate(
            zip(self.areas.tolist(), self.merged.tolist(), strict=True)
        ):
            u, v = self.centroids[cell].tolist()
            corners = int(self.first[cell + 1] - self.first[cell])
            yield {"u": u, "v": v, "area": area, "corners": corners, "region": label}

    def summary(self) -> Summary:
        """Return the number of cells."""
        basis = f"{self.regions} merged regions, {len(self.vertices)} vertices"
        if self.unresolved:
            places = "1 place" if self.unresolved == 1 else f"{self.unresolved} places"
            lost = f"regions too narrow for float64 may be missing in {places}"
            basis = f"{lost}, of an area of about {self.unresolved_area:.2g}; {basis}"
        if self.complete and not self.unresolved:
            return Summary(value=float(self.cells), kind="exact", basis=basis)
        if not self.complete:
            spent = f"{self.covered:.1%} of the window, then the budget ({self.ended_by}) was spent"
            basis = f"{spent}; {basis}"
        return Summary(value=float(self.cells), kind="lower bound", basis=basis)


def _bytes(units: int, states: int) -> int:
    if states <= 2:
        return (units + 7) // 8
    return units if states <= 256 else 4 * units


def _centroids(place: Any, corners: Any, first: Any) -> Any:
    """Return centres of mass of polygons, measured from their first corner against rounding."""
    at = place[corners]
    base = np.repeat(at[first[:-1]], np.diff(first), axis=0)
    following = np.arange(1, len(corners) + 1)
    following[first[1:] - 1] = first[:-1]
    size = _power_of_two(float(np.abs(at - base).max(initial=0.0)))  # third powers overflow soon
    p, q = (at - base) / size, (at[following] - base) / size
    twice = p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]
    total = np.add.reduceat(twice, first[:-1])
    moment = np.add.reduceat((p + q) * twice[:, None], first[:-1])
    centroid = np.divide(
        moment, 3 * total[:, None], out=np.zeros_like(moment), where=total[:, None] > 0
    )
    middle = np.add.reduceat(p, first[:-1]) / np.diff(first)[:, None]
    return at[first[:-1]] + size * np.where(total[:, None] > 0, centroid, middle)


def _power_of_two(value: float) -> float:
    """Return the power of two next below a number: to divide by it does not round; 1 for zero."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0 else 1.0


@instrument(
    reads="function",
    larger="more linear regions",
    cost="seconds",
    work=lambda n, c: 10_000,
    setup=1.0,
    meaning="In this window the number of linear regions, counted by activation pattern, is "
    "{value}.",
    cites="sattelberg2026linearity, Eqs. (5.6)-(5.7), (6.2)",
    least_rows=3,
    exempt=("patterns", "switching_units", "unresolved_area"),
)
@anytime
def plane_regions(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    plane: Frame | None = None,
    domain: Float[Tensor, "k 2"] | None = None,
    regions: int = 1_000_000,
    seconds: float | None = None,
    memory: int | None = None,
    threads: int | None = None,
) -> Iterator[PlaneRegions | NotApplicable]:
    r"""Find all linear regions of a network in a polygon of a plane, with the map of each.

    .. math:: f(x) = v(x_0) + J(x_0) (x - x_0) \quad \text{on the region of } x_0

    Exact in float64, up to rounding. Two counts: *cells* are the convex sets of one activation
    pattern (a unit is on where its function is above zero; of equal largest ones in a maximum the
    first is chosen); *merged* regions join cells that touch along an edge and have one map on the
    plane. They differ where a unit's kink does not reach the output. Kinks that coincide cut once.

    Layer by layer, every cell is cut by the units whose function changes sign on it. Neighbours
    differ by one unit, so their maps differ by a rank-one update, and the cost of a cell grows with
    the width and not with its square. A budget of regions or memory ends early, with the cells
    found. A time is spent on growing windows around the centre of the domain, each complete:
    the largest is returned, and ``plane_regions.refine`` yields them one after the other.

    Args:
        f: Network of affine operations and ReLU, LeakyReLU, PReLU, ReLU6, Hardtanh, abs, MaxPool,
            maximum and minimum, in eval mode; read in float64 from its exported graph.
        x: Points: those of a two-dimensional input space give the window, of any other the first
            three (not on a line) the plane.
        plane: Plane to cut, e.g. ``through(points)``; by default the whole of a two-dimensional
            input space, or the plane through the first three points.
        domain: Corners of a convex polygon in the plane's coordinates; by default a box around the
            points, a tenth wider.
        regions: Stop at this many cells.
        seconds: Stop after this time, with the largest window that was covered; ``BudgetError``
            where it is too short for one of about one cell. Only the export is never left.
        memory: Stop before taking more than about this many bytes; 8 GB by default.
        threads: Threads; by default those of torch.

    >>> import torch
    >>> corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    >>> f = lambda x: (x[:, :1] + x[:, 1:]).relu() - x[:, :1].relu()
    >>> found = plane_regions(f, corners, domain=corners)
    >>> found.cells, found.regions, found.complete
    (4, 4, True)
    """
    yield from cut_plane(
        f, x, lambda result: result, plane=plane, domain=domain, regions=regions, seconds=seconds,
        memory=memory, threads=threads,
    )  # fmt: skip


def _check_arguments(x: Tensor, regions: int, memory: int | None, threads: int | None) -> None:
    """Raise if the points or the limits of a cut are not valid."""
    checks.points(x)
    checks.whole(1, regions=regions, threads=1 if threads is None else threads)
    if memory is not None:
        checks.at_least(2**20, memory=memory)


def cut_plane(
    f: Function,
    x: Float[Tensor, "n *d"],
    finish: Callable[[PlaneRegions], R],
    *,
    plane: Frame | None,
    domain: Float[Tensor, "k 2"] | None,
    regions: int,
    seconds: float | None,
    memory: int | None,
    threads: int | None,
) -> Iterator[R | NotApplicable]:
    """Yield ``finish`` of the regions of growing windows; the last again where a step is over.

    Without a time limit or a waiting caller, of the whole domain alone.
    """
    turn = StepClock(seconds)
    _check_arguments(x, regions, memory, threads)
    if x[0].numel() < 2:
        reason = "a plane needs at least two input dimensions, the model takes one"
        yield NotApplicable(what="plane_regions", reason=reason)
        return
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        yield refusal("plane_regions", f, x, error)
        return
    frame = plane_of(x, plane)
    asked = polygon_of(domain, frame, x, given=plane is not None)
    cutter = PlaneCutter(net, frame, asked, regions, memory or MEMORY, threads)
    turn.exported()

    def finished(cut: tuple[Cells, Tensor]) -> R:
        return finish(regions_of(cutter, cut))

    if not turn.is_watched:
        yield finished(all_steps(cutter.cut(1.0, strict=False, watched=False)))
        return
    shown: Any = None  # yielded again where a step is over
    known: tuple[R, Ending] | None = None
    try:
        for _ in (preparing := TimedSteps(cutter.prepare(), turn)):
            yield shown
        for covered in windows(cutter.cut, finished, _count, preparing.result, turn):
            if covered is not None and covered != known:
                known = covered
                shown = replace(known[0], ended_by=known[1])  # type: ignore[type-var]
            yield shown
    except SpentError as error:
        if error.budget == "seconds":
            raise turn.spent(
                "a window of about one linear region",
                "cut lines with line_regions, which is quicker",
            ) from None
        # not even the smallest window has so few cells
        for _ in (cutting := TimedSteps(cutter.cut(1.0, strict=False), turn)):
            yield shown
        yield finished(cutting.result)


def _count(cut: tuple[Cells, Tensor]) -> int:
    return cut[0].plane.faces


def regions_of(cutter: PlaneCutter, cut: tuple[Cells, Tensor]) -> PlaneRegions:
    """Return the cells of a window as a result."""
    return _result(in_canonical_order(cut[0]), cutter.frame, cut[1], cutter.asked, cutter.net)


def _result(
    cells: CanonicalCells,
    frame: Frame,
    corners: Float64[Tensor, "k 2"],
    asked: Float64[Tensor, "k 2"],
    net: Piecewise,
) -> PlaneRegions:
    center, half = window(corners)
    place = cells.place * half.numpy() + center.numpy()
    maps = torch.from_numpy(cells.maps)
    scale, lost = float(half.prod()) * frame.area, cells.losses
    areas = cells.areas * scale
    whole_area = float(turns(asked - window(asked)[0]).sum()) / 2 * frame.area
    is_complete = cells.ended_by == "complete" and corners is asked
    is_hidden = bool(net.ops) and _below_rounding(frame, center, half)
    return PlaneRegions(
        vertices=torch.from_numpy(place),
        corners=torch.from_numpy(cells.corners),
        first=torch.from_numpy(cells.first),
        slopes=maps[:, :2].transpose(1, 2) / half,
        intercepts=maps[:, 2].contiguous(),
        areas=torch.from_numpy(areas),
        merged=torch.from_numpy(cells.merged),
        edges=torch.from_numpy(cells.ends),
        neighbours=torch.from_numpy(cells.sides),
        switching_units=torch.from_numpy(cells.made),
        patterns=torch.from_numpy(cells.patterns),
        ops=tuple(op.place for op in net.ops),
        units=tuple(cells.units),
        states=tuple(2 if op.windows is None else max(3, op.windows.shape[1]) for op in net.ops),
        domain=corners,
        center=center,
        origin=frame.origin,
        axes=frame.axes,
        covered=1.0 if is_complete else min(1.0, float(areas.sum()) / whole_area),
        complete=is_complete,
        converted=name_of(net.converted),
        ended_by=cells.ended_by,
        asked=asked,
        unresolved=1 if is_hidden else lost.jumps + lost.undecided,
        unresolved_area=float(areas.sum()) if is_hidden else lost.area * scale,
        coinciding=lost.coinciding,
    )


def _below_rounding(
    frame: Frame, center: Float64[Tensor, " 2"], half: Float64[Tensor, " 2"]
) -> bool:
    """Tell whether a window is so small that its inputs do not differ beyond rounding."""
    size = (frame.axes.flatten(1).abs().amax(1) * half).max()
    return bool(size <= ROUNDING * frame.at(center[None]).abs().max())
