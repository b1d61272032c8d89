"""Membership in convex hulls, in any number of dimensions."""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from inscape._core import checks
from inscape._core.anytime import finished
from inscape.runtime.progress import progress

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

#: Points nearer to the hull than this fraction of its size count as inside: sums have rounding.
TOLERANCE = 1e-9
#: Up to so many dimensions the facets are listed; their number explodes with the dimensions.
FACETS = 5
#: Multiplications between two steps of the search for planes.
STEP = 3_000_000_000
#: Steps towards the nearest point of the hull before weights are solved for.
STEPS = 60


@dataclass(frozen=True, eq=False)
class ConvexHull:
    """The convex hull of points, for repeated membership tests.

    A point is outside if a plane has it on one side and all points of the hull on the other, and
    inside if it is a weighted mean of these, to ``TOLERANCE`` of the hull's size. In up to five
    dimensions the facets decide, else the search for the nearest point of the hull, which finds a
    plane for most points outside; then least squares with weights that are not negative, which end
    with the weights or with a plane; what remains undecided goes to a linear programme (HiGHS).
    Each of these has its own certificate.
    """

    points: Float64[Tensor, "n d"]

    @cached_property
    def _frame(self) -> tuple[Array, Array, float, Array]:
        """Return centre, basis of the span, size, and the normalised points in that basis."""
        x = self.points.numpy()
        centre = x.mean(0)
        centred = x - centre
        size = float(np.abs(centred).max()) or 1.0
        _, values, basis = np.linalg.svd(centred / size, full_matrices=False)
        rank = int((values > 1e-12 * max(x.shape) * max(values[0], 1e-300)).sum())
        basis = basis[:rank]
        return centre, basis, size, np.ascontiguousarray(centred / size @ basis.T)

    @property
    def dimensions(self) -> int:
        """Return how many dimensions the hull has; fewer than the space where it is flat."""
        return len(self._frame[1])

    @property
    def flat(self) -> bool:
        """Tell whether the hull has fewer dimensions than the space."""
        n, d = self.points.shape
        return n <= d or self.dimensions < d

    def contains(self, x: Float[Tensor, "m *d"]) -> Bool[Tensor, " m"]:
        """Tell of each point whether it lies in the hull, its boundary included."""
        return self.within(x)[0]

    def within(
        self, x: Float[Tensor, "m *d"], *, work: float | None = None
    ) -> tuple[Bool[Tensor, " m"], Bool[Tensor, " m"]]:
        """Tell of each point whether it lies in the hull, and whether that is known.

        Args:
            x: Points.
            work: Multiplications after which undecided points are given up; None for no limit. A
                thousand million take some seconds.
        """
        return finished(self.search(x, work=work))

    def search(
        self, x: Float[Tensor, "m *d"], *, work: float | None = None
    ) -> Generator[None, None, tuple[Bool[Tensor, " m"], Bool[Tensor, " m"]]]:
        """Return what ``within`` does, yielding after each expensive point.

        Points are first separated in the space itself: the span of many wide points is expensive.
        """
        checks.points(x, "queries")
        flat = x.detach().double().flatten(1).cpu().numpy()
        if flat.shape[1] != self.points.shape[1]:
            raise ValueError(
                f"queries must have {self.points.shape[1]} coordinates as the points of the hull "
                f"have, found {flat.shape[1]}: reshape them."
            )
        inside, known = np.zeros(len(flat), dtype=bool), np.ones(len(flat), dtype=bool)
        cut = yield from self._separated(flat)
        undecided = np.flatnonzero(~cut)
        if len(undecided):
            yield
            inside[undecided], known[undecided] = yield from self._in_span(flat[undecided], work)
        return torch.from_numpy(inside), torch.from_numpy(known)

    def _separated(self, flat: Array) -> Generator[None, None, Mask]:
        """Tell which points planes separate, in many dimensions; False is undecided."""
        cut = np.zeros(len(flat), dtype=bool)
        if flat.shape[1] <= FACETS:
            return cut
        x = self.points.numpy()
        centre = x.mean(0)
        centred = x - centre
        size = float(np.abs(centred).max()) or 1.0
        centred /= size
        rows = max(1, STEP // max(1, STEPS * x.size))
        for first in range(0, len(flat), rows):
            block = slice(first, first + rows)
            cut[block] = separated(centred, (flat[block] - centre) / size)
            yield
        return cut

    def _in_span(self, flat: Array, work: float | None) -> Generator[None, None, tuple[Mask, Mask]]:
        """Tell of points whether they lie in the hull, in the coordinates of its span."""
        centre, basis, size, points = self._frame
        centred = (flat - centre) / size
        q = centred @ basis.T
        inside: Mask = np.abs(centred - q @ basis).max(1, initial=0.0) <= TOLERANCE
        known = np.ones(len(q), dtype=bool)
        if basis.size:
            undecided = np.flatnonzero(inside)
            inside[undecided], known[undecided] = yield from self._within(
                points, q[undecided], work
            )
        return inside, known

    def _within(
        self, points: Array, q: Array, work: float | None
    ) -> Generator[None, None, tuple[Mask, Mask]]:
        low, high = points.min(0), points.max(0)
        inside: Mask = ((q >= low - TOLERANCE) & (q <= high + TOLERANCE)).all(1)
        known = np.ones(len(q), dtype=bool)
        undecided = np.flatnonzero(inside)
        if self._facets is not None:
            heights = (q[undecided] @ self._facets[:, :-1].T + self._facets[:, -1]).max(
                1, initial=-1.0
            )
            inside[undecided] = heights <= 0
            undecided = undecided[np.abs(heights) <= TOLERANCE]
        elif self.points.shape[1] <= FACETS:  # else they were sought before
            cut = separated(points, q[undecided])
            inside[undecided[cut]] = False
            undecided = undecided[~cut]
        cost = points.size * min(points.shape)
        limit = len(undecided) if work is None else int(work / cost)
        planes = _Planes(points)
        with progress(len(undecided), label="convex hull") as bar:
            for k in undecided:
                inside[k] = known[k] = False
                if planes.cut(q[k]):
                    known[k] = True
                elif planes.solved < limit:
                    inside[k], known[k] = planes.solve(q[k]), True
                    yield
                bar.advance()
        return inside, known

    @cached_property
    def _facets(self) -> Array | None:
        """Return normals and offsets of all facets, or None where there are too many."""
        from scipy.spatial import ConvexHull as Qhull
        from scipy.spatial import QhullError

        points = self._frame[3]
        if points.shape[1] == 1:
            return np.array([[1.0, -points.max()], [-1.0, points.min()]])
        if points.shape[1] > FACETS:
            return None
        try:
            equations: Array = Qhull(points).equations
        except QhullError:
            return None
        return equations


def separated(points: Array, q: Array) -> Mask:
    """Tell which points a plane separates from the hull; False is undecided.

    Gilbert's algorithm for all points at once: the vector to the iterate of the nearest point of
    the hull is the normal of a plane, which is tested at every step.
    """
    cut = np.zeros(len(q), dtype=bool)
    iterates = np.repeat(points.mean(0)[None], len(q), axis=0)
    undecided = np.arange(len(q))
    for _ in range(STEPS):
        normals = q[undecided] - iterates[undecided]
        heights = normals @ points.T
        best = heights.argmax(1)
        query_heights = (normals * q[undecided]).sum(1)
        is_separated = query_heights - heights[
            np.arange(len(undecided)), best
        ] > TOLERANCE * np.linalg.norm(normals, axis=1)
        cut[undecided[is_separated]] = True
        steps = points[best] - iterates[undecided]
        squared_lengths = (steps * steps).sum(1)
        fractions = np.clip(
            (normals * steps).sum(1) / np.where(squared_lengths > 0, squared_lengths, 1.0), 0.0, 1.0
        )
        iterates[undecided] += fractions[:, None] * steps
        undecided = undecided[~is_separated]
        if not len(undecided):
            break
    return cut


class _Planes:
    """Separating planes of earlier points, which separate many of the next ones too."""

    def __init__(self, points: Array) -> None:
        self._points = points
        self._rows = np.vstack([points.T, np.ones((1, len(points)))])
        self._normals: list[Array] = []
        self._offsets: list[float] = []
        self.solved = 0

    def cut(self, q: Array) -> bool:
        """Tell whether one of the stored planes separates a point."""
        if not self._normals:
            return False
        reach = np.stack(self._normals) @ q - np.array(self._offsets)
        return bool((reach > TOLERANCE).any())

    def solve(self, q: Array) -> bool:
        """Tell whether a point lies in the hull, and store the plane if one separates it."""
        self.solved += 1
        inside = self._solve_least_squares(q)
        return self._solve_linear_programme(q) if inside is None else inside

    def _solve_least_squares(self, q: Array) -> bool | None:
        r"""Solve for non-negative weights by least squares; None if undecided.

        At their end :math:`q - \sum_i w_i p_i` is zero, or the normal of a plane.
        """
        from scipy.optimize import nnls

        target = np.append(q, 1.0)
        try:
            weights, _ = nnls(self._rows, target, maxiter=3 * sum(self._rows.shape))
        except RuntimeError:  # too many steps
            return None
        residual = target - self._rows @ weights
        if np.abs(residual).max() <= TOLERANCE:
            return True
        length = np.linalg.norm(residual[:-1])
        return None if length == 0 or not self._store(residual[:-1] / length, q) else False

    def _store(self, normal: Array, q: Array) -> bool:
        """Store a plane if it separates a point, and tell whether it does."""
        offset = float((self._points @ normal).max())
        separates = bool(normal @ q - offset > TOLERANCE)
        if separates:
            self._normals.append(normal)
            self._offsets.append(offset)
        return separates

    def _solve_linear_programme(self, q: Array) -> bool:
        r"""Tell whether a point lies in the hull, by the linear programme of its distance.

        Minimise the sum of :math:`|q - \sum_i w_i p_i|` over its coordinates, for weights that are
        not negative and add up to 1. The programme always has a solution, and its dual variables
        are a plane.
        """
        from scipy.optimize import linprog

        n, d = self._points.shape
        slacks = np.vstack([np.hstack([np.eye(d), -np.eye(d)]), np.zeros((1, 2 * d))])
        solution = linprog(
            np.concatenate([np.zeros(n), np.ones(2 * d)]),
            A_eq=np.hstack([self._rows, slacks]),
            b_eq=np.append(q, 1.0),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if solution.status != 0:
            raise RuntimeError(
                "the linear programme of a convex hull must have a solution, found "
                f"{solution.message!r}: scale the data, or leave out points that lie far off."
            )
        if solution.fun <= d * TOLERANCE:
            return True
        self._store(solution.eqlin.marginals[:d], q)
        return False


def convex_hull(x: Float[Tensor, "n *d"], *, flat: bool = False) -> ConvexHull:
    r"""Return the convex hull of points, for membership tests.

    .. math:: \mathrm{hull}(X) = \left\{ \sum_i w_i x_i : w_i \ge 0, \sum_i w_i = 1 \right\}

    Args:
        x: Points.
        flat: Whether the hull may have fewer dimensions than the space, as it must where there are
            no more points than dimensions; then hardly anything lies in it.

    >>> square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> convex_hull(square).contains(torch.tensor([[0.5, 0.9], [1.0, 1.0], [0.5, 1.1]])).tolist()
    [True, True, False]
    """
    checks.points(x)
    points = x.detach().double().flatten(1).cpu()
    n, d = points.shape
    if n <= d and not flat:
        raise ValueError(
            f"a convex hull with an inside needs more points than the {d} dimensions, found {n} "
            "points: pass more points, fewer dimensions (e.g. principal components), or flat=True."
        )
    return ConvexHull(points)
