"""Polytopes normals u <= slacks around the origin: irredundant faces, distances, balls."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.anytime import finished
from inscape.runtime.deadline import NEVER, Deadline
from inscape.runtime.progress import progress

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Relative to the size of the cell: what is nearer than this touches.
TOUCH = 1e-9
#: Rays that are shot for each half-space before any linear programme.
RAYS = 4
#: Numbers in the largest least-squares problem: unlike linear programmes they cannot be stopped.
SQUARES = 2**22
#: Seconds that a linear programme takes for each of its entries before it checks the time.
SETUP = 5e-7
#: Numbers of a product of normals and rays: about twenty milliseconds.
PRODUCT = 2**28
#: Balls larger than this many times the cell's size have no end.
ENDLESS = 1e7


@dataclass(eq=False)
class ProgrammeBudget:
    """A budget of programmes (linear, least squares) and time."""

    programmes: int
    deadline: Deadline = NEVER
    spent: int = 0
    longest: float = 0.0

    def left(self) -> bool:
        """Tell whether another programme may be solved: one that cannot be stopped must fit."""
        fits = self.deadline.is_never or self.deadline.left() > self.longest
        return self.spent < self.programmes and fits

    def allows(self, size: int) -> bool:
        """Tell whether there is time to set up a linear programme of this size."""
        return self.deadline.is_never or self.deadline.left() > SETUP * size

    def in_time(self) -> bool:
        """Tell whether the time is not up."""
        return not self.deadline.passed()

    def rest(self) -> float:
        """Return the seconds that are left."""
        return self.deadline.left()


def coordinates(normals: Array) -> tuple[Array, Array]:
    """Return the normals in a basis of the space that they span, and that basis as rows.

    A cell is a cylinder over what it is in that space, which makes programmes in 784 dimensions
    small. With at least as many half-spaces as dimensions the basis is the given one.
    """
    m, d = normals.shape
    if m > d:
        return normals, np.eye(d)
    from scipy.linalg import qr

    decompose: Any = qr
    columns, triangle, _ = decompose(normals.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    basis: Array = columns.T[: int((sizes > 1e-10 * sizes.max(initial=0)).sum())]
    return normals @ basis.T, basis


def rank(normals: Array) -> int:
    """Return how many dimensions the normals span."""
    return len(coordinates(normals if len(normals) <= normals.shape[1] else normals.T)[1])


def largest_ball(normals: Array, slacks: Array, budget: ProgrammeBudget) -> tuple[Array, float]:
    """Return centre and radius of the largest ball inside.

    Where there is no largest the radius is infinite, and the centre some point inside; the radius
    is NaN where the time ran out.
    """
    m, r = normals.shape
    if m <= r and rank(normals) == m:  # a corner that opens into all of space
        return np.zeros(r), np.inf
    if not budget.allows(normals.size):
        return np.zeros(r), np.nan
    size = _size(slacks)
    ones = np.ones((m, 1))
    goal = np.append(np.zeros(r), -1.0)
    bounds = [(None, None)] * r + [(0.0, ENDLESS)]
    x = _solve(goal, np.hstack([normals, ones]), slacks / size, bounds, budget)
    if x is None:
        return np.zeros(r), 0.0 if budget.in_time() else np.nan
    if x[-1] >= 0.999 * ENDLESS:
        return x[:-1] * size / ENDLESS, np.inf
    return x[:-1] * size, float(x[-1] * size)


def is_bounded(normals: Array, budget: ProgrammeBudget) -> bool | None:
    """Tell whether a cell ends in every direction: its normals balance each other.

    None where the time ran out.
    """
    m, d = normals.shape
    if m <= d:
        return False
    if not budget.allows(normals.size):
        return None
    if rank(normals) < d:
        return False
    goal, bounds = np.ones(m), [(1.0, None)] * m
    solution = _linprog(goal, budget, A_eq=normals.T, b_eq=np.zeros(d), bounds=bounds)
    return bool(solution.status == 0) if solution.status == 0 or budget.in_time() else None


def needed(
    normals: Array, slacks: Array, start: Array, budget: ProgrammeBudget
) -> tuple[Flags, Flags]:
    """Tell which half-spaces are irredundant, and for which that is proven."""
    return finished(deciding(normals, slacks, start, budget))


def deciding(
    normals: Array, slacks: Array, start: Array, budget: ProgrammeBudget
) -> Generator[tuple[Flags, Flags], None, tuple[Flags, Flags]]:
    """Tell which half-spaces are irredundant, and for which that is proven; after each step.

    Rays from ``start``, a point inside, find most of the faces: the half-space that a ray leaves
    first makes one. For each other, least squares finds a point beyond it inside all others or
    the proof that there is none; where rounding leaves that open, a linear programme over the
    faces known so far does, or it shows where to shoot the next ray (Clarkson 1994).
    """
    m, r = normals.shape
    if m <= r and rank(normals) == m:
        return np.ones(m, bool), np.ones(m, bool)
    slacks = slacks - normals @ start
    draw = np.random.default_rng(0)
    jitter = draw.standard_normal(r)
    jitter *= 0.3 * slacks.min() / np.linalg.norm(jitter)
    slacks = slacks - normals @ jitter
    size = _size(slacks)
    slacks = slacks / size
    keeps = np.zeros(m, bool)
    for _ in _shot(normals, slacks, draw, budget, keeps):
        yield keeps | ~keeps, keeps.copy()
    sure = keeps.copy()
    open_ = [int(k) for k in np.argsort(slacks) if not keeps[k]]
    with progress(len(open_), label="redundant faces") as bar:
        for k in open_:
            if not sure[k]:
                _decide(k, normals, slacks, keeps, sure, budget)
                yield keeps | ~sure, sure
            bar.advance()
            if not budget.left():
                break
    return keeps | ~sure, sure


def _shot(
    normals: Array, slacks: Array, draw: np.random.Generator, budget: ProgrammeBudget, hit: Flags
) -> Iterator[None]:
    """Mark the half-spaces that some ray from the origin leaves first.

    Rays go straight at each plane, at each plane while keeping from all others as well as can be,
    and at random.
    """
    scaled = normals / slacks[:, None]
    square = scaled.T @ scaled
    aimed = np.linalg.solve(square + 1e-12 * np.trace(square) * np.eye(len(square)), scaled.T).T
    m, r = normals.shape
    step = max(1, PRODUCT // (m * r))
    for directions in [normals, aimed, *[None] * RAYS]:
        for begin in range(0, m, step):
            block = slice(begin, min(begin + step, m))
            rays = (
                draw.standard_normal((block.stop - begin, r))
                if directions is None
                else directions[block]
            )
            if budget.in_time():
                first = _first(normals @ rays.T, slacks)
                hit[first[first >= 0]] = True
                yield


def _first(speed: Array, slacks: Array) -> npt.NDArray[np.int64]:
    """Return the half-space that each ray leaves first; -1 where none, or several at once."""
    with np.errstate(divide="ignore"):
        near = np.where(speed > 0, speed / slacks[:, None], 0.0)
    first = near.argmax(0)
    rays = np.arange(near.shape[1])
    best = near[first, rays].copy()
    near[first, rays] = 0.0
    unclear = (best <= 0) | (near.max(0, initial=0) >= best * (1 - TOUCH))
    return np.where(unclear, -1, first)


def _decide(
    k: int, normals: Array, slacks: Array, keeps: Flags, sure: Flags, budget: ProgrammeBudget
) -> None:
    """Decide whether half-space ``k`` is a face, and mark others that the search proves."""
    if not budget.left():
        return
    if normals.size <= SQUARES:
        budget.spent += 1
        begin = budget.deadline.clock()
        known = _reached(k, normals, slacks, keeps | ~sure)
        budget.longest = max(budget.longest, budget.deadline.clock() - begin)
        if known is not None:
            keeps[k], sure[k] = known, True
            return
    others = keeps
    while budget.left():
        rows = np.flatnonzero(others & (np.arange(len(slacks)) != k))
        away = _beyond(k, rows, normals, slacks, budget)
        if away is None:
            return
        if normals[k] @ away <= slacks[k] + TOUCH:
            sure[k] = True
            return
        first = int(_first((normals @ away)[:, None], slacks)[0])
        if first == k or (len(rows) == len(slacks) - 1):
            keeps[k] = sure[k] = True
            return
        if first < 0 or keeps[first]:  # too close to call: ask all that are not known redundant
            others = np.ones(len(slacks), bool)
            continue
        keeps[first] = sure[first] = True


def _beyond(
    k: int, rows: npt.NDArray[np.int64], normals: Array, slacks: Array, budget: ProgrammeBudget
) -> Array | None:
    """Return how far beyond half-space ``k`` (at most one) one can go inside the other rows."""
    with_k = np.append(rows, k)
    limits = np.append(slacks[rows], slacks[k] + 1.0)
    free = [(None, None)] * normals.shape[1]
    return _solve(-normals[k], normals[with_k], limits, free, budget)


def _reached(k: int, normals: Array, slacks: Array, others: Flags) -> bool | None:
    """Tell whether there are points beyond half-space ``k`` inside all others.

    Answered by least squares, which is quicker than a linear programme; None where neither the
    point found nor the certificate that there is none holds to rounding.
    """
    rows = np.flatnonzero(others & (np.arange(len(slacks)) != k))
    beyond = slacks[k] * (1 + 1e-6)
    limits = np.append(-slacks[rows], beyond)
    system = np.vstack([-normals[rows], normals[k]])
    point, rest = _least(system, limits)
    if point is None:
        return False if rest < 1e-11 else None
    inside = (normals[rows] @ point <= slacks[rows] * (1 + TOUCH) + 1e-12).all()
    return True if inside and normals[k] @ point > slacks[k] * (1 + 5e-7) else None


def _least(rows: Array, limits: Array) -> tuple[Array | None, float]:
    """Return the shortest u with rows u >= limits, None where there is none, and the residual.

    A non-negative least squares problem (Lawson and Hanson 1974, chapter 23).
    """
    from scipy.optimize import nnls

    system = np.vstack([rows.T, limits])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    try:
        weights, _ = nnls(system, target, maxiter=30 * len(limits))
    except RuntimeError:
        return None, np.inf
    rest = system @ weights - target
    size = float(np.linalg.norm(rest))
    # The last of the rest is minus the square of its size, and all rounding where that is small.
    return (None, size) if size < 1e-9 else (rest[:-1] / size**2, size)


def facet_distance(k: int, normals: Array, slacks: Array) -> float:
    """Return how far the origin is from face ``k`` itself, not only from its plane."""
    foot = slacks[k] * normals[k]
    if (normals @ foot <= slacks + TOUCH * slacks[k]).all():
        return float(slacks[k])
    size = max(float(slacks[k]), _size(slacks))
    rows, limits = np.vstack([-normals, normals[k]]), np.append(-slacks, slacks[k]) / size
    point, _ = _least(rows, limits)
    return float("nan") if point is None else float(np.linalg.norm(point) * size)


def beyond_all(rows: Array, limits: Array, budget: ProgrammeBudget) -> float:
    """Return the most, up to one, by which rows u <= limits can be kept by one u."""
    goal = np.append(np.zeros(rows.shape[1]), -1.0)
    bounds = [(None, None)] * rows.shape[1] + [(None, 1.0)]
    solution = _solve(goal, np.column_stack([rows, np.ones(len(rows))]), limits, bounds, budget)
    return float("nan") if solution is None else float(solution[-1])


def polygon(normals: Array, slacks: Array, reach: float) -> Array:
    """Return the corners of a flat cell inside the square of that half side around the origin."""
    corners = reach * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    for normal, slack in zip(normals, slacks, strict=True):
        over = corners @ normal - slack
        clipped: list[Array] = []
        for k, corner in enumerate(corners):
            before = over[k - 1]
            if (before <= 0) != (over[k] <= 0):
                fraction = before / (before - over[k])
                clipped.append(corners[k - 1] + fraction * (corner - corners[k - 1]))
            if over[k] <= 0:
                clipped.append(corner)
        corners = np.array(clipped).reshape(-1, 2)
    return corners


def _size(slacks: Array) -> float:
    """Return a length that is usual for the cell, to work with numbers around one."""
    positive = slacks[slacks > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def _solve(
    goal: Array, rows: Array, limits: Array, bounds: list[tuple[Any, Any]], budget: ProgrammeBudget
) -> Array | None:
    solution = _linprog(goal, budget, A_ub=rows, b_ub=limits, bounds=bounds)
    return np.asarray(solution.x) if solution.status == 0 else None


def _linprog(goal: Array, budget: ProgrammeBudget, **problem: Any) -> Any:
    from scipy import optimize

    budget.spent += 1
    options = {
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
        "time_limit": min(max(budget.rest(), 0.01), 1e9),
    }
    solver: Any = optimize.linprog
    return solver(goal, method="highs", options=options, **problem)
