"""Region evolution: how the linear regions of a network move and settle while it is trained."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int32, Int64, UInt8
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.substitution import checked_copy
from inscape.piecewise.planes import Frame
from inscape.piecewise.planes.raster import raster
from inscape.regions.boundary import Boundary, decision_boundary
from inscape.regions.plane_regions import PlaneRegions, plane_regions
from inscape.runtime.progress import progress
from inscape.training.settings import FitSettings
from inscape.training.trajectory import Trajectory, chosen_steps, stand_at

#: Arrays of regions that change from step to step, with what they have one row for.
PARTS = {
    "vertices": 0,
    "corners": 1,
    "first": 2,
    "slopes": 3,
    "intercepts": 3,
    "areas": 3,
    "merged": 3,
    "patterns": 3,
    "edges": 4,
    "neighbours": 4,
    "switching_units": 4,
}

#: Numbers of regions that tell what rounding may hide.
LOST = ("unresolved", "unresolved_area", "coinciding")

#: Fields of regions that are the same at all steps.
COMMON = ("ops", "units", "states", "domain", "center", "origin", "axes", "converted")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegionEvolution(Result):
    """The regions of a plane at some steps of a training, and how far each layer has settled.

    ``differs[i, k]`` is the fraction of ``samples`` places and units of operation ``k`` at which
    the pattern at ``steps[i]`` is not yet the final one; ``settled[k]`` is the first of the steps
    from which on this is at most ``tolerance``. The regions of all steps lie in flat arrays one
    after the other; ``regions_at(i)`` and ``boundary_at(i)`` give those of one step.
    ``unresolved``, ``unresolved_area`` and ``coinciding`` tell what rounding may hide of them, as
    in ``PlaneRegions``.
    """

    range: ClassVar[Range] = NONNEGATIVE

    steps: Int64[Tensor, " steps"]
    cells: Int64[Tensor, " steps"]
    regions: Int64[Tensor, " steps"]
    lengths: Float64[Tensor, " steps"]
    differs: Float64[Tensor, "steps ops"]
    settled: Int64[Tensor, " ops"]
    tolerance: float
    samples: int
    sizes: Int64[Tensor, "steps 5"]
    vertices: Float64[Tensor, "v 2"]
    corners: Int32[Tensor, " k"]
    first: Int64[Tensor, " m"]
    slopes: Float64[Tensor, "cells c 2"]
    intercepts: Float64[Tensor, "cells c"]
    areas: Float64[Tensor, " cells"]
    merged: Int64[Tensor, " cells"]
    patterns: UInt8[Tensor, "cells bytes"]
    edges: Int32[Tensor, "e 2"]
    neighbours: Int32[Tensor, "e 2"]
    switching_units: Int32[Tensor, "e 2"]
    ops: tuple[str, ...]
    units: tuple[int, ...]
    states: tuple[int, ...]
    domain: Float64[Tensor, "sides 2"]
    center: Float64[Tensor, " 2"]
    origin: Float64[Tensor, "*d"]
    axes: Float64[Tensor, "2 *d"]
    covered: Float64[Tensor, " steps"]
    complete: Bool[Tensor, " steps"]
    converted: str | None
    unresolved: Int64[Tensor, " steps"] | None = None
    unresolved_area: Float64[Tensor, " steps"] | None = None
    coinciding: Int64[Tensor, " steps"] | None = None

    def regions_at(self, index: int) -> PlaneRegions:
        """Return the regions at one of the steps, by its place among them."""
        index = range(len(self.steps))[index]
        begin, size = self.sizes[:index].sum(0).tolist(), self.sizes[index].tolist()
        parts = {
            name: getattr(self, name)[begin[kind] : begin[kind] + size[kind]]
            for name, kind in PARTS.items()
        }
        return PlaneRegions(
            **parts,
            **{name: getattr(self, name) for name in COMMON},
            covered=float(self.covered[index]),
            complete=bool(self.complete[index]),
            ended_by="complete" if bool(self.complete[index]) else "regions",
            asked=self.domain,
            **{
                name: getattr(self, name)[index].item()
                for name in LOST
                if self.unresolved is not None
            },
        )

    def boundary_at(self, index: int) -> Boundary:
        """Return where the decision changes at one of the steps, by its place among them."""
        return decision_boundary(self.regions_at(index))

    def rows(self) -> Iterator[Row]:
        """Yield one row for each step."""
        for i, step in enumerate(self.steps.tolist()):
            yield {
                "step": step,
                "cells": int(self.cells[i]),
                "regions": int(self.regions[i]),
                "boundary": float(self.lengths[i]),
                "complete": bool(self.complete[i]),
                **{f"differs {k}": fraction for k, fraction in enumerate(self.differs[i].tolist())},
            }

    def summary(self) -> Summary:
        """Return the number of cells at the last step."""
        settled = ", ".join(str(step) for step in self.settled.tolist()) or "none"
        basis = f"{int(self.cells[0])} cells at step {int(self.steps[0])}; settled at {settled}"
        lost = 0 if self.unresolved is None else int(self.unresolved[-1])
        if lost:
            basis += f"; regions too narrow for float64 may be missing in {lost} places"
        kind: Any = "exact" if bool(self.complete[-1]) and not lost else "lower bound"
        return Summary(value=float(self.cells[-1]), kind=kind, basis=basis)


def _two_states(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Return a trajectory of one step, from smaller weights to the model's own."""
    own = model.state_dict().items()
    settings = FitSettings(lr=0.1, epochs=1, record=1)
    trajectory = Trajectory(
        states={name: torch.stack([(0.9 * t).to(t.dtype), t]).detach() for name, t in own},
        memory={},
        checkpoints=torch.tensor([0, 1]),
        rates=torch.tensor([0.1], dtype=torch.float64),
        order=None,
        trainable=tuple(name for name, _ in model.named_parameters()),
        settings=settings,
        data="",
    )
    return {"trajectory": trajectory}


