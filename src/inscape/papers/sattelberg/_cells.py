"""Bounded regions found the slow way: all cells of a hidden layer, joined by linear programmes.

It knows nothing of the theory of section 4.1, and so can check it: cells are the states of the
units, two of them belong together where the output keeps its sign on a part of their common wall,
and a region is bounded if all its parts are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.regions.polytope import ProgrammeBudget, is_bounded
from inscape.runtime.deadline import Deadline

Array = npt.NDArray[np.float64]
State = tuple[int, ...]
#: Parts with no ball of this radius are taken as empty.
THIN = 1e-9


@dataclass(frozen=True, eq=False)
class Units:
    """Weights of a hidden layer with one output, and the slope of its units below zero."""

    weight: Array
    bias: Array
    out: Array
    end: float
    leak: float

    def part(self, state: State, side: int) -> tuple[Array, Array]:
        """Return normals and slacks (a x <= s) of the part of a cell with the output's sign."""
        on = np.array(state) > 0
        turned = np.where(on, -1.0, 1.0)
        slopes = np.where(on, 1.0, self.leak) * self.out
        normals = np.vstack([turned[:, None] * self.weight, -side * (slopes @ self.weight)])
        return normals, np.append(-turned * self.bias, side * (self.end + slopes @ self.bias))


def random_units(inputs: int, width: int, leak: float, rng: np.random.Generator) -> Units:
    """Draw all weights and biases from a normal law."""
    return Units(
        rng.standard_normal((width, inputs)),
        rng.standard_normal(width),
        rng.standard_normal(width),
        float(rng.standard_normal()),
        leak,
    )


def closing_units(inputs: int, leak: float, rng: np.random.Generator) -> Units:
    """Draw weights that often close a region, in one of the two ways of section 4.1.

    Either all output weights have one sign and the normals nearly add up to zero, or one has the
    other sign and its normal lies between the others.
    """
    net = random_units(inputs, inputs + 1, leak, rng)
    weight, bias, out, end = net.weight, net.bias, -abs(net.out), abs(net.end)
    if rng.random() < 0.5:
        weight[0] = -weight[1:].sum(0) + 0.3 * rng.standard_normal(inputs)
    else:
        weight[0] = (rng.uniform(0.2, 0.8, inputs) * -out[1:]) @ weight[1:]
        out[0], bias[0], end = 1.0, 5 * abs(bias[0]), -end
    side = float(rng.choice([-1.0, 1.0]))
    return Units(weight, bias, side * out, side * end, leak)


def bounded_regions(net: Units) -> list[tuple[int, set[State]]]:
    """Return the bounded connected regions of both signs, each with its cells."""
    found: list[tuple[int, set[State]]] = []
    for side in (1, -1):
        states = product((0, 1), repeat=len(net.bias))
        parts = {state for state in states if _holds(*net.part(state, side))}
        found += [
            (side, region)
            for region in _joined(net, parts, side)
            if all(_ends(net.part(state, side)[0]) for state in region)
        ]
    return found


def _joined(net: Units, parts: set[State], side: int) -> Iterator[set[State]]:
    """Yield the cells of each connected region."""
    left = set(parts)
    while left:
        todo = [left.pop()]
        region = set(todo)
        while todo:
            state = todo.pop()
            for unit in range(len(state)):
                other = (*state[:unit], 1 - state[unit], *state[unit + 1 :])
                if other in left and _holds(*net.part(state, side), wall=unit):
                    left.remove(other)
                    region.add(other)
                    todo.append(other)
        yield region


def _holds(normals: Array, slacks: Array, wall: int | None = None) -> bool:
    """Tell whether a part, or one of its walls, holds a ball of its own dimension."""
    from scipy import optimize

    sizes = np.linalg.norm(normals, axis=1)
    flat = sizes < 1e-12  # a constant output, or unit: on the right side, or not
    if (slacks[flat] <= 0).any() or (wall is not None and flat[wall]):
        return False
    rows = np.hstack([normals, sizes[:, None]])
    fixed: dict[str, Any] = {}
    if wall is not None:
        fixed = {"A_eq": np.append(normals[wall], 0.0)[None], "b_eq": slacks[[wall]]}
        flat[wall] = True
    rows, slacks = rows[~flat], slacks[~flat]
    goal = np.append(np.zeros(normals.shape[1]), -1.0)
    free = [(None, None)] * normals.shape[1] + [(None, 1.0)]
    solver: Any = optimize.linprog
    found = solver(goal, A_ub=rows, b_ub=slacks, bounds=free, method="highs", **fixed)
    return bool(found.status == 0 and found.x[-1] > THIN)


def _ends(normals: Array) -> bool:
    """Tell whether a part is bounded."""
    sizes = np.linalg.norm(normals, axis=1)
    kept = normals[sizes > 1e-12] / sizes[sizes > 1e-12, None]
    return bool(is_bounded(kept, ProgrammeBudget(10**6, Deadline.after(60.0))))
