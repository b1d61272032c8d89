"""Systems of a few linear inequalities, solved exactly by Fourier-Motzkin elimination."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Inequality:
    """Sum of ``coefficients`` times unknowns, plus ``constant``: at least 0, or above 0."""

    coefficients: tuple[Fraction, ...]
    constant: Fraction
    strict: bool

    def holds(self, point: Sequence[Fraction]) -> bool:
        """Return whether a point satisfies the inequality."""
        value = self.value(point)
        return value > 0 if self.strict else value >= 0

    def value(self, point: Sequence[Fraction]) -> Fraction:
        """Return the left side at a point; unknowns beyond its length count as zero."""
        pairs = zip(self.coefficients, point, strict=False)
        return sum((a * x for a, x in pairs), self.constant)


def above_zero(
    coefficients: Sequence[Fraction | int], constant: Fraction | int = 0, *, strict: bool
) -> Inequality:
    """Return the inequality with these coefficients and this constant."""
    return Inequality(tuple(map(Fraction, coefficients)), Fraction(constant), strict)


def solution(system: Sequence[Inequality], unknowns: int) -> list[Fraction] | None:
    """Return a point that satisfies all inequalities, or None if there is none.

    Exact. The last unknown is eliminated by combining each of its lower bounds with each of its
    upper bounds; the remaining system is solved first.
    """
    if not unknowns:
        return [] if all(inequality.holds(()) for inequality in system) else None
    last = unknowns - 1
    lower = [inequality for inequality in system if inequality.coefficients[last] > 0]
    upper = [inequality for inequality in system if inequality.coefficients[last] < 0]
    rest = [inequality for inequality in system if not inequality.coefficients[last]]
    combined = [_without(last, low, high) for low in lower for high in upper]
    point = solution([*rest, *combined], last)
    if point is None:
        return None
    least = max((_bound(inequality, last, point) for inequality in lower), default=None)
    most = min((_bound(inequality, last, point) for inequality in upper), default=None)
    return [*point, _between(least, most)]


def _without(last: int, low: Inequality, high: Inequality) -> Inequality:
    """Return the inequality that a lower and an upper bound of the last unknown imply."""
    a, b = -high.coefficients[last], low.coefficients[last]
    pairs = zip(low.coefficients[:last], high.coefficients[:last], strict=True)
    return Inequality(
        tuple(a * x + b * y for x, y in pairs),
        a * low.constant + b * high.constant,
        low.strict or high.strict,
    )


def _bound(inequality: Inequality, last: int, point: Sequence[Fraction]) -> Fraction:
    return -inequality.value(point) / inequality.coefficients[last]


def _between(least: Fraction | None, most: Fraction | None) -> Fraction:
    if least is None:
        return Fraction(0) if most is None else min(Fraction(0), most - 1)
    if most is None:
        return max(Fraction(0), least + 1)
    return (least + most) / 2
