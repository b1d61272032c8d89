r"""Stationary points of tiny ReLU networks, found with SymPy (section 3.3.3; errata S4, S5).

The network is :math:`v(x) = \sum_i o_i \max(w_i x + b_i, 0) + c` on a few weighted points of a
line. Which points switch a unit on decides a case; in a case v is affine in :math:`c, o_i b_i`
and :math:`o_i w_i`, so that its stationary points are those of a least-squares problem: one loss,
and a family of weights. A unit with :math:`o_i = 0` is outside of that and is counted separately.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, ClassVar

from inscape._core import Result, Row, Summary, checks
from inscape._core.result import NONNEGATIVE, Range
from inscape.boolean._inequalities import above_zero, solution
from inscape.boolean._stationary_case import XOR, Case, Pattern, Problem, fraction, loss_of, symbols
from inscape.runtime.extras import need

__all__ = [
    "XOR",
    "Family",
    "Problem",
    "RampPoint",
    "Stationary",
    "gradient_flow",
    "named",
    "ramp_points",
    "stationary",
    "unit_patterns",
]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Stationary points of one case that share their form.

    Attributes:
        patterns: For each unit, which points switch it on.
        silent: For each unit, whether its output weight is zero though a point switches it on.
        loss: The loss, the same for all of them.
        conditions: The equations that the weights satisfy.
        free: Dimension of the family.
        inner: Whether some of them lie inside their case, with no unit at its kink.
        kind: ``"minimum"`` or ``"saddle"`` for those inside; ``"kink"`` where none is, which leaves
            it open.
        example: One of them, exactly.
    """

    patterns: tuple[Pattern, ...]
    silent: tuple[bool, ...]
    loss: Fraction
    conditions: tuple[str, ...]
    free: int
    inner: bool
    kind: str
    example: dict[str, Fraction]

    @property
    def name(self) -> str:
        """Return the patterns as table 3.2 has them: ``"--+;-+-"``."""
        return named(self.patterns)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Stationary(Result):
    """All stationary points of a network on a problem, as families."""

    range: ClassVar[Range] = NONNEGATIVE

    problem: Problem
    units: int
    cases: int
    families: tuple[Family, ...]

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The losses that stationary points have, the lowest first."""
        return tuple(sorted({family.loss for family in self.families}))

    def rows(self) -> Iterator[Row]:
        """Yield one row for each family."""
        for family in self.families:
            yield {
                "pattern": family.name,
                "loss": float(family.loss),
                "kind": family.kind,
                "inner": family.inner,
                "free": family.free,
                "conditions": ", ".join(family.conditions),
            }

    def summary(self) -> Summary:
        """Return the number of families."""
        levels = ", ".join(map(str, self.levels))
        basis = f"{self.cases} cases, losses {levels}"
        return Summary(value=float(len(self.families)), kind="exact", basis=basis)


@cache
def stationary(problem: Problem = XOR, *, units: int = 2) -> Stationary:
    r"""Return all stationary points of a one-input ReLU network with ``units`` hidden units.

    Exact, in rational arithmetic; a point at which a unit is exactly zero does not switch it on,
    as in PyTorch (Eq. 3.16). Costs :math:`(2k)^h` cases for k points and h units, times the choices
    of silent units.

    Args:
        problem: Points, targets and weights of the squared error.
        units: Number of hidden units.

    >>> [str(level) for level in stationary().levels]
    ['0', '8/3', '4']
    """
    checks.at_least(1, units=units)
    cases = list(product(unit_patterns(problem), repeat=units))
    families = [
        family
        for patterns in cases
        for silent in _silences(patterns)
        if (family := _family(problem, patterns, silent)) is not None
    ]
    return Stationary(problem=problem, units=units, cases=len(cases), families=tuple(families))


def unit_patterns(problem: Problem = XOR) -> list[Pattern]:
    """Return the patterns that a unit can have: 6 of 8 for three points, so 36 of 64 for two."""
    patterns = []
    for pattern in product((False, True), repeat=len(problem.points)):
        sides = zip(problem.points, pattern, strict=True)
        system = [above_zero([s, s * x], strict=on) for x, on in sides for s in (1 if on else -1,)]
        if solution(system, 2) is not None:
            patterns.append(pattern)
    return patterns


def named(patterns: Sequence[Pattern]) -> str:
    """Return patterns as text, + for a point that switches a unit on."""
    return ";".join("".join("-+"[on] for on in pattern) for pattern in patterns)


def gradient_flow(patterns: Sequence[Pattern], problem: Problem = XOR) -> dict[str, Any]:
    r"""Return :math:`d\theta/dt = -\partial L/\partial\theta` in one case, weight by weight.

    Expressions of SymPy. The minus sign is missing in print (S5); zeros are the same without it.
    """
    sympy = need("sympy", extra="symbolic", why="gradient_flow")
    weights = symbols(len(patterns))
    loss = loss_of(problem, patterns, weights)
    return {name: sympy.expand(-sympy.diff(loss, weight)) for name, weight in weights.items()}


@dataclass(frozen=True, kw_only=True)
class RampPoint:
    """Where the gradient of the example (3.12) vanishes in the form that it has in one case."""

    case: str
    a: Fraction
    b: Fraction
    loss: Fraction
    inside: bool


def ramp_points() -> list[RampPoint]:
    """Return the stationary points of v = max(a x, 0) + b on -1 -> -1 and 1 -> 1 (3.12-3.23).

    Erratum S4: the form that holds for a < 0 vanishes at (2, 1), not (-4, 2), which is outside of
    that case; the dead unit a = 0, b = 0 is stationary, since its kink counts as off.
    """
    sympy = need("sympy", extra="symbolic", why="ramp_points")
    a, b = sympy.symbols("a b", real=True)
    ramps = []
    for case, active in (("a > 0", 1), ("a < 0", -1), ("a = 0", 0)):
        values = {x: (a * x if x == active else 0) + b for x in (-1, 1)}
        loss = (-1 - values[-1]) ** 2 + (1 - values[1]) ** 2
        equations = [sympy.diff(loss, b), sympy.diff(loss, a) if active else a]
        (zero,) = sympy.solve(equations, (a, b), dict=True)
        inside = not active or zero[a] * active > 0
        numbers = {"a": zero[a], "b": zero[b], "loss": loss.subs(zero)}
        exact = {name: fraction(value) for name, value in numbers.items()}
        ramps.append(RampPoint(case=case, inside=bool(inside), **exact))
    return ramps


def _silences(patterns: Sequence[Pattern]) -> Iterator[tuple[bool, ...]]:
    """Yield which units may have a zero output weight; for dead ones it makes no difference."""
    yield from product(*((False, True) if any(pattern) else (False,) for pattern in patterns))


def _family(
    problem: Problem, patterns: tuple[Pattern, ...], silent: tuple[bool, ...]
) -> Family | None:
    """Return the stationary points of a case with some units silent, or None."""
    case = Case(problem, patterns, silent)
    places = ((case.place(inner=inner), inner) for inner in (True, False))
    example, inner = next((place for place in places if place[0]), (None, False))
    if example is None:
        return None
    conditions = case.conditions()
    return Family(
        patterns=patterns,
        silent=silent,
        loss=case.loss,
        conditions=tuple(conditions),
        free=3 * len(patterns) + 1 - len(conditions),
        inner=inner,
        kind=_kind(case) if inner else "kink",
        example=example,
    )


def _kind(case: Case) -> str:
    """Return whether the points inside a case are minima or saddles.

    The loss is convex in c, o b and o w, so that they are minima, unless the gradient of a silent
    unit's output weight is other than zero for other w and b: then the loss can rise or fall.
    """
    return "saddle" if any(any(pull) for pull in case.pulls.values()) else "minimum"
