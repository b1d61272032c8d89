"""One convex cell divided by which of several affine functions is largest."""

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: A node of the rim by its number, or -1 - k for the k-th place inside the cell.
Node = int

#: Places nearer than this fraction of the cell's extent are one.
NEAR = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Crossings:
    """Points of edges where the largest function changes, with the values of all functions."""

    edge: Array
    place: Array
    values: Array


@dataclass(eq=False)
class Division:
    """Segments between nodes, each with the two functions that meet; and places inside."""

    segments: list[tuple[tuple[Node, Node], tuple[int, int]]] = field(default_factory=list)
    places: list[Array] = field(default_factory=list)

    def number(self, place: Array, near: float) -> Node:
        """Return the node of a place inside the cell, a new one unless there is one near."""
        for k, known in enumerate(self.places):
            if float(np.abs(known - place).max()) <= near:
                return -1 - k
        self.places.append(place)
        return -len(self.places)


def divided(
    corners: Array, values: Array, numbers: Array, where: Array, rim: Array, slack: float
) -> Division:
    """Return where two functions are equal and largest inside a cell.

    Args:
        corners: Corners of the cell, counter-clockwise.
        values: Values of all functions at the corners.
        numbers: Nodes on the rim: all points of it at which two functions are largest.
        where: Places of the nodes.
        rim: Values of all functions at the nodes.
        slack: Values nearer than this are equal.
    """
    division = Division()
    near = NEAR * float(np.ptp(corners, axis=0).max())
    tied = rim >= rim.max(1, keepdims=True) - slack
    candidates = _undominated(values, slack)
    for a, b in combinations(candidates, 2):
        lead = values[:, a] - values[:, b]
        if lead.max() <= slack or lead.min() >= -slack:
            continue
        ends, at_ends = _chord(corners, values, lead)
        low, high, cut = _clipped(at_ends, a, [c for c in candidates if c not in (a, b)], slack)
        if (cut[0] or cut[1]) and high - low <= NEAR:
            continue
        if not _extreme(values, at_ends, (low, high), lead, (a, b), candidates, slack):
            continue
        both = np.flatnonzero(tied[:, a] & tied[:, b])
        nodes = []
        for fraction, inside in ((low, cut[0]), (high, cut[1])):
            place = (1 - fraction) * ends[0] + fraction * ends[1]
            gap = np.abs(where[both] - place).max(1, initial=0.0)
            if len(both) and (not inside or gap.min() <= near):
                nodes.append(int(numbers[both[gap.argmin()]]))
            else:
                nodes.append(division.number(place, near))
        if nodes[0] != nodes[1]:
            division.segments.append(((nodes[0], nodes[1]), (a, b)))
    return division


def _undominated(values: Array, slack: float) -> list[int]:
    """Return the functions that no single other one matches or exceeds on the whole cell."""
    top = values.max(0) >= values.min(0).max() - slack
    candidates = np.flatnonzero(top)
    z = values[:, candidates]
    beaten = (z[:, :, None] >= z[:, None, :] - slack).all(0)  # [b, a]: b is never below a
    mutual = beaten & beaten.T
    lower = np.arange(len(candidates))[:, None] < np.arange(len(candidates))[None, :]
    lost = (beaten & ~mutual) | (mutual & lower)
    kept: list[int] = candidates[~lost.any(0)].tolist()
    return kept


def _chord(corners: Array, values: Array, lead: Array) -> tuple[Array, Array]:
    """Return both points of the rim at which two functions are equal, with all values there."""
    after = np.roll(np.arange(len(lead)), -1)
    change = np.flatnonzero((lead > 0) != (lead[after] > 0))[[0, -1]]
    fraction = (lead[change] / (lead[change] - lead[after[change]]))[:, None]
    ends = (1 - fraction) * corners[change] + fraction * corners[after[change]]
    return ends, (1 - fraction) * values[change] + fraction * values[after[change]]


def _clipped(
    at_ends: Array, a: int, others: list[int], slack: float
) -> tuple[float, float, list[bool]]:
    """Return the fractions of a chord between which no other function is above ``a``."""
    low, high, cut = 0.0, 1.0, [False, False]
    for c in others:
        at_start, at_end = (at_ends[:, a] - at_ends[:, c]).tolist()
        if at_start < -slack and at_end < -slack:
            return 0.0, 0.0, [True, True]
        if at_start < -slack and at_start / (at_start - at_end) > low:
            low, cut[0] = at_start / (at_start - at_end), True
        elif at_end < -slack and at_start / (at_start - at_end) < high:
            high, cut[1] = at_start / (at_start - at_end), True
    return low, high, cut


def _extreme(
    values: Array,
    at_ends: Array,
    span: tuple[float, float],
    lead: Array,
    pair: tuple[int, int],
    candidates: list[int],
    slack: float,
) -> bool:
    """Tell whether of all functions that are equal on the span this pair wins beside it."""
    fraction = np.array(span)[:, None]
    crossing = (1 - fraction) * at_ends[0] + fraction * at_ends[1]
    a, b = pair
    left, right = lead.argmax(), lead.argmin()
    for c in candidates:
        if c not in pair and (crossing[:, c] >= crossing[:, a] - slack).all():
            if values[left, c] > values[left, a] + slack:
                return False
            if values[right, c] > values[right, b] + slack:
                return False
    return True
