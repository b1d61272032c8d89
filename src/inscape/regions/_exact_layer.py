"""Which closed region a layer of n + 1 units makes in n dimensions, in exact arithmetic.

The zeros of n + 1 units in general position are hyperplanes, any n of which meet in one point, the
vertex that is named after the unit left out. With the one dependence sum_j lambda_j w_j = 0 of the
normals, scaled so that sum_j lambda_j b_j = 1, unit j is 1 / lambda_j at vertex j and all others
are 0, so that the output there is c + a_j phi(1 / lambda_j): everything follows from lambda, the
output weights and the leak. A bounded region holds a local maximum, hence a vertex; around vertex j
the output falls in all directions only if all other output weights are negative. So there are two
cases, and no more.

- All output weights are negative: the output is concave and its positive region convex. It is
  bounded if and only if zero is a sum of the normals with weights between leak |a_i| and |a_i|: if
  the normals positively span, for a ReLU. Of the lines through vertices i and j it cuts those of
  which it holds an end, in two corners each.
- One output weight is positive: only the region around its own vertex can be bounded, and only if
  it lies wholly on one side of its hyperplane.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Numbers = Sequence[Fraction]
#: The first unit, the second, and the pre-activations of both; all others are zero.
Corner = tuple[int, int, Fraction, Fraction]
#: Most units whose states are all listed for an inner radius.
LISTED = 17


@dataclass(frozen=True)
class ExactLayer:
    """Output c + sum_i a_i phi(w_i x + b_i) of n + 1 units, in fractions.

    ``dependence`` is lambda of the normals and ``height`` is sum_j lambda_j b_j, which is 1 or,
    where all hyperplanes meet in one point, 0.
    """

    weights: tuple[Fraction, ...]
    end: Fraction
    leak: Fraction
    dependence: tuple[Fraction, ...]
    height: Fraction

    def activation(self, z: Fraction) -> Fraction:
        """Return the activation of a unit."""
        return z if z > 0 else self.leak * z

    def at_vertex(self, j: int) -> Fraction:
        """Return the output at a vertex."""
        return self.end + self.weights[j] * self.activation(self.height / self.dependence[j])


@dataclass(frozen=True)
class BoundedRegion:
    """A bounded region: on which side of zero, the vertices in it, its corners, and its cells.

    ``fixed`` is the unit that does not change its state in it, if there is one; ``whole`` tells
    whether the output has this sign nowhere else.
    """

    side: int
    inside: tuple[int, ...]
    corners: tuple[Corner, ...]
    fixed: int | None
    whole: bool


def layer(weight: Array, bias: Array, out: Array, end: float, leak: float) -> ExactLayer | None:
    """Return a layer of n + 1 units; None where n of its normals are dependent."""
    rows = [[Fraction(number) for number in row] for row in weight.tolist()]
    dependence = _dependence(rows)
    if dependence is None:
        return None
    height = sum(
        (k * Fraction(b) for k, b in zip(dependence, bias.tolist(), strict=True)), Fraction()
    )
    if height:
        dependence = [number / height for number in dependence]
    return ExactLayer(
        weights=tuple(Fraction(number) for number in out.tolist()),
        end=Fraction(end),
        leak=Fraction(leak),
        dependence=tuple(dependence),
        height=Fraction(bool(height)),
    )


def closed(net: ExactLayer) -> list[BoundedRegion]:
    """Return the bounded regions of both signs; more than one only in one dimension."""
    regions = []
    for side in (1, -1):
        turned = ExactLayer(
            weights=tuple(side * number for number in net.weights),
            end=side * net.end,
            leak=net.leak,
            dependence=net.dependence,
            height=net.height,
        )
        region = _positive(turned, side)
        regions += [region] if region else []
    return regions


def _positive(net: ExactLayer, side: int) -> BoundedRegion | None:
    """Return the bounded region in which the output is positive, if there is one."""
    if 0 in net.weights:
        return None
    units = range(len(net.weights))
    raised = [j for j in units if net.weights[j] > 0]
    if not raised:
        inside = tuple(j for j in units if net.at_vertex(j) > 0)
        if not inside or not _spans(net):
            return None
        lines = [pair for pair in combinations(units, 2) if set(pair) & set(inside)]
        corners = [corner for i, j in lines for corner in _ends(net, i, j)]
        lone = inside[0] if len(inside) == 1 and net.height else None
        return BoundedRegion(side, inside, tuple(corners), lone, True)
    if len(raised) > 1 or not net.height:
        return None
    return _around(net, raised[0], side)


def _spans(net: ExactLayer) -> bool:
    """Tell whether zero is a sum of normals weighted between leak |a_i| and |a_i|, strictly."""
    signs = {number > 0 for number in net.dependence}
    if len(signs) > 1:
        return False
    ratios = [abs(k / a) for k, a in zip(net.dependence, net.weights, strict=True)]
    return net.leak * max(ratios) < min(ratios)


def _around(net: ExactLayer, j: int, side: int) -> BoundedRegion | None:
    """Return the hyperoctahedron around the vertex of the one unit with a positive weight."""
    top = net.at_vertex(j)
    if top <= 0:
        return None
    peak = 1 / net.dependence[j]
    slope = Fraction(1) if peak > 0 else net.leak
    corners: list[Corner] = []
    for i, a in enumerate(net.weights):
        if i == j:
            continue
        turn = -net.dependence[i] / net.dependence[j]  # of unit j, for each step of unit i
        drag = slope * net.weights[j] * turn
        below, above = net.leak * a + drag, a + drag
        if below <= 0 or above >= 0:
            return None
        for step in (-top / below, -top / above):
            moved = peak + turn * step
            if moved * peak <= 0:
                return None
            corners.append((i, j, step, moved))
    return BoundedRegion(side, (j,), tuple(corners), j, net.leak == 0)


def _ends(net: ExactLayer, i: int, j: int) -> list[Corner]:
    """Return where the output is zero on the line of all points at which other units are zero.

    The output is concave on it, with a kink where unit i is zero and one where unit j is.
    """
    k, m = net.dependence[i], net.dependence[j]

    def other(z: Fraction) -> Fraction:
        return (net.height - k * z) / m

    def value(z: Fraction) -> Fraction:
        return (
            net.end + net.weights[i] * net.activation(z) + net.weights[j] * net.activation(other(z))
        )

    low, high = sorted((Fraction(0), net.height / k))
    corners = []
    for near, far, direction in ((low, high, -1), (high, low, 1)):
        start = value(near)
        if start > 0:
            fall = start - value(near + direction)
            z = near + direction * start / fall
        else:
            z = near + (far - near) * start / (start - value(far))
        corners.append((i, j, z, other(z)))
    return corners


def places(corners: Sequence[Corner], weight: Array, bias: Array) -> Array:
    """Return corners in the input space, the first coordinate rising; all units but two are 0."""
    if not corners:
        return np.zeros((0, weight.shape[1]))
    units = np.zeros((len(corners), len(bias)))
    for row, (i, j, z, other) in zip(units, corners, strict=True):
        row[i], row[j] = float(z), float(other)
    points = np.asarray(np.linalg.lstsq(weight, (units - bias).T, rcond=None)[0].T, dtype=float)
    order = np.lexsort(np.round(points, 9).T[::-1])
    return points[order]


def inner_radius(
    region: BoundedRegion,
    weight: Array,
    bias: Array,
    out: Array,
    end: float,
    leak: float,
    centre: Array,
) -> float:
    """Return the distance from a centre to the nearest facet of a closed region.

    The output is the least of its affine maps over all states of the units that change them. NaN
    for many units, since there are as many states as two to their number.
    """
    if len(out) > LISTED:
        return float("nan")
    at = weight @ centre + bias
    moving = [k for k in range(len(out)) if k != region.fixed]
    codes = np.arange(1 << len(moving))
    slopes = np.ones((len(codes), len(out)))
    for bit, unit in enumerate(moving):
        slopes[:, unit] = np.where(codes >> bit & 1, 1.0, leak)
    if region.fixed is not None:
        slopes[:, region.fixed] = 1.0 if at[region.fixed] > 0 else leak
    values = region.side * (end + slopes @ (out * at))
    steep = np.linalg.norm((slopes * out) @ weight, axis=1)
    with np.errstate(divide="ignore"):
        return float(np.where(steep > 0, values / steep, np.inf).min())


def _dependence(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Return the numbers, none of them zero, with which n + 1 rows of n add up to zero."""
    n = len(rows) - 1
    system = [[row[k] for row in rows] for k in range(n)]  # columns belong to units
    for k in range(n):
        pivot = next((r for r in range(k, n) if system[r][k]), None)
        if pivot is None:
            return None
        system[k], system[pivot] = system[pivot], system[k]
        head = system[k][k]
        system[k] = [number / head for number in system[k]]
        for r in range(n):
            if r != k and (factor := system[r][k]):
                system[r] = [a - factor * b for a, b in zip(system[r], system[k], strict=True)]
    coefficients = [-row[n] for row in system] + [Fraction(1)]
    return coefficients if all(coefficients) else None
