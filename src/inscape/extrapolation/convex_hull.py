"""Convex hulls: whether a point is a mean of others, in any number of dimensions."""

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
from inscape._core.progress import progress

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

#: Points nearer to the hull than this share of its size count as inside: sums have rounding.
TOLERANCE = 1e-9
#: Up to so many dimensions the facets are listed; their number explodes with the dimensions.
FACETS = 5
#: Products of numbers after which the search for planes makes a step.
STEP = 3_000_000_000
#: Steps towards the nearest point of the hull before the weights are sought.
STEPS = 60


@dataclass(frozen=True, eq=False)
class ConvexHull:
    """The convex hull of points, to be asked many times.

    A point is outside if a plane has it on one side and all points of the hull on the other, and
    inside if it is a weighted mean of these, to ``TOLERANCE`` of the hull's size. In up to five
    dimensions the facets decide, else the search for the nearest point of the hull, which finds a
    plane for most points outside; then least squares with weights that are not negative, which end
    with the weights or with a plane; what is left goes to a linear programme (HiGHS). Each of
    these decides for itself whether it is sure.
    """

    points: Float64[Tensor, "n d"]

    @cached_property
    def _frame(self) -> tuple[Array, Array, float, Array]:
        """Return middle, basis of the span, size, and the points in that basis, of size 1."""
        x = self.points.numpy()
        middle = x.mean(0)
        centred = x - middle
        size = float(np.abs(centred).max()) or 1.0
        _, values, basis = np.linalg.svd(centred / size, full_matrices=False)
        rank = int((values > 1e-12 * max(x.shape) * max(values[0], 1e-300)).sum())
        basis = basis[:rank]
        return middle, basis, size, np.ascontiguousarray(centred / size @ basis.T)

    @property
    def dimensions(self) -> int:
        """Return how many dimensions the hull has; fewer than the space where it is flat."""
        return len(self._frame[1])

    @property
    def flat(self) -> bool:
        """Tell whether the hull has fewer dimensions than the space, as one of few points has."""
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
            work: Products after which the points that are left are given up, which are those that
                no plane was found for; None for no end. A thousand million take some seconds.
        """
        return finished(self.search(x, work=work))

    def search(
        self, x: Float[Tensor, "m *d"], *, work: float | None = None
    ) -> Generator[None, None, tuple[Bool[Tensor, " m"], Bool[Tensor, " m"]]]:
        """Return what ``within`` does, with a step after each point that takes long.

        Points are cut off by planes in the space itself first: the span of many wide points takes
        long to find.
        """
        checks.points(x, "queries")
        flat = x.detach().double().flatten(1).cpu().numpy()
        if flat.shape[1] != self.points.shape[1]:
            raise ValueError(
                f"queries must have {self.points.shape[1]} coordinates as the points of the hull "
                f"have, found {flat.shape[1]}: reshape them."
            )
        inside, known = np.zeros(len(flat), dtype=bool), np.ones(len(flat), dtype=bool)
        cut = yield from self._cut_off(flat)
        left = np.flatnonzero(~cut)
        if len(left):
            yield
            inside[left], known[left] = yield from self._in_span(flat[left], work)
        return torch.from_numpy(inside), torch.from_numpy(known)

    def _cut_off(self, flat: Array) -> Generator[None, None, Mask]:
        """Tell which points planes cut off, in many dimensions; False says nothing."""
        cut = np.zeros(len(flat), dtype=bool)
        if flat.shape[1] <= FACETS:
            return cut
        x = self.points.numpy()
        middle = x.mean(0)
        centred = x - middle
        size = float(np.abs(centred).max()) or 1.0
        centred /= size
        each = max(1, STEP // max(1, STEPS * x.size))
        for first in range(0, len(flat), each):
            some = slice(first, first + each)
            cut[some] = separated(centred, (flat[some] - middle) / size)
            yield
        return cut

    def _in_span(self, flat: Array, work: float | None) -> Generator[None, None, tuple[Mask, Mask]]:
        """Tell of points whether they lie in the hull, in the coordinates of its span."""
        middle, basis, size, points = self._frame
        centred = (flat - middle) / size
        q = centred @ basis.T
        inside: Mask = np.abs(centred - q @ basis).max(1, initial=0.0) <= TOLERANCE
        known = np.ones(len(q), dtype=bool)
        if basis.size:
            open_ = np.flatnonzero(inside)
            inside[open_], known[open_] = yield from self._within(points, q[open_], work)
        return inside, known

    def _within(
        self, points: Array, q: Array, work: float | None
    ) -> Generator[None, None, tuple[Mask, Mask]]:
        low, high = points.min(0), points.max(0)
        inside: Mask = ((q >= low - TOLERANCE) & (q <= high + TOLERANCE)).all(1)
        known = np.ones(len(q), dtype=bool)
        open_ = np.flatnonzero(inside)
        if self._facets is not None:
            reach = (q[open_] @ self._facets[:, :-1].T + self._facets[:, -1]).max(1, initial=-1.0)
            inside[open_] = reach <= 0
            open_ = open_[np.abs(reach) <= TOLERANCE]
        elif self.points.shape[1] <= FACETS:  # else they were sought before
            cut = separated(points, q[open_])
            inside[open_[cut]] = False
            open_ = open_[~cut]
        each = points.size * min(points.shape)
        most = len(open_) if work is None else int(work / each)
        planes = _Planes(points)
        with progress(len(open_), label="convex hull") as bar:
            for k in open_:
                inside[k] = known[k] = False
                if planes.cut(q[k]):
                    known[k] = True
                elif planes.solved < most:
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
            found: Array = Qhull(points).equations
        except QhullError:
            return None
        return found


def separated(points: Array, q: Array) -> Mask:
    """Tell for which of the points a plane was found that cuts them off; False says nothing.

    All walk at once towards their nearest point of the hull (Gilbert's steps); the way that is
    left is the normal of a plane, which is tried at every step.
    """
    cut = np.zeros(len(q), dtype=bool)
    near = np.repeat(points.mean(0)[None], len(q), axis=0)
    left = np.arange(len(q))
    for _ in range(STEPS):
        way = q[left] - near[left]
        heights = way @ points.T
        best = heights.argmax(1)
        own = (way * q[left]).sum(1)
        sure = own - heights[np.arange(len(left)), best] > TOLERANCE * np.linalg.norm(way, axis=1)
        cut[left[sure]] = True
        step = points[best] - near[left]
        length = (step * step).sum(1)
        share = np.clip((way * step).sum(1) / np.where(length > 0, length, 1.0), 0.0, 1.0)
        near[left] += share[:, None] * step
        left = left[~sure]
        if not len(left):
            break
    return cut


class _Planes:
    """Planes that have cut off earlier points; many of the next ones are beyond one of them."""

    def __init__(self, points: Array) -> None:
        self._points = points
        self._rows = np.vstack([points.T, np.ones((1, len(points)))])
        self._normals: list[Array] = []
        self._offsets: list[float] = []
        self.solved = 0

    def cut(self, q: Array) -> bool:
        """Tell whether one of the known planes cuts a point off."""
        if not self._normals:
            return False
        reach = np.stack(self._normals) @ q - np.array(self._offsets)
        return bool((reach > TOLERANCE).any())

    def solve(self, q: Array) -> bool:
        """Tell whether a point lies in the hull, and keep the plane if one cuts it off."""
        self.solved += 1
        found = self._weighted(q)
        return self._programmed(q) if found is None else found

    def _weighted(self, q: Array) -> bool | None:
        r"""Seek weights that are not negative by least squares; None if these tell nothing.

        At their end :math:`q - \sum_i w_i p_i` is zero, or the normal of a plane.
        """
        from scipy.optimize import nnls

        wanted = np.append(q, 1.0)
        try:
            weights, _ = nnls(self._rows, wanted, maxiter=3 * sum(self._rows.shape))
        except RuntimeError:  # too many steps
            return None
        rest = wanted - self._rows @ weights
        if np.abs(rest).max() <= TOLERANCE:
            return True
        length = np.linalg.norm(rest[:-1])
        return None if length == 0 or not self._keep(rest[:-1] / length, q) else False

    def _keep(self, normal: Array, q: Array) -> bool:
        """Keep a plane if it cuts a point off, and tell whether it does."""
        offset = float((self._points @ normal).max())
        sure = bool(normal @ q - offset > TOLERANCE)
        if sure:
            self._normals.append(normal)
            self._offsets.append(offset)
        return sure

    def _programmed(self, q: Array) -> bool:
        r"""Tell whether a point lies in the hull, by the linear programme of its distance.

        Minimise the sum of :math:`|q - \sum_i w_i p_i|` over its coordinates, for weights that are
        not negative and add up to 1. The programme always has an answer, and its dual variables
        are a plane.
        """
        from scipy.optimize import linprog

        n, d = self._points.shape
        ways = np.vstack([np.hstack([np.eye(d), -np.eye(d)]), np.zeros((1, 2 * d))])
        found = linprog(
            np.concatenate([np.zeros(n), np.ones(2 * d)]),
            A_eq=np.hstack([self._rows, ways]),
            b_eq=np.append(q, 1.0),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            raise RuntimeError(
                "the linear programme of a convex hull must have an answer, found "
                f"{found.message!r}: scale the data, or leave out points that lie far off."
            )
        if found.fun <= d * TOLERANCE:
            return True
        self._keep(found.eqlin.marginals[:d], q)
        return False


def convex_hull(x: Float[Tensor, "n *d"], *, flat: bool = False) -> ConvexHull:
    r"""Return the convex hull of points, which tells what lies in it.

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
