"""Ideal shapes: the roundest closed regions of a layer one unit wider than its inputs, exactly.

The hyperoctahedron and the expanded simplex of section 4.1 as explicit polytopes in any dimension.
Vertices and facets are integers, squares of radii and volumes fractions, so that nothing
rounds; and each is the decision region of a network that can be written down.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb, exp, factorial, lgamma, log, pi, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from inscape._core import checks

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Kind = Literal["hyperoctahedron", "expanded simplex"]
#: Facets of the largest shape that is listed facet by facet.
LISTED = 2**20


@dataclass(frozen=True)
class IdealShape:
    """A regular hyperoctahedron or a uniform expanded simplex in ``dimension`` dimensions.

    Both lie where their vertices are whole: the hyperoctahedron has the vertices of all unit
    vectors and their opposites; the expanded simplex those that are e_i - e_j, in the hyperplane of
    one dimension more whose coordinates add up to zero.
    """

    kind: Kind
    dimension: int

    @property
    def vertices(self) -> Whole:
        """Return the vertices as rows of integers."""
        n = self.dimension
        if self.kind == "hyperoctahedron":
            unit = np.eye(n, dtype=np.int64)
            return np.concatenate([unit, -unit])
        unit = np.eye(n + 1, dtype=np.int64)
        return np.array([unit[i] - unit[j] for i in range(n + 1) for j in range(n + 1) if i != j])

    @property
    def facets(self) -> Whole:
        """Return the normals a of all facets: the shape is where a x <= 1 for each."""
        if self.facet_count > LISTED:
            raise ValueError(
                f"facets lists at most {LISTED} facets, found {self.facet_count} in dimension "
                f"{self.dimension}: use facet_count and facet_distances."
            )
        return np.array(list(self._normals()), dtype=np.int64)

    def _normals(self) -> Iterator[tuple[int, ...]]:
        if self.kind == "hyperoctahedron":
            yield from product((-1, 1), repeat=self.dimension)
        else:
            chosen = product((0, 1), repeat=self.dimension + 1)
            yield from (subset for subset in chosen if 0 < sum(subset) <= self.dimension)

    @property
    def vertex_count(self) -> int:
        """Return 2n, or n (n + 1)."""
        n = self.dimension
        return 2 * n if self.kind == "hyperoctahedron" else n * (n + 1)

    @property
    def facet_count(self) -> int:
        """Return 2^n, or 2^(n+1) - 2."""
        n = self.dimension
        return 1 << n if self.kind == "hyperoctahedron" else (1 << (n + 1)) - 2

    @property
    def outer_square(self) -> Fraction:
        """Return the square of the distance of the vertices from the centre."""
        return Fraction(1 if self.kind == "hyperoctahedron" else 2)

    def facet_distances(self) -> dict[int, Fraction]:
        """Return the squared distance of each kind of facet for an outer radius of one.

        Kinds of the expanded simplex are told by k: its facets are products of a simplex of k - 1
        dimensions and one of n - k, so that k and n + 1 - k are alike. Eq. (4.6), where the
        argument i of the print is k (S16).
        """
        n = self.dimension
        if self.kind == "hyperoctahedron":
            return {1: Fraction(1, n)}
        return {k: Fraction(n + 1, 2 * k * (n + 1 - k)) for k in range(1, (n + 1) // 2 + 1)}

    @property
    def inner_square(self) -> Fraction:
        """Return the squared inner radius for an outer radius of one: Eqs. (4.5) and (4.10)."""
        return min(self.facet_distances().values())

    @property
    def ratio_square(self) -> Fraction:
        """Return (R / rho)^2: n, or (n (n + 2) + [n odd]) / (2 (n + 1)), as in Eq. (4.12)."""
        return 1 / self.inner_square

    @property
    def ratio(self) -> float:
        """Return R / rho."""
        return sqrt(self.ratio_square)

    @property
    def volume_square(self) -> Fraction:
        """Return the squared volume for an outer radius of one.

        The hyperoctahedron is 2^n simplices of 1 / n!; the expanded simplex is the polytope of the
        roots of A_n with C(2n, n) unimodular ones of sqrt(n + 1) / n!, shrunk by sqrt(2).
        """
        n = self.dimension
        if self.kind == "hyperoctahedron":
            return Fraction(2**n, factorial(n)) ** 2
        return Fraction(comb(2 * n, n), factorial(n)) ** 2 * Fraction(n + 1, 2**n)

    @property
    def volume(self) -> float:
        """Return the volume for an outer radius of one."""
        return sqrt(self.volume_square)

    def coordinates(self, radius: float = 1.0) -> Array:
        """Return the vertices in ``dimension`` coordinates, at this distance from the origin."""
        rows = self.vertices.astype(float)
        if self.kind == "expanded simplex":
            rows = rows @ _across(self.dimension + 1).T
        shrunk: Array = radius / sqrt(self.outer_square) * rows
        return shrunk

    def network(self, *, radius: float = 1.0, leak: float = 0.0) -> nn.Sequential:
        """Return a network whose positive region is this shape; with a leak, near the origin.

        One hidden layer of ``dimension + 1`` units, in float64. The hyperoctahedron needs its last
        unit to be on everywhere in it; where that is off and there is a leak, the output is
        positive again far away.

        Args:
            radius: Distance of the vertices from the origin.
            leak: Slope of the leaky ReLU below zero, at least 0 and less than 1.
        """
        if not 0 <= leak < 1 or not radius > 0:
            raise ValueError(
                "leak must be at least 0 and less than 1, and radius positive, found "
                f"{leak} and {radius}."
            )
        n = self.dimension
        if self.kind == "hyperoctahedron":
            weight = np.concatenate([np.eye(n), np.ones((1, n))])
            bias = np.append(np.zeros(n), 2.0 * radius)
            out = np.append(np.full(n, -2 / (1 + leak)), 1.0)
            end = (1 - leak) / (1 + leak) * radius - 2 * radius
        else:
            weight, bias = _across(n + 1).T, np.zeros(n + 1)
            out = -np.ones(n + 1)
            end = (1 - leak) * radius / sqrt(2)
        return written(weight, bias, out, end, leak=leak)


def hyperoctahedron(n: int) -> IdealShape:
    """Return the regular hyperoctahedron: square, octahedron, 16-cell and on.

    >>> hyperoctahedron(3).facet_count, hyperoctahedron(3).ratio_square
    (8, Fraction(3, 1))
    """
    checks.at_least(1, n=n)
    return IdealShape("hyperoctahedron", n)


def expanded_simplex(n: int) -> IdealShape:
    """Return the uniform expanded simplex: hexagon, cuboctahedron and on.

    >>> expanded_simplex(3).facet_count, expanded_simplex(3).ratio_square
    (14, Fraction(2, 1))
    """
    checks.at_least(1, n=n)
    return IdealShape("expanded simplex", n)


def ball_volume(n: int, radius: float = 1.0) -> float:
    """Return the volume of a ball, Eq. (4.14)."""
    checks.at_least(1, n=n)
    return exp(n / 2 * log(pi) - lgamma(n / 2 + 1) + n * log(radius))


def shell_share(shape: IdealShape) -> float:
    """Return the shell between both spheres of a shape, in volumes of the inner ball.

    Eqs. (4.15) and (4.16); the root in (4.16) lacks the power n (S8).
    """
    return float(shape.ratio**shape.dimension) - 1


def _across(m: int) -> Array:
    """Return orthonormal rows that span the vectors whose ``m`` coordinates add up to zero."""
    rows = np.zeros((m - 1, m))
    for k in range(1, m):
        rows[k - 1, :k] = 1.0
        rows[k - 1, k] = -k
        rows[k - 1] /= sqrt(k * (k + 1))
    return rows


def written(
    weight: Array, bias: Array, out: Array, end: float, *, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of one hidden layer and one output with these weights, in float64."""
    units, inputs = weight.shape
    hidden = nn.Linear(inputs, units, dtype=torch.float64, device="meta").to_empty(device="cpu")
    last = nn.Linear(units, 1, dtype=torch.float64, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        hidden.weight.copy_(torch.from_numpy(weight))
        hidden.bias.copy_(torch.from_numpy(bias))
        last.weight.copy_(torch.from_numpy(out)[None])
        last.bias.fill_(end)
    op = nn.LeakyReLU(leak) if leak else nn.ReLU()
    return nn.Sequential(hidden, op, last).eval()
