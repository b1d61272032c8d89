"""Region at a point: the polytope around it on which the network is one affine map."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
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
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.functional.precision import name_of
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.piecewise.stepping import StepClock
from inscape.regions._cell_search import ON, CellSearch, Ending, in_turns
from inscape.regions._faces import Array
from inscape.regions._refusal import refusal
from inscape.regions.polytope import ProgrammeBudget, polygon
from inscape.runtime.deadline import Deadline

#: Coordinates beyond this leave too few digits to tell slopes from rounding.
FAR = 1e9


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegionAt(Result):
    """The cell normals x <= offsets around a point, where v(x) = slopes x + constants.

    Faces are sorted by the operation that switches there (``layers``: its number, -1 for a side of
    the box), then by distance; normals have length one. ``distances`` are those to the planes,
    ``facet_distances`` those to the faces themselves. ``switching_units`` has one row (face,
    operation, unit, successor) for each unit that switches at a face; the successor is the entry of
    a window of max pooling that is the maximum beyond it, -1 elsewhere. ``proven`` faces are known
    to be irredundant. The largest ball inside has its middle at ``centre`` (one of several, maybe)
    and the radius ``inscribed``, NaN where the time ran out, as ``bounded``, ``slopes`` and
    ``constants`` are None then. Of the half-spaces, ``constraints``, those that seemed nearest were
    ``examined`` where time or memory ran out: the cell is smaller than what the faces enclose.
    ``ended_by`` names the budget that left something open.
    """

    range: ClassVar[Range] = NONNEGATIVE
    nonfinite: ClassVar[Mapping[str, str]] = {
        "facet_distances": "NaN where the time ran out",
        "inscribed": "infinite in an unbounded region, NaN where the time ran out",
    }

    point: Float64[Tensor, " D"]
    slopes: Float64[Tensor, "c D"] | None
    constants: Float64[Tensor, " c"] | None
    normals: Float64[Tensor, "m D"]
    offsets: Float64[Tensor, " m"]
    distances: Float64[Tensor, " m"]
    facet_distances: Float64[Tensor, " m"] | None
    layers: Int64[Tensor, " m"]
    proven: Bool[Tensor, " m"]
    switching_units: Int64[Tensor, "switching_units 4"]
    places: tuple[str, ...]
    inscribed: Float64[Tensor, ""]
    centre: Float64[Tensor, " D"]
    bounded: bool | None
    constraints: int
    examined: int
    constant: int
    programmes: int
    faces: str
    index: int
    converted: str | None
    ended_by: Ending = "complete"

    @property
    def radius(self) -> float:
        """Return the radius of the largest ball inside the cell, whose centre is ``centre``."""
        return float(self.inscribed)

    @property
    def ball(self) -> float:
        """Return the radius of the largest ball around the point itself inside the cell."""
        return float(self.distances.min()) if len(self.distances) else float("inf")

    @property
    def on_faces(self) -> Int64[Tensor, " on"]:
        """Return the faces on which the point lies, if any: its cell is that with ties off."""
        return (self.distances <= ON * (1.0 + float(self.point.norm()))).nonzero().flatten()

    @property
    def status(self) -> str:
        """Return ``"ok"``, or what could not be decided."""
        if self.radius <= 0.0:
            return "the cell has no inside: the point lies on several kinks at once"
        spent = []
        if self.examined < self.constraints:
            spent.append(f"only {self.examined} of {self.constraints} half-spaces were examined")
        unproven = int((~self.proven).sum())
        if self.faces == "irredundant" and unproven:
            spent.append(f"{unproven} of {len(self.proven)} faces may be redundant")
        if isnan(self.radius):
            spent.append("the largest ball is not known")
        return f"budget spent ({self.ended_by}): {', '.join(spent)}" if spent else "ok"

    def contains(self, x: Float[Tensor, "n *d"]) -> Bool[Tensor, " n"]:
        """Tell which points lie in the cell, its faces included."""
        return (x.double().flatten(1) @ self.normals.T <= self.offsets).all(1)

    def by_layer(self) -> dict[int, int]:
        """Return the number of faces of each piecewise-linear operation."""
        return dict(sorted(Counter(self.layers.tolist()).items()))

    def polygon(self, reach: float) -> Float64[Tensor, "corners 2"]:
        """Return the corners of a cell in the plane, inside a square of that half side."""
        if len(self.point) != 2:
            raise ValueError(
                f"a polygon needs two inputs, found {len(self.point)}: use plane_regions for a "
                "plane through the cell."
            )
        corners = polygon(self.normals.numpy(), self.distances.numpy(), reach)
        return self.point + torch.from_numpy(corners)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each face."""
        distances, proven = self.distances.tolist(), self.proven.tolist()
        facets = [None] * len(distances)
        if self.facet_distances is not None:
            facets = self.facet_distances.tolist()
        switching_units: dict[int, list[list[int]]] = {}
        for face, *switching_unit in self.switching_units.tolist():
            switching_units.setdefault(face, []).append(switching_unit)
        for k, layer in enumerate(self.layers.tolist()):
            yield {
                "layer": layer,
                "place": self.places[layer] if layer >= 0 else "box",
                "unit": switching_units[k][0][1],
                "switching_units": len(switching_units[k]),
                "distance": distances[k],
                "facet_distance": facets[k],
                "proven": proven[k],
            }
        if not len(distances):
            yield dict.fromkeys(("layer", "place", "unit", "switching_units"), None) | {
                "distance": float("inf"),
                "facet_distance": None,
                "proven": True,
            }

    def summary(self) -> Summary:
        """Return the distance from the point to its nearest face."""
        basis = f"{len(self.distances)} faces of {self.constraints} half-spaces"
        if self.examined < self.constraints:
            basis = f"nearest of {self.examined} examined of {self.constraints} half-spaces"
        kind: Kind = "exact" if self.examined == self.constraints else "upper bound"
        return Summary(value=self.ball, kind=kind, basis=f"{basis}, point {self.index}")