@instrument(
    reads="trajectory",
    larger="more linear regions",
    cost="minutes",
    work=lambda n, c: 120_000,
    setup=12.0,
    meaning="At the end of training the number of linear regions in this window is {value}.",
    cites="sattelberg2026linearity, section 6.2",
    example=_two_states,
)
def region_evolution(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    *,
    trajectory: Trajectory | None = None,
    steps: int | Sequence[int] = 12,
    plane: Frame | None = None,
    domain: Float[Tensor, "k 2"] | None = None,
    tolerance: float = 0.05,
    grid: int = 64,
    regions: int = 1_000_000,
    threads: int | None = None,
) -> RegionEvolution | NotApplicable:
    r"""Cut a plane into its linear regions at recorded steps of a training.

    .. math:: s_k = \min \{t : D_k(u) \leq \varepsilon \mathrm{ for all } u \geq t\}, \quad
              D_k(t) = \mathrm{mean}_{p, j}
              \left[ \pi_{kj}(p; t) \neq \pi_{kj}(p; T) \right]

    Cells, maps and boundary are exact at every step, as in ``plane_regions`` and ``boundary``. How
    far layer ``k`` is from its final pattern is measured on a grid of places ``p``, an estimate of
    the fraction of the window; whether early layers settle first is Sattelberg's question in
    section 6.2. Costs one ``plane_regions`` for each step.

    Args:
        model: The network that was trained, in eval mode; a copy of it takes the recorded weights.
        x: Points that give the plane and the window, as for ``plane_regions``.
        trajectory: The recorded training, as ``fit(..., record=...)`` returns it.
        steps: Number of checkpoints to use, evenly spaced, or the steps themselves.
        plane: Plane to cut; by default that of a two-dimensional input space, or through the first
            three points.
        domain: Corners of a convex polygon in the plane's coordinates; by default a box around the
            points, a tenth wider.
        tolerance: A layer is settled once at most this fraction of its pattern is not final.
        grid: Places along each side of the window at which patterns are compared.
        regions: Stop at this many cells, at each step.
        threads: Threads; by default those of torch.
    """
    checks.module(model)
    checks.in_eval_mode(model)
    checks.points(x)
    checks.whole(1, grid=grid, regions=regions)
    checks.at_least(0, tolerance=tolerance)
    if trajectory is None:
        reason = "it needs a recorded training: pass fit(..., record=...).trajectory"
        return NotApplicable(what="region_evolution", reason=reason)
    chosen = chosen_steps(trajectory, steps)
    body = checked_copy(model, x)
    planes: list[PlaneRegions] = []
    with progress(len(chosen), label="regions of steps") as bar:
        for step in chosen:
            stand_at(body, trajectory, step)
            cut = plane_regions(
                body, x, plane=plane, domain=domain, regions=regions, threads=threads
            )
            if isinstance(cut, NotApplicable):
                return NotApplicable(what="region_evolution", reason=cut.reason)
            planes.append(cut)
            bar.advance()
    return _result(chosen, planes, tolerance, grid)


