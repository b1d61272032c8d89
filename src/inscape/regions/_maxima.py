"""Maxima of affine functions: sums, pointwise maxima, and removal of redundant terms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inscape.regions.polytope import ProgrammeBudget, beyond_all

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

#: Relative to the largest coefficient: what is nearer than this is equal but for rounding.
SAME = 1e-13
#: Dimensions up to which the convex hull is built; linear programmes from there on.
HULL = 5


@dataclass(frozen=True, eq=False)
class Maximum:
    """The convex function max over k of slopes[k] x + constants[k]."""

    slopes: Array
    constants: Array

    def __len__(self) -> int:
        return len(self.constants)

    def __call__(self, x: Array) -> Array:
        """Return the values at the rows of ``x``."""
        largest: Array = (x @ self.slopes.T + self.constants).max(1)
        return largest

    def __add__(self, other: "Maximum") -> "Maximum":
        """Return the sum, whose terms are sums of one term of each."""
        d = self.slopes.shape[1]
        slopes = (self.slopes[:, None] + other.slopes[None]).reshape(-1, d)
        constants = (self.constants[:, None] + other.constants[None]).reshape(-1)
        return pruned(Maximum(slopes, constants))

    def __or__(self, other: "Maximum") -> "Maximum":
        """Return the pointwise maximum of both."""
        slopes = np.concatenate([self.slopes, other.slopes])
        return pruned(Maximum(slopes, np.concatenate([self.constants, other.constants])))

    def __rmul__(self, factor: float) -> "Maximum":
        """Return a multiple; the factor is not negative."""
        if factor == 0:
            return constant(self.slopes.shape[1])
        return Maximum(factor * self.slopes, factor * self.constants)


def constant(d: int, value: float = 0.0) -> Maximum:
    """Return a constant function as a maximum of one term."""
    return Maximum(np.zeros((1, d)), np.full(1, value))


def total(parts: Sequence[tuple[float, Maximum]], d: int) -> Maximum:
    """Return a sum of multiples, the shortest maxima first."""
    total = constant(d)
    for factor, part in sorted(parts, key=lambda part: len(part[1])):
        if factor:
            total = total + factor * part
    return total


def most_terms(counts: Sequence[int], dimension: int) -> int:
    """Return the most terms that a sum of maxima of so many terms can need in that dimension.

    The sum over all sets of at most ``dimension`` of them of the products of their numbers of
    terms less one, which is attained (Montúfar, Ren and Zhang 2022).
    """
    sums = [1] + [0] * dimension
    for count in counts:
        for j in range(dimension, 0, -1):
            sums[j] += sums[j - 1] * (count - 1)
    return sum(sums)


def pruned(maximum: Maximum) -> Maximum:
    """Return the maximum without the terms that are nowhere the largest alone, in a fixed order."""
    scale = max(float(np.abs(maximum.slopes).max()), 1e-300)
    slopes, constants = _without_doubles(maximum.slopes, maximum.constants, SAME * scale)
    centred = slopes - slopes.mean(0)
    _, sizes, basis = np.linalg.svd(centred, full_matrices=False)
    rank = int((sizes > SAME * max(float(sizes.max(initial=0)), scale)).sum())
    inner = centred @ basis[:rank].T
    if rank == 0:
        keep = np.array([constants.argmax()])
    elif rank == 1:
        keep = _on_a_line(inner[:, 0], constants)
    elif rank <= HULL:
        keep = _by_hull(inner, constants)
    else:
        keep = by_programmes(inner, constants)
    return Maximum(slopes[keep], constants[keep])


def _without_doubles(slopes: Array, constants: Array, near: float) -> tuple[Array, Array]:
    """Return one term, that of the largest constant, for each slope, sorted by the slopes."""
    keys = np.round(slopes / near)
    order = np.lexsort(keys.T[::-1])
    first = np.append(True, (np.abs(np.diff(keys[order], axis=0)) > 1).any(1))
    group = np.cumsum(first)
    order = order[np.lexsort((-constants[order], group))][first]
    return slopes[order], constants[order]


def _on_a_line(slopes: Array, constants: Array) -> Whole:
    """Return the terms of the upper envelope of functions of one variable.

    A term is left out where it rises above two others by no more than their rounding.
    """
    order = np.argsort(slopes)
    stack: list[int] = []
    high, steep = SAME * float(np.abs(constants).max()), SAME * float(np.abs(slopes).max())
    for k in order.tolist():
        while len(stack) > 1:
            i, j = stack[-2], stack[-1]
            run, climb = slopes[k] - slopes[i], constants[k] - constants[i]
            over = (constants[j] - constants[i]) * run - climb * (slopes[j] - slopes[i])
            if over > high * run + steep * abs(climb):
                break
            stack.pop()
        stack.append(k)
    return np.sort(np.array(stack))


def _by_hull(slopes: Array, constants: Array) -> Whole:
    """Return the terms on the upper side of the convex hull of all (slope, constant)."""
    from scipy.spatial import ConvexHull, QhullError

    points = np.column_stack([slopes, constants])
    points = (points - points.mean(0)) / np.maximum(np.abs(points - points.mean(0)).max(0), 1e-300)
    below = np.append(np.zeros(slopes.shape[1]), -10.0)
    try:
        hull = ConvexHull(np.vstack([points, below]))
    except QhullError:  # too flat for it
        return by_programmes(slopes, constants)
    corners = np.unique(hull.simplices[hull.equations[:, -2] > 1e-12])
    return corners[corners < len(points)].astype(np.int64)


def by_programmes(slopes: Array, constants: Array) -> Whole:
    """Return the terms that are somewhere the largest: by random points, then by programmes."""
    draw = np.random.default_rng(0)
    size = max(float(np.ptp(constants)), 1e-300) / max(float(np.ptp(slopes, axis=0).max()), 1e-300)
    sure = np.zeros(len(constants), bool)
    for stretch in (0.1, 1.0, 10.0):
        x = stretch * size * draw.standard_normal((256, slopes.shape[1]))
        sure[np.unique((x @ slopes.T + constants).argmax(1))] = True
    gone = np.zeros(len(constants), bool)
    budget = ProgrammeBudget(10**9)
    for k in np.flatnonzero(~sure).tolist():
        others = np.flatnonzero(~gone & (np.arange(len(gone)) != k))
        rows, limits = slopes[others] - slopes[k], constants[k] - constants[others]
        gone[k] = beyond_all(rows, limits / max(size, 1e-300), budget) <= 1e-9
    return np.flatnonzero(~gone)
