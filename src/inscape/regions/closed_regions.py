"""Closed regions: does the decision boundary of a small layer enclose something, and what?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
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
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.precision import name_of
from inscape.piecewise.graph.matrix_chain import MatrixChain, layers, matrix
from inscape.piecewise.graph.network import piecewise
from inscape.regions._exact_layer import closed, inner_radius, layer, places

Array = npt.NDArray[np.float64]
#: Most inputs for which n + 1 units are decided in fractions: their digits grow with each input.
MOST = 32


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClosedRegions(Result):
    """The bounded regions on one side of a level, as flat arrays; at most one beyond one input.

    Region ``i`` has the corners ``corners[first[i]:first[i + 1]]`` and holds ``inside[i]`` of the
    ``inputs + 1`` points in which all but one of the units are zero. ``whole[i]`` tells whether the
    output is on its side nowhere else. Radii are around the mean of the corners; the inner
    one is NaN beyond 16 inputs, where there are too many faces.
    """

    range: ClassVar[Range] = NONNEGATIVE
    nonfinite: ClassVar[Mapping[str, str]] = {"inner": "NaN beyond 16 inputs"}

    sides: Int64[Tensor, " regions"]
    inside: Int64[Tensor, " regions"]
    whole: Bool[Tensor, " regions"]
    corners: Float64[Tensor, "k D"]
    first: Int64[Tensor, " m"]
    inner: Float64[Tensor, " regions"]
    outer: Float64[Tensor, " regions"]
    inputs: int
    units: int
    leak: float
    level: float
    converted: str | None

    @property
    def count(self) -> int:
        """Return how many closed regions there are."""
        return len(self.sides)

    @property
    def shapes(self) -> tuple[str, ...]:
        """Return the shape of each: hyperoctahedron, expanded simplex, or between."""
        return tuple(shape_of(k, self.inputs) for k in self.inside.tolist())

    @property
    def shape(self) -> str:
        """Return the shape of the closed region, or ``open`` where there is none."""
        return self.shapes[0] if self.count else "open"

    def region(self, number: int = 0) -> Float64[Tensor, "k D"]:
        """Return the corners of one region; in the plane in their order around it."""
        if not 0 <= number < self.count:
            raise ValueError(
                f"number must be one of {self.count} closed regions, found {number}: look at count "
                "first."
            )
        corners = self.corners[self.first[number] : self.first[number + 1]]
        if self.inputs != 2:
            return corners
        across, up = (corners - corners.mean(0)).T
        return corners[torch.atan2(up, across).argsort()]

    def rows(self) -> Iterator[Row]:
        """Yield one row for each region, or a single one that says that all are open."""
        sizes = self.first.diff().tolist()
        if not sizes:
            none = {"side": None, "inside": 0, "corners": 0}
            yield {"shape": "open"} | none | {"whole": None, "inner": None, "outer": None}
        for k, size in enumerate(sizes):
            yield {
                "shape": self.shapes[k],
                "side": int(self.sides[k]),
                "inside": int(self.inside[k]),
                "corners": size,
                "whole": bool(self.whole[k]),
                "inner": None if self.inner[k].isnan() else float(self.inner[k]),
                "outer": float(self.outer[k]),
            }

    def summary(self) -> Summary:
        """Return the number of closed regions."""
        shapes = ", ".join(self.shapes) or "none: every region reaches to infinity"
        basis = f"{self.units} units, {self.inputs} inputs; {shapes}"
        return Summary(value=float(self.count), kind="exact", basis=basis)


def shape_of(inside: int, inputs: int) -> str:
    """Return the shape of a closed region that holds so many of the vertices of its units."""
    if inside == 1:
        return "hyperoctahedron"
    if inside == inputs + 1 or inputs == 2:  # in the plane every shape between is a hexagon
        return "expanded simplex"
    return "between"


@instrument(
    reads="function",
    larger="a more intricate decision",
    cost="instant",
    work=lambda n, c: 1,
    setup=1.0,
    meaning="The boundary of its decision encloses {value} bounded regions.",
    cites="sattelberg2026linearity, section 4.1",
    by_default=False,
)
def closed_regions(
    f: Function, x: Float[Tensor, "n *d"], *, level: float = 0.0
) -> ClosedRegions | NotApplicable:
    r"""Find the bounded decision regions of a hidden layer of at most n + 1 units, and their shape.

    .. math:: \{x : c + \sum_{i=0}^{n} a_i\, \varphi(w_i x + b_i) > \ell\},
              \qquad x \in \mathbb{R}^n

    Exact, in fractions of the weights. With n units or fewer no region is bounded. With n + 1 at
    most one is (two, of different sides, for n = 1), it is convex, and it needs n output weights
    of one sign. It is a hyperoctahedron (a quadrilateral in the plane) if it holds one of the n + 1
    points at which n units are zero, an expanded simplex (a hexagon) if it holds all of them, and
    between both otherwise. A ReLU whose output weights have all one sign closes a region if and
    only if its normals positively span the space.

    Args:
        f: Network with one hidden layer of ReLU or leaky ReLU and one output, in eval mode.
        x: Points of the data, which give the shape of an input.
        level: Level of the output at which the decision changes.

    >>> import torch
    >>> from inscape.regions import expanded_simplex
    >>> closed_regions(expanded_simplex(2).network(), torch.zeros(1, 2)).summary().basis
    '3 units, 2 inputs; expanded simplex'
    """
    checks.number(level=level)
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        return NotApplicable(what="closed_regions", reason=str(error))
    chained = layers(net) if net.ops else None
    reason = _refusal(chained, net.inputs, net.outputs)
    if chained is None or reason:
        return NotApplicable(what="closed_regions", reason=reason)
    with torch.no_grad():
        weight, bias = matrix(net, net.program.input, net.ops[0].node.args[0])
    return from_weights(
        weight,
        bias,
        chained.weights[0][0],
        float(chained.biases[0][0]) - level,
        float(chained.slopes[0][0]),
        level=level,
        converted=name_of(net.converted),
    )


def _refusal(chained: MatrixChain | None, inputs: int, outputs: int) -> str:
    """Return why a network is not one that this can decide; an empty text if it is."""
    if chained is None or len(chained.slopes) != 1 or outputs != 1:
        return "it takes one hidden layer of units with one kink, and one output"
    slopes, units = chained.slopes[0], len(chained.slopes[0])
    if not (slopes == slopes[0]).all() or not 0 <= slopes[0] < 1:
        return "it takes ReLUs, or leaky ReLUs of one slope between 0 and 1"
    if units > inputs + 1:
        return (
            f"it takes at most {inputs + 1} units for {inputs} inputs, found {units}: wider "
            "layers close regions of many more shapes"
        )
    if units == inputs + 1 and inputs > MOST:
        return f"it takes at most {MOST} inputs for one unit more than inputs, found {inputs}"
    return ""


def from_weights(
    weight: Array,
    bias: Array,
    out: Array,
    end: float,
    leak: float = 0.0,
    *,
    level: float = 0.0,
    converted: str | None = None,
) -> ClosedRegions:
    """Decide from the weights of a layer, without a module.

    Args:
        weight: Rows of the hidden layer, at most one more than there are columns.
        bias: Its biases.
        out: Weights of the one output.
        end: Bias of the output, less the level.
        leak: Slope of the units below zero.
        level: Level that ``end`` is meant for, recorded in the result.
        converted: Precision of the weights, recorded in the result.
    """
    units, inputs = weight.shape
    net = layer(weight, bias, out, end, leak) if units == inputs + 1 else None
    regions = closed(net) if net else []
    corners = [places(region.corners, weight, bias) for region in regions]
    centres = [place.mean(0) for place in corners]
    inner = [
        inner_radius(region, weight, bias, out, end, leak, centre)
        for region, centre in zip(regions, centres, strict=True)
    ]
    outer = [
        float(np.linalg.norm(place - centre, axis=1).max())
        for place, centre in zip(corners, centres, strict=True)
    ]
    ends = np.cumsum([0, *map(len, corners)])
    return ClosedRegions(
        sides=_whole([region.side for region in regions]),
        inside=_whole([len(region.inside) for region in regions]),
        whole=torch.tensor([region.whole for region in regions], dtype=torch.bool),
        corners=torch.from_numpy(np.concatenate([np.zeros((0, inputs)), *corners])),
        first=_whole(ends.tolist()),
        inner=torch.tensor(inner, dtype=torch.float64),
        outer=torch.tensor(outer, dtype=torch.float64),
        inputs=inputs,
        units=units,
        leak=leak,
        level=level,
        converted=converted,
    )


def _whole(numbers: list[int]) -> Int64[Tensor, " k"]:
    return torch.tensor(numbers, dtype=torch.int64)
