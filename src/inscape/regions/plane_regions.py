"""Plane regions: all linear pieces of a network in a polygon of a plane, with their maps."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any

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
from inscape._core.checks import Function
from inscape._core.pieces.piecewise import Piecewise, piecewise
from inscape._core.pieces.plane import Budget, Frame, Tidy, cells, through, tidy, whole
from inscape._core.progress import progress

#: Room around the data or the three points, as a share of their extent, unless a domain is given.
MARGIN = 0.1

#: Bytes that may be taken unless the caller says otherwise.
MEMORY = 2**33

#: Bytes that a cell takes while it is made, with its edges and vertices.
CELL_BYTES = 1500


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlaneRegions(Result):
    """Convex cells of constant activation pattern that cover a polygon, as flat arrays.

    Cell ``i`` has the corners ``vertices[corners[first[i]:first[i + 1]]]``, counter-clockwise. On
    it the output at (u, v) is ``levels[i] + slopes[i] @ ((u, v) - center)``. ``merged[i]`` numbers
    the merged region of the cell: cells that touch along an edge and have one affine map on the
    plane. ``edges`` join two vertices; ``neighbours`` are the cells on their left and right (-1:
    none) and ``makers`` the bend and the unit of it that made them (-1: side of the domain).
    """

    vertices: Float64[Tensor, "v 2"]
    corners: Int32[Tensor, " k"]
    first: Int64[Tensor, " m"]
    slopes: Float64[Tensor, "cells c 2"]
    levels: Float64[Tensor, "cells c"]
    areas: Float64[Tensor, " cells"]
    merged: Int64[Tensor, " cells"]
    edges: Int32[Tensor, "e 2"]
    neighbours: Int32[Tensor, "e 2"]
    makers: Int32[Tensor, "e 2"]
    patterns: UInt8[Tensor, "cells bytes"]
    bends: tuple[str, ...]
    units: tuple[int, ...]
    choices: tuple[int, ...]
    domain: Float64[Tensor, "sides 2"]
    center: Float64[Tensor, " 2"]
    origin: Float64[Tensor, "*d"]
    axes: Float64[Tensor, "2 *d"]
    covered: float
    complete: bool
    converted: str

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

    def pattern(self, bend: int) -> Integer[Tensor, "cells units"]:
        """Return the choices of all units of one bend on every cell: 0 off, 1 on, or the winner."""
        begin = sum(_bytes(u, c) for u, c in zip(self.units[:bend], self.choices, strict=False))
        size = _bytes(self.units[bend], self.choices[bend])
        packed = self.patterns[:, begin : begin + size]
        if self.choices[bend] > 256:
            return torch.from_numpy(np.ascontiguousarray(packed.numpy()).view(np.int32))
        if self.choices[bend] > 2:
            return packed
        bits = np.unpackbits(packed.numpy(), axis=1, bitorder="little")
        return torch.from_numpy(bits[:, : self.units[bend]])

    def values(
        self, cell: Int64[Tensor, " n"], at: Float64[Tensor, "n 2"]
    ) -> Float64[Tensor, "n c"]:
        """Return the outputs of given cells' maps at places of the plane, one for each row."""
        moved = (at - self.center).unsqueeze(2)
        return self.levels[cell] + (self.slopes[cell] @ moved).squeeze(2)

    def integral(self) -> Float64[Tensor, " c"]:
        """Return the integral of the outputs over the cells, exact."""
        each = self.values(torch.arange(self.cells), self.centroids)
        return self.areas @ each

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
        if self.complete:
            return Summary(value=float(self.cells), kind="exact", basis=basis)
        basis = f"budget reached, {self.covered:.1%} of the domain, {basis}"
        return Summary(value=float(self.cells), kind="lower bound", basis=basis)


def _bytes(units: int, choices: int) -> int:
    if choices <= 2:
        return (units + 7) // 8
    return units if choices <= 256 else 4 * units


def _centroids(place: Any, corners: Any, first: Any) -> Any:
    """Return centres of mass of polygons, measured from their first corner against rounding."""
    at = place[corners]
    base = np.repeat(at[first[:-1]], np.diff(first), axis=0)
    following = np.arange(1, len(corners) + 1)
    following[first[1:] - 1] = first[:-1]
    p, q = at - base, at[following] - base
    twice = p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]
    total = np.add.reduceat(twice, first[:-1])
    moment = np.add.reduceat((p + q) * twice[:, None], first[:-1])
    share = np.divide(
        moment, 3 * total[:, None], out=np.zeros_like(moment), where=total[:, None] > 0
    )
    middle = np.add.reduceat(p, first[:-1]) / np.diff(first)[:, None]
    return at[first[:-1]] + np.where(total[:, None] > 0, share, middle)