@instrument(
    reads="function",
    larger="a larger linear region",
    cost="seconds",
    work=lambda n, c: 2000,
    setup=2.0,
    meaning="Around the first data point the function is exactly affine up to a distance of "
    "{value}.",
    cites="sattelberg2026linearity, Eqs. (5.25), (6.1)",
    exempt=("switching_units", "centre", "programmes"),
)
@anytime
def region_at(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    index: int = 0,
    faces: Literal["irredundant", "all"] = "irredundant",
    facets: bool = True,
    box: tuple[float, float] | None = None,
    programmes: int = 20_000,
    seconds: float = 60.0,
    memory: int = 2**32,
) -> Iterator[RegionAt | NotApplicable]:
    r"""Find the linear region that holds a point, in any number of dimensions.

    .. math:: v(x) = J x + y \quad \mathrm{where} \quad Q x \leq p

    The region is the cell of points with the same activation pattern (a unit is on where it is
    above zero, of equal entries the first is the largest), so that two neighbouring cells may
    share one map. Exact up to rounding: every half-space comes from one unit with the patterns of
    those before it fixed; doubles are merged, constant units left out, and redundant ones removed
    by rays, least squares and linear programmes. Costs ``d`` forward and ``c`` backward passes, and
    about one least-squares problem for each half-space. ``region_at.refine`` yields the nearest
    faces first.

    Args:
        f: A piecewise-linear network in eval mode.
        x: Points of the data.
        index: Which of them the region is to hold.
        faces: ``"irredundant"`` removes what makes no face, ``"all"`` keeps every half-space.
        facets: Whether to measure the distances to the faces themselves, not to their planes only.
        box: Lowest and highest value of every input, whose sides then bound the region too.
        programmes: Least-squares and linear programmes that may be solved.
        seconds: Time from the call on; what is not decided then is kept and said, the nearest
            faces are decided first. Where it is too short for all half-spaces, those that seem
            nearest are examined. With 0 all half-spaces are found, and nothing more.
        memory: Bytes that the half-spaces and programmes with them may take, 4 GiB by default;
            where it is too little, the nearest are examined.

    >>> import torch
    >>> found = region_at(torch.abs, torch.tensor([[2.0, -1.0]]))
    >>> found.distances.tolist(), found.radius, found.bounded
    ([1.0, 2.0], inf, False)
    """
    checks.at_least(0, programmes=programmes, seconds=seconds)
    turn = StepClock(seconds or None)
    budget = ProgrammeBudget(programmes, turn.deadline if seconds else Deadline(float("-inf")))
    checks.one_of(("irredundant", "all"), faces=faces)
    try:
        net, point = piecewise(f, x), _point(x, index)
    except UnsupportedModelError as error:
        yield refusal("region_at", f, x, error)
        return
    turn.exported()
    flat = point.flatten().numpy()
    search = CellSearch(
        net, point, budget, memory,
        box=None if box is None else _box(box, flat), remove=faces == "irredundant", facets=facets,
    )  # fmt: skip
    result: Any = None  # yielded again where a step is over
    for is_more in in_turns(search, turn):
        if is_more:
            result = _result(search, net, faces=faces, index=index)
        yield result


def _result(search: CellSearch, net: Piecewise, *, faces: str, index: int) -> RegionAt:
    """Return what is known of the region."""
    half_spaces, point, (centre, radius) = search.faces, search.point.flatten(), search.ball
    order = np.lexsort((half_spaces.distances, half_spaces.layers))
    half_spaces, proven = half_spaces.chosen(order), search.proven[order]
    facets = None if search.facets is None else torch.from_numpy(search.facets[order])
    return RegionAt(
        point=point,
        slopes=search.map[0],
        constants=search.map[1],
        normals=torch.from_numpy(half_spaces.normals),
        offsets=torch.from_numpy(half_spaces.distances + half_spaces.normals @ point.numpy()),
        distances=torch.from_numpy(half_spaces.distances),
        facet_distances=facets,
        layers=torch.from_numpy(half_spaces.layers),
        proven=torch.from_numpy(proven),
        switching_units=torch.from_numpy(half_spaces.switching_units),
        places=tuple(op.place for op in net.ops),
        inscribed=torch.tensor(radius, dtype=torch.float64),
        centre=point + torch.from_numpy(centre),
        bounded=search.bounded,
        constraints=search.constraints,
        examined=search.examined,
        constant=half_spaces.constant,
        programmes=search.budget.spent,
        faces=faces,
        index=index,
        converted=name_of(net.converted),
        ended_by=search.ended_by,
    )


def _point(x: Tensor, index: int) -> Float64[Tensor, "*d"]:
    checks.whole(-len(x), index=index)
    if not index < len(x):
        raise ValueError(
            f"index must name one of {len(x)} points, found {index}: choose 0 to {len(x) - 1}."
        )
    point = x[index].detach().double().cpu()
    if (farthest := float(point.abs().max())) > FAR:
        raise ValueError(
            f"the point must have coordinates of at most {FAR:g}, found {farthest:.3g}: farther "
            "away slopes cannot be told from rounding; scale the data and the first layer."
        )
    return point


def _box(box: tuple[float, float], point: Array) -> tuple[Array, Array]:
    low, high = box
    if not (low <= point.min() and point.max() <= high):
        raise ValueError(
            f"the box must hold the point, found sides {low} to {high} around values from "
            f"{point.min():.4g} to {point.max():.4g}: widen the box."
        )
    return np.full(len(point), float(low)), np.full(len(point), float(high))
