"""Slice difference: two piecewise-linear networks in a plane, compared exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Float64, Int32, Int64
from torch import Tensor, nn
from torch.nn.functional import max_pool1d

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range
from inscape.functional.precision import in_precision
from inscape.piecewise.planes.frame import Frame
from inscape.regions import PlaneRegions, plane_regions
from inscape.similarity._pair import NO_OTHER, Other, checked, paired, perturbed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SliceDifference(Result):
    """The common refinement of both networks' linear regions in a polygon of a plane.

    Cell ``i`` has the corners ``vertices[corners[first[i]:first[i + 1]]]``; ``edges`` join two
    vertices and have the cells ``neighbours`` on their sides (-1: none). On each cell both networks
    are affine and give one class each: ``classes`` and ``other_classes``. ``differences`` are the
    largest distances of both outputs on each cell, reached at the corner ``places`` (coordinates of
    the plane). ``covered`` is the fraction of the window, ``exact`` tells whether it is all of it
    and no cell below rounding may be missing.
    """

    range: ClassVar[Range] = PROPORTION

    vertices: Float64[Tensor, "v 2"]
    corners: Int32[Tensor, " k"]
    first: Int64[Tensor, " m"]
    areas: Float64[Tensor, " cells"]
    edges: Int32[Tensor, "e 2"]
    neighbours: Int32[Tensor, "e 2"]
    classes: Int64[Tensor, " cells"]
    other_classes: Int64[Tensor, " cells"]
    differences: Float64[Tensor, " cells"]
    places: Float64[Tensor, "cells 2"]
    centroids: Float64[Tensor, "cells 2"]
    domain: Float64[Tensor, "sides 2"]
    origin: Float64[Tensor, "*d"]
    axes: Float64[Tensor, "2 *d"]
    covered: float
    exact: bool

    @property
    def cells(self) -> int:
        """Return the number of cells of the common refinement."""
        return len(self.areas)

    @property
    def area(self) -> float:
        """Return the area on which the networks give different classes."""
        return float(self.areas[self.classes != self.other_classes].sum())

    @property
    def largest(self) -> float:
        """Return the largest distance of the outputs in the window."""
        return float(self.differences.max())

    @property
    def farthest(self) -> Float64[Tensor, "*d"]:
        """Return the input of the window at which the outputs are farthest apart."""
        place = self.places[int(self.differences.argmax())]
        return Frame(origin=self.origin, axes=self.axes).at(place[None])[0]

    def boundary(self, of: Literal["first", "second"]) -> Int64[Tensor, " k"]:
        """Return the numbers of the edges on the decision boundary of a network."""
        checks.one_of(("first", "second"), of=of)
        classes = self.classes if of == "first" else self.other_classes
        left, right = self.neighbours.long().unbind(1)
        inner = (left >= 0) & (right >= 0)
        return (inner & (classes[left] != classes[right])).nonzero().flatten()

    def rows(self) -> Iterator[Row]:
        """Yield one row for each cell."""
        columns = (self.centroids, self.areas, self.classes, self.other_classes, self.differences)
        for (u, v), area, first, second, difference in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            yield {
                "u": u, "v": v, "area": area, "class": first, "other_class": second,
                "difference": difference,
            }  # fmt: skip

    def summary(self) -> Summary:
        """Return the fraction of the covered area on which the classes differ."""
        value = min(1.0, self.area / float(self.areas.sum()))
        basis = f"{self.cells} cells; outputs differ by at most {self.largest:.3g}"
        if self.exact:
            return Summary(value=value, kind="exact", basis=basis)
        low, high = value * self.covered, 1 - (1 - value) * self.covered
        basis = f"{self.covered:.1%} of the window; {basis}"
        return Summary(value=value, kind="estimate", basis=basis, low=low, high=high)


class BothNetworks(nn.Module):
    """Outputs of both networks, and the largest of either, whose kinks are the boundaries."""

    def __init__(self, f: Function, other: Function) -> None:
        super().__init__()
        self.f, self.other = f, other

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of the first, of the other, and the largest of each."""
        both = [_columns(net(x.clone())) for net in (self.f, self.other)]
        return torch.cat([*both, *map(_largest, both)], dim=1)


def _columns(outputs: Tensor) -> Float[Tensor, "n c"]:
    return outputs.flatten(1) if outputs.ndim > 1 else outputs[:, None]


def _largest(outputs: Float[Tensor, "n c"]) -> Float[Tensor, "n 1"]:
    if outputs.shape[1] == 1:
        return outputs.relu()
    return max_pool1d(outputs.unsqueeze(1), outputs.shape[1]).flatten(1)