@instrument(
    reads="function",
    cost="seconds",
    work=lambda n, c: 10_000,
    setup=1.0,
    meaning="In this window the function is made of {value} linear pieces.",
    cites="sattelberg2026linearity, Eqs. (5.6)-(5.7), (6.2)",
    exempt=("patterns", "makers"),
)
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
) -> PlaneRegions | NotApplicable:
    r"""Find all linear pieces of a network in a polygon of a plane, with the map of each.

    .. math:: f(x) = v(x_0) + J(x_0) (x - x_0) \quad \text{on the piece of } x_0

    Exact in float64, up to rounding. Two counts: *cells* are the convex sets of one activation
    pattern (a unit is on where its function is above zero; of equal largest ones in a maximum the
    first is chosen); *merged* regions join cells that touch along an edge and have one map on the
    plane. They differ where a unit's kink does not reach the output. Bends that coincide cut once.

    Layer by layer, every cell is cut by the units whose function changes sign on it. Neighbours
    differ by one unit, so their maps differ by a rank-one update, and the cost of a cell grows with
    the width and not with its square. A budget ends early, with the cells found.

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
        seconds: Stop after this time.
        memory: Stop before taking more than about this many bytes; 8 GB by default.
        threads: Threads; by default those of torch.

    >>> import torch
    >>> corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    >>> f = lambda x: (x[:, :1] + x[:, 1:]).relu() - x[:, :1].relu()
    >>> found = plane_regions(f, corners, domain=corners)
    >>> found.cells, found.regions, found.complete
    (4, 4, True)
    """
    checks.points(x)
    checks.at_least(1, regions=regions, threads=1 if threads is None else threads)
    if x[0].numel() < 2:
        reason = "a plane needs at least two input dimensions, the model takes one"
        return NotApplicable(what="plane_regions", reason=reason)
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        return NotApplicable(what="plane_regions", reason=str(error))
    frame = plane if plane is not None else _frame(x)
    corners = _domain(domain, frame, x, given=plane is not None)
    center, half = _window(corners)
    marks = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    points = frame.at(center + half * marks)
    budget = _budget(net, regions, seconds, memory)
    with progress(len(net.bends), label="cutting the plane") as bar:
        found = cells(
            net,
            points,
            ((corners - center) / half).numpy(),
            budget=budget,
            threads=threads or torch.get_num_threads(),
            on_round=lambda place, count: bar.advance(1),
        )
    return _result(tidy(found), frame, corners, center, half, net)


def _frame(x: Float[Tensor, "n *d"]) -> Frame:
    """Return the plane of a two-dimensional input space, or that through the first points."""
    if x[0].numel() == 2:
        return whole(tuple(x.shape[1:]))
    if len(x) < 3:
        raise ValueError(
            f"x must hold three points that span a plane, found {len(x)}: pass three, or a plane."
        )
    return through(x[:3])


def _domain(
    domain: Float[Tensor, "k 2"] | None, frame: Frame, x: Float[Tensor, "n *d"], *, given: bool
) -> Float64[Tensor, "k 2"]:
    """Return the corners of the domain counter-clockwise, after checks, or a box around points."""
    if frame.origin.shape != x.shape[1:]:
        raise ValueError(
            f"the plane must lie in the input space of shape {tuple(x.shape[1:])}, found one in "
            f"{tuple(frame.origin.shape)}: reshape its origin and axes."
        )
    if domain is None:
        seen = x if x[0].numel() == 2 or given else x[:3]
        return _box(frame.of(seen))
    corners = domain.detach().double()
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
        raise ValueError(
            "domain must hold at least three corners (u, v), found shape "
            f"{tuple(domain.shape)}: pass e.g. [[-1, -1], [1, -1], [1, 1], [-1, 1]]."
        )
    if not bool(corners.isfinite().all()):
        raise ValueError("domain must be finite, found NaN or Inf: repair its corners.")
    return _convex(corners)


