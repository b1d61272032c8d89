"""The stationary points of a trained network, up to the symmetries of the problem."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.boolean._stationary_case import Pattern, Problem
from inscape.boolean.stationary import Family, Stationary, named

Array = npt.NDArray[Any]

#: A loss this near to that of a family counts as that loss.
NEAR = 1e-3
#: A unit whose input at a point is this near to zero may count as on or as off there.
AT_KINK = 1e-2


@dataclass(frozen=True, kw_only=True)
class Match:
    """Where a network ended.

    Attributes:
        name: Its patterns, unit by unit, as table 3.2 has them.
        form: The same for all networks that are equal up to the order of units and a mirror.
        loss: Its squared error.
        gradient: Norm of the gradient.
        family: The stationary points it belongs to, or None where it has not converged.
    """

    name: str
    form: str
    loss: float
    gradient: float
    family: Family | None


def match(weights: Sequence[float] | Array, stationary: Stationary) -> Match:
    """Return the stationary points that a network of one input has converged to.

    Its own patterns are tried first, then those with units at their kink on the other side.

    Args:
        weights: As ``parameters()`` has them: input weights, biases, output weights, bias.
        stationary: All stationary points of networks of that size.
    """
    values = np.asarray(weights, dtype=float)
    if values.shape != (3 * stationary.units + 1,):
        raise ValueError(
            f"weights must be the {3 * stationary.units + 1} of a network with one input and "
            f"{stationary.units} hidden units, found shape {values.shape}: pass one network."
        )
    w, b, o, c = np.split(values, [stationary.units, 2 * stationary.units, 3 * stationary.units])
    before = np.outer(w, stationary.problem.points) + b[:, None]
    loss, slope = _loss_and_gradient(stationary.problem, before, w, o, c)
    silent = tuple((np.abs(o) < NEAR).tolist())
    for patterns in _patterns(before):
        for family in stationary.families:
            if _fits(family, patterns, silent, loss):
                form = symmetric(patterns, stationary.problem)
                name = family.name
                return Match(name=name, form=form, loss=loss, gradient=slope, family=family)
    own = next(_patterns(before))
    form = symmetric(own, stationary.problem)
    return Match(name=named(own), form=form, loss=loss, gradient=slope, family=None)


def _fits(
    family: Family, patterns: tuple[Pattern, ...], silent: tuple[bool, ...], loss: float
) -> bool:
    """Return whether a network with these patterns and this loss belongs to a family."""
    same_silent = not any(family.silent) or family.silent == silent
    return same_silent and family.patterns == patterns and abs(float(family.loss) - loss) < NEAR


def symmetric(patterns: Sequence[Pattern], problem: Problem) -> str:
    """Return one name for all patterns that differ by the order of units or by a mirror.

    A mirror turns the sign of every w at once. Turning one alone, as section 3.3.3 has it, is none:
    it takes a loss of 8/3 to a case of loss 0.
    """
    turned = [problem.points.index(-x) if -x in problem.points else -1 for x in problem.points]
    views = [tuple(patterns)]
    if -1 not in turned and _even(problem, turned):
        views.append(tuple(tuple(pattern[k] for k in turned) for pattern in patterns))
    return max(named(order) for view in views for order in permutations(view))


def _even(problem: Problem, turned: Sequence[int]) -> bool:
    """Return whether the problem is unchanged by a mirror."""
    return all(
        (problem.targets[k], problem.weights[k]) == (problem.targets[m], problem.weights[m])
        for k, m in enumerate(turned)
    )


def _patterns(before: Array) -> Iterator[tuple[Pattern, ...]]:
    """Yield the patterns of a network, its own first, then those a kink away."""
    choices = [
        [on, not on] if abs(value) < AT_KINK else [on]
        for value, on in zip(before.ravel(), (before > 0).ravel().tolist(), strict=True)
    ]
    points = before.shape[1]
    for flat in product(*choices):
        yield tuple(tuple(flat[at : at + points]) for at in range(0, len(flat), points))


def _loss_and_gradient(
    problem: Problem, before: Array, w: Array, o: Array, c: Array
) -> tuple[float, float]:
    """Return the squared error and the norm of its gradient, with the kink's slope 0."""
    on, after = before > 0, np.maximum(before, 0)
    residuals = o @ after + c - np.array(problem.targets)
    pull = 2 * np.array(problem.weights) * residuals
    by_input = o[:, None] * on * pull
    parts = [by_input @ np.array(problem.points), by_input.sum(1), after @ pull, [pull.sum()]]
    loss = float((np.array(problem.weights) * residuals**2).sum())
    return loss, float(np.linalg.norm(np.concatenate(parts)))
