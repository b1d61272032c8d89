"""Convex hulls: whether a point is a mean of others, in any number of dimensions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from inscape._core import checks
from inscape._core.progress import progress

Array = npt.NDArray[Any]

#: Points nearer to the hull than this share of its size count as inside: sums have rounding.
TOLERANCE = 1e-9
#: Up to so many dimensions the facets are listed; their number explodes with the dimensions.
FACETS = 5
#: Steps towards the nearest point of the hull before the linear programme is asked.
STEPS = 60


@dataclass(frozen=True, eq=False)
class ConvexHull:
    """The convex hull of points, to be asked many times.

    A point is outside if a plane has it on one side and all points of the hull on the other, and
    inside if it is a weighted mean of these, to ``TOLERANCE`` of the hull's size. In up to five
    dimensions the facets decide, else the search for the nearest point of the hull, which finds a
    plane for most points outside; what is left goes to a linear programme (HiGHS). Each of the
    three decides for itself whether it is sure.
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

    def contains(self, x: Float[Tensor, "m *d"]) -> Bool[Tensor, " m"]:
        """Tell of each point whether it lies in the hull, its boundary included."""
        checks.points(x, "queries")
        flat = x.detach().double().flatten(1).cpu().numpy()
        if flat.shape[1] != self.points.shape[1]:
            raise ValueError(
                f"queries must have {self.points.shape[1]} coordinates as the points of the hull "
                f"have, found {flat.shape[1]}: reshape them."
            )
        middle, basis, size, points = self._frame
        centred = (flat - middle) / size
        q = centred @ basis.T
        inside = np.abs(centred - q @ basis).max(1, initial=0.0) <= TOLERANCE
        if basis.size:
            open_ = np.flatnonzero(inside)
            inside[open_] = self._contains(points, q[open_])
        return torch.from_numpy(inside)

    def _contains(self, points: Array, q: Array) -> npt.NDArray[np.bool_]:
        low, high = points.min(0), points.max(0)
        inside: npt.NDArray[np.bool_] = ((q >= low - TOLERANCE) & (q <= high + TOLERANCE)).all(1)
        open_ = np.flatnonzero(inside)
        if self._facets is not None:
            reach = (q[open_] @ self._facets[:, :-1].T + self._facets[:, -1]).max(1, initial=-1.0)
            inside[open_] = reach <= 0
            open_ = open_[np.abs(reach) <= TOLERANCE]
        else:
            cut = separated(points, q[open_])
            inside[open_[cut]] = False
            open_ = open_[~cut]
        with progress(len(open_), label="convex hull") as bar:
            planes = _Planes()
            for k in open_:
                inside[k] = not planes.cut(q[k]) and planes.solve(points, q[k])
                bar.advance()
        return inside

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


def separated(points: Array, q: Array) -> npt.NDArray[np.bool_]:
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

    def __init__(self) -> None:
        self._normals: list[Array] = []
        self._offsets: list[float] = []

    def cut(self, q: Array) -> bool:
        """Tell whether one of the known planes cuts a point off."""
        if not self._normals:
            return False
        reach = np.stack(self._normals) @ q - np.array(self._offsets)
        return bool((reach > TOLERANCE).any())

    def solve(self, points: Array, q: Array) -> bool:
        r"""Tell whether a point lies in the hull, by the linear programme of its distance.

        Minimise the sum of :math:`|q - \sum_i w_i p_i|` over its coordinates, for weights that are
        not negative and add up to 1. The programme always has an answer, and its dual variables
        are a plane.
        """
        from scipy.optimize import linprog

        n, d = points.shape
        rows = np.block(
            [[points.T, np.eye(d), -np.eye(d)], [np.ones((1, n)), np.zeros((1, 2 * d))]]
        )
        found = linprog(
            np.concatenate([np.zeros(n), np.ones(2 * d)]),
            A_eq=rows,
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
        normal = found.eqlin.marginals[:d]
        self._normals.append(normal)
        self._offsets.append(float((points @ normal).max()))
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