@instrument(
    reads="pair",
    larger="more of the plane is classified otherwise",
    cost="seconds",
    work=lambda n, c: 20_000,
    setup=1.0,
    meaning="On the fraction {value} of this window the two networks give different classes.",
    cites="sattelberg2026linearity, section 7.3",
    example=perturbed,
    by_default=False,
    least_rows=3,
)
def slice_difference(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    plane: Frame | None = None,
    domain: Float[Tensor, "k 2"] | None = None,
    regions: int = 1_000_000,
    seconds: float | None = None,
) -> SliceDifference | NotApplicable:
    r"""Compare two piecewise-linear networks exactly in a polygon of a plane.

    .. math:: \frac{|\{p : \arg\max f(p) \neq \arg\max g(p)\}|}{|\mathrm{window}|}, \qquad
              \max_p \lVert f(p) - g(p) \rVert_2

    Both are exact in float64, up to rounding. The cells are the linear regions of the network
    :math:`(f, g, \max_j f_j, \max_j g_j)`: on each of them both networks are affine and each has
    one class, and :math:`\lVert f - g \rVert` is convex, so that it is largest at a corner. A
    network with one output has two classes, above zero and not.

    Args:
        f: The first network, of affine and piecewise-linear operations; see ``plane_regions``.
        x: Points: those of a two-dimensional input space give the window, of any other the first
            three (not on a line) the plane.
        other: The second network; without one the result is "not applicable".
        plane: Plane to cut, e.g. ``through(points)``.
        domain: Corners of a convex polygon in the plane's coordinates.
        regions: Stop at this many cells.
        seconds: Stop after this time, with the largest window that was covered.

    >>> import torch
    >>> corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    >>> above = slice_difference(
    ...     lambda x: x[:, :1], corners, other=lambda x: x[:, 1:], domain=corners
    ... )
    >>> above.area, round(above.largest, 12)
    (2.0, 2.0)
    """
    checks.points(x)
    if other is None:
        return NotApplicable(what="slice_difference", reason=NO_OTHER)
    first, wide, _ = in_precision(f, x, "float64")
    second, _, _ = in_precision(checked(other), x, "float64")
    outputs = paired(first, wide, second, None, same_inputs=True).first.outputs
    cells = plane_regions(
        BothNetworks(first, second).eval(), wide, plane=plane, domain=domain, regions=regions,
        seconds=seconds,
    )  # fmt: skip
    if isinstance(cells, NotApplicable):
        return NotApplicable(what="slice_difference", reason=cells.reason)
    return difference_of(cells, outputs)


def difference_of(cells: PlaneRegions, outputs: int) -> SliceDifference:
    """Return the comparison of two networks from the regions of ``BothNetworks``.

    Args:
        cells: The regions of both networks together.
        outputs: Outputs of each network.
    """
    middle = cells.values(torch.arange(cells.cells), cells.centroids)
    differences, places = _largest_at_corners(cells, outputs)
    copied = ("vertices", "corners", "first", "areas", "edges", "neighbours", "centroids",
              "domain", "origin", "axes", "covered")  # fmt: skip
    return SliceDifference(
        **{name: getattr(cells, name) for name in copied},
        classes=winners(middle[:, :outputs]),
        other_classes=winners(middle[:, outputs : 2 * outputs]),
        differences=differences,
        places=places,
        exact=cells.complete and not cells.unresolved,
    )


def winners(outputs: Float64[Tensor, "n c"]) -> Int64[Tensor, " n"]:
    """Return the largest output of each row; of a single output whether it is above zero."""
    return outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).long()


def _largest_at_corners(
    cells: PlaneRegions, outputs: int
) -> tuple[Float64[Tensor, " cells"], Float64[Tensor, "cells 2"]]:
    """Return the largest distance of both outputs on each cell, and the corner where it is."""
    cell = torch.repeat_interleave(torch.arange(cells.cells), cells.first.diff())
    corners = cells.vertices[cells.corners.long()]
    values = cells.values(cell, corners)
    distances = (values[:, :outputs] - values[:, outputs : 2 * outputs]).norm(dim=1)
    largest = torch.zeros(cells.cells, dtype=torch.float64)
    largest.scatter_reduce_(0, cell, distances, "amax")
    reached = (distances == largest[cell]).nonzero().flatten()
    corner = torch.empty(cells.cells, dtype=torch.int64)
    corner[cell[reached.flip(0)]] = reached.flip(0)  # the first corner of several
    return largest, corners[corner]
