"""Swaps by linear programmes: a second method, independent of orders and symmetries.

A function has at most s swaps if there are weights and s thresholds that cut the line into bands of
alternating value, with every input in a band of its own value. In which band each input lies is
found by branching; each branch is a linear programme. That a branch is impossible is proved in
rational numbers: a combination of its inequalities that gives 0 > 0.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.boolean.orders import check_inputs
from inscape.boolean.swaps import changes
from inscape.boolean.truth_table import TruthTable, points

Array = npt.NDArray[Any]

#: A margin below this is none; margins of feasible branches are far larger for weights up to one.
MARGIN = 1e-6


@dataclass
class Bands:
    """The search for weights and ``swaps`` thresholds for one function, with its cost."""

    function: TruthTable
    swaps: int
    first: int  # value of the lowest band
    solved: int = 0
    unproved: int = 0
    weights: Array | None = field(default=None)

    def search(self, placed: dict[int, int]) -> bool:
        """Return whether there are weights with the placed inputs in their bands."""
        margin, solution, proof = self.programme(placed)
        self.solved += 1
        if margin < MARGIN:
            self.unproved += not proof
            return False
        index = self.worst(solution, placed)
        if index is None:
            return self.accepted(solution[: self.function.n])
        value = int(self.function.bits[index])
        bands = range((value ^ self.first), self.swaps + 1, 2)
        return any(self.search({**placed, index: band}) for band in bands)

    def programme(self, placed: dict[int, int]) -> tuple[float, Array, bool]:
        """Return the largest margin of the placed inputs, its solution, and if 0 is proved."""
        from scipy.optimize import linprog

        inside, ordered = self.rows(placed)
        sides = np.concatenate([inside, ordered])
        margins = np.concatenate([np.ones(len(inside)), np.zeros(len(ordered))])
        objective = np.zeros(sides.shape[1] + 1)
        objective[-1] = -1.0
        bounds = [(-1.0, 1.0)] * self.function.n + [(None, None)] * self.swaps + [(None, 1.0)]
        optimum: Any = linprog(
            objective, np.column_stack([-sides, margins]), np.zeros(len(sides)), bounds=bounds
        )
        margin = float(optimum.x[-1])
        proof = margin < MARGIN and contradicts(sides, -optimum.ineqlin.marginals, len(inside))
        return margin, optimum.x[:-1], proof

    def rows(self, placed: dict[int, int]) -> tuple[Array, Array]:
        """Return the rows that must be above zero (inputs in their bands), and at least zero."""
        n, s = self.function.n, self.swaps
        places = points(n)
        inside = []
        for index, band in placed.items():
            for threshold, sign in ((band - 1, 1.0), (band, -1.0)):
                if 0 <= threshold < s:
                    row = np.zeros(n + s)
                    row[:n], row[n + threshold] = sign * places[index], -sign
                    inside.append(row)
        ordered = np.zeros((max(s - 1, 0), n + s))
        for k in range(s - 1):
            ordered[k, n + k], ordered[k, n + k + 1] = -1.0, 1.0
        return np.array(inside).reshape(-1, n + s), ordered

    def worst(self, solution: Array, placed: dict[int, int]) -> int | None:
        """Return the input that lies deepest in a band of the wrong value, or None."""
        n = self.function.n
        cuts = np.concatenate([[-np.inf], solution[n:], [np.inf]])
        sums = points(n) @ solution[:n]
        band = np.searchsorted(solution[n:], sums)
        wrong = (band + self.first) % 2 != self.function.bits
        wrong[list(placed)] = False
        if not wrong.any():
            return None
        depth = np.minimum(sums - cuts[band], cuts[band + 1] - sums)
        return int(np.argmax(np.where(wrong, depth, -1.0)))

    def accepted(self, weights: Array) -> bool:
        """Round the weights to integers; return whether they have at most ``swaps`` changes."""
        integers = np.rint(weights * 2**20).astype(np.int64)
        try:
            enough = changes(self.function, integers) <= self.swaps
        except ValueError:  # rounding has put two inputs of different value in one place
            enough = False
        self.unproved += not enough
        self.weights = integers if enough else None
        return enough


def contradicts(sides: Array, multipliers: Array, strict: int) -> bool:
    """Return whether multipliers prove, in rational numbers, that inequalities cannot all hold.

    The rows, integers, must be above zero (the first ``strict``) or at least zero; weighted
    by multipliers that are not negative they add to zero, and one of the first takes part.
    """
    used = np.flatnonzero(multipliers > 1e-9)
    if not len(used) or used[0] >= strict:
        return False
    scale = multipliers[used].min()
    exact = [Fraction(float(multipliers[k] / scale)).limit_denominator(10**4) for k in used]
    total = [
        sum((by * int(sides[k, j]) for by, k in zip(exact, used, strict=True)), Fraction())
        for j in range(sides.shape[1])
    ]
    return not any(total)


@dataclass(frozen=True)
class Programmes:
    """Swaps by linear programmes, how many there were, and how many have no exact proof."""

    swaps: int
    weights: Array
    solved: int
    unproved: int


def at_most(function: TruthTable, swaps: int) -> Bands:
    """Search for weights with at most this many changes; ``weights`` is None if there are none."""
    solved = unproved = 0
    for first in (0, 1):
        bands = Bands(function, swaps, first, solved, unproved)
        if swaps == 0 and bool((function.bits != first).any()):
            continue
        if bands.search({}) or swaps % 2:  # turned round, an odd number starts with either value
            return bands
        solved, unproved = bands.solved, bands.unproved
    return Bands(function, swaps, 1, solved, unproved)


def swaps_by_programmes(function: TruthTable) -> Programmes:
    """Return the swaps of a function by linear programmes alone, for a few inputs.

    Exact where ``unproved`` is zero. Cost: seconds for four inputs, minutes for five.
    """
    check_inputs(function.n)
    solved = unproved = count = 0
    while True:
        bands = at_most(function, count)
        solved, unproved = solved + bands.solved, unproved + bands.unproved
        if bands.weights is not None:
            return Programmes(count, bands.weights, solved, unproved)
        count += 1