def _result(
    steps: list[int], planes: list[PlaneRegions], tolerance: float, grid: int
) -> RegionEvolution:
    differs, samples = _differs(planes, grid)
    last = planes[-1]
    parts: dict[str, Any] = {
        name: torch.cat([getattr(plane, name) for plane in planes]) for name in PARTS
    }
    sizes = [
        [len(plane.vertices), len(plane.corners), len(plane.first), plane.cells, len(plane.edges)]
        for plane in planes
    ]
    numbers = torch.tensor(steps)
    return RegionEvolution(
        steps=numbers,
        cells=torch.tensor([plane.cells for plane in planes]),
        regions=torch.tensor([plane.regions for plane in planes]),
        lengths=_float64(decision_boundary(plane).length for plane in planes),
        differs=differs,
        settled=_settled(numbers, differs, tolerance),
        tolerance=float(tolerance),
        samples=samples,
        sizes=torch.tensor(sizes),
        covered=_float64(plane.covered for plane in planes),
        complete=torch.tensor([plane.complete for plane in planes]),
        **parts,
        unresolved=torch.tensor([plane.unresolved for plane in planes]),
        unresolved_area=_float64(plane.unresolved_area for plane in planes),
        coinciding=torch.tensor([plane.coinciding for plane in planes]),
        **{name: getattr(last, name) for name in COMMON},
    )


def _float64(numbers: Iterable[float]) -> Float64[Tensor, " steps"]:
    return torch.tensor(list(numbers), dtype=torch.float64)


def _differs(planes: list[PlaneRegions], grid: int) -> tuple[Float64[Tensor, "steps ops"], int]:
    """Return the fraction of each layer's pattern that is not final, and the number of places."""
    last = planes[-1]
    low, high = last.domain.amin(0).numpy(), last.domain.amax(0).numpy()
    under = np.stack(
        [
            raster(
                plane.vertices.numpy(),
                plane.corners.numpy(),
                plane.first.numpy(),
                low,
                high,
                (grid, grid),
            ).reshape(-1)
            for plane in planes
        ]
    )
    cell_at = torch.from_numpy(under[:, (under >= 0).all(0)])
    fractions = torch.zeros(len(planes), len(last.units), dtype=torch.float64)
    for op in range(len(last.units)):
        final = last.pattern(op)[cell_at[-1]]
        for i, plane in enumerate(planes):
            fractions[i, op] = (plane.pattern(op)[cell_at[i]] != final).double().mean()
    return fractions, cell_at.shape[1]


def _settled(
    steps: Int64[Tensor, " steps"], differs: Float64[Tensor, "steps ops"], tolerance: float
) -> Int64[Tensor, " ops"]:
    """Return the first step from which on a layer stays within the tolerance."""
    late = (differs > tolerance).flip(0).cumsum(0).flip(0) > 0
    return steps[late.sum(0)]