def _box(at: Float64[Tensor, "n 2"]) -> Float64[Tensor, "4 2"]:
    low, high = at.amin(0), at.amax(0)
    if not bool((high > low).all()):
        raise ValueError(
            "the points must spread in both directions of the plane to give a domain, found all "
            "on one line: pass domain."
        )
    (a, b), (c, d) = (low - MARGIN * (high - low)).tolist(), (high + MARGIN * (high - low)).tolist()
    return torch.tensor([[a, b], [c, b], [c, d], [a, d]], dtype=torch.float64)


def _convex(corners: Float64[Tensor, "k 2"]) -> Float64[Tensor, "k 2"]:
    """Return the corners counter-clockwise; refuse a polygon without area or with a dent."""
    if float(_turns(corners - corners[0]).sum()) < 0:
        corners = corners.flip(0)
    step = corners.roll(-1, 0) - corners
    turn = step[:, 0] * step.roll(-1, 0)[:, 1] - step[:, 1] * step.roll(-1, 0)[:, 0]
    size = float((corners.amax(0) - corners.amin(0)).prod())
    if not float(_turns(corners - corners[0]).sum()) > 1e-12 * size or size == 0:
        raise ValueError(
            "domain must have an area, found corners on one line: pass corners that go around."
        )
    along = (step * step.roll(-1, 0)).sum(1)
    around = float(torch.atan2(turn, along).sum()) / (2 * math.pi)
    if float(turn.min()) < -1e-12 * size or abs(around - 1) > 1e-6:
        raise ValueError(
            "domain must be convex, found a polygon with a dent or that crosses itself: "
            "cut it into convex parts and add them up."
        )
    return corners


def _turns(corners: Float64[Tensor, "k 2"]) -> Float64[Tensor, " k"]:
    after = corners.roll(-1, 0)
    return corners[:, 0] * after[:, 1] - corners[:, 1] * after[:, 0]


def _window(corners: Float64[Tensor, "k 2"]) -> tuple[Float64[Tensor, " 2"], Float64[Tensor, " 2"]]:
    low, high = corners.amin(0), corners.amax(0)
    return (low + high) / 2, (high - low) / 2


def _budget(net: Piecewise, regions: int, seconds: float | None, memory: int | None) -> Budget:
    """Return where to stop; the memory of a cell is that of its arrays while it is made."""
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds must be above 0, found {seconds}: raise seconds.")
    if memory is not None:
        checks.at_least(2**20, memory=memory)
    room = MEMORY if memory is None else memory
    most = max(1, room // (CELL_BYTES + 64 * net.outputs + 4 * _pattern_bytes(net)))
    until = float("inf") if seconds is None else monotonic() + seconds
    return Budget(regions=min(regions, most), until=until, memory=room)


def _pattern_bytes(net: Piecewise) -> int:
    shapes = [one.node.meta["val"].shape[1:] for one in net.bends]
    return sum(
        math.prod(map(int, shape)) // (8 if one.windows is None else 1)
        for one, shape in zip(net.bends, shapes, strict=True)
    )


def _result(
    found: Tidy,
    frame: Frame,
    corners: Float64[Tensor, "k 2"],
    center: Float64[Tensor, " 2"],
    half: Float64[Tensor, " 2"],
    net: Piecewise,
) -> PlaneRegions:
    place = found.place * half.numpy() + center.numpy()
    maps = torch.from_numpy(found.maps)
    areas = found.areas * float(half.prod()) * frame.area
    whole_area = float(_turns(corners - center).sum()) / 2 * frame.area
    return PlaneRegions(
        vertices=torch.from_numpy(place),
        corners=torch.from_numpy(found.corners),
        first=torch.from_numpy(found.first),
        slopes=maps[:, :2].transpose(1, 2) / half,
        levels=maps[:, 2].contiguous(),
        areas=torch.from_numpy(areas),
        merged=torch.from_numpy(found.merged),
        edges=torch.from_numpy(found.ends),
        neighbours=torch.from_numpy(found.sides),
        makers=torch.from_numpy(found.made),
        patterns=torch.from_numpy(found.patterns),
        bends=tuple(one.place for one in net.bends),
        units=tuple(found.units),
        choices=tuple(
            2 if one.windows is None else max(3, one.windows.shape[1]) for one in net.bends
        ),
        domain=corners,
        center=center,
        origin=frame.origin,
        axes=frame.axes,
        covered=1.0 if found.complete else min(1.0, float(areas.sum()) / whole_area),
        complete=found.complete,
        converted="" if net.converted is None else f"{net.converted} to float64",
    )
