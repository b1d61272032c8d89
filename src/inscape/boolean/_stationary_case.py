"""One activation pattern of a tiny network, and its stationary points."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from inscape.boolean._inequalities import Inequality, above_zero, solution
from inscape.runtime.extras import need

#: For each point, whether it switches the unit on.
Pattern = tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Points of a line with targets; ``weights`` are how often each occurs."""

    points: tuple[int, ...]
    targets: tuple[int, ...]
    weights: tuple[int, ...]


#: XOR along the sum of its inputs (Eq. 3.25), with points in the order of the patterns of
#: table 3.2: the signs of b, b + w and b - w.
XOR = Problem(points=(0, 1, -1), targets=(1, -1, -1), weights=(2, 1, 1))


def symbols(units: int) -> dict[str, Any]:
    """Return the weights of a network by name: w1, b1, o1, ..., c."""
    sympy = need("sympy", extra="symbolic", why="finding stationary points")
    names = [f"{letter}{i}" for letter in "wob" for i in range(1, units + 1)]
    return {name: sympy.Symbol(name, real=True) for name in [*names, "c"]}


def loss_of(problem: Problem, patterns: Sequence[Pattern], weights: dict[str, Any]) -> Any:
    """Return the squared error (3.25) in a case, as a polynomial of the weights."""
    total = 0
    parts = zip(problem.points, problem.targets, problem.weights, strict=True)
    for k, (x, y, q) in enumerate(parts):
        value = weights["c"]
        for i, pattern in enumerate(patterns, start=1):
            if pattern[k]:
                value += weights[f"o{i}"] * (weights[f"w{i}"] * x + weights[f"b{i}"])
        total += q * (y - value) ** 2
    return total


def fraction(value: Any) -> Fraction:
    """Return a rational number of SymPy as a fraction."""
    return Fraction(int(value.p), int(value.q))


class Case:
    """Stationary points with given activation patterns and given silent units.

    With beta = o b and omega = o w of every active unit, neither dead nor silent, v is affine in
    the unknowns, so that stationary means least squares: the residuals are unique, the weights a
    family.

    Attributes:
        lines: Symbols beta and omega of every unit; of a dead or silent one they are b and w.
        solved: c and the lines of the active units, as functions of the free ones of them.
        loss: The loss.
        pulls: For each silent unit, the sums over its points of residual and of residual times x;
            it is stationary where b times the first and w times the second cancel.
    """

    def __init__(
        self, problem: Problem, patterns: Sequence[Pattern], silent: Sequence[bool]
    ) -> None:
        sympy = need("sympy", extra="symbolic", why="finding stationary points")
        units = range(len(patterns))
        self.problem, self.patterns, self.silent = problem, patterns, silent
        self.c = sympy.Symbol("c", real=True)
        self.lines = [sympy.symbols(f"beta{i} omega{i}", real=True) for i in units]
        self.active = [i for i in units if any(patterns[i]) and not silent[i]]
        residuals = [self._residual(k) for k in range(len(problem.points))]
        unknowns = [self.c, *(unknown for i in self.active for unknown in self.lines[i])]
        equations = [self._moment(residuals, (True,) * len(residuals), 0)]
        equations += [self._moment(residuals, patterns[i], k) for i in self.active for k in (0, 1)]
        (fitted_unknowns,) = sympy.linsolve(equations, unknowns)
        self.solved = dict(zip(unknowns, fitted_unknowns, strict=True))
        fitted = [
            sympy.expand(residual.subs(self.solved, simultaneous=True)) for residual in residuals
        ]
        squares = zip(problem.weights, fitted, strict=True)
        self.loss = sum((q * fraction(r) ** 2 for q, r in squares), Fraction(0))
        self.pulls = {
            i: tuple(fraction(sympy.sympify(self._moment(fitted, patterns[i], k))) for k in (0, 1))
            for i in units
            if silent[i]
        }

    def place(self, *, inner: bool) -> dict[str, Fraction] | None:
        """Return weights of the family, or None; with no unit at its kink if ``inner``."""
        for signs in product(
            *((1, -1) if i in self.active else (1,) for i in range(len(self.lines)))
        ):
            weights = self._point(signs, inner)
            if weights is not None:
                return weights
        return None

    def conditions(self) -> list[str]:
        """Return the equations that the weights of the family satisfy, as text."""
        weights = symbols(len(self.lines))
        products: dict[Any, Any] = {}
        for i, (beta, omega) in enumerate(self.lines, start=1):
            products |= {beta: weights[f"o{i}"] * weights[f"b{i}"]}
            products |= {omega: weights[f"o{i}"] * weights[f"w{i}"]}
        conditions = []
        for unknown, value in self.solved.items():
            if unknown == value:
                continue
            name, factor = self._name(unknown)
            right = (value.subs(products) / weights.get(factor, 1)).expand()
            conditions.append(f"{name} = {right}")
        for i, (first, second) in self.pulls.items():
            conditions.append(f"o{i + 1} = 0")
            if first:
                conditions.append(f"b{i + 1} = {weights[f'w{i + 1}'] * (-second / first)}")
            elif second:
                conditions.append(f"w{i + 1} = 0")
        return conditions

    def _name(self, unknown: Any) -> tuple[str, str]:
        """Return the name of the weight in an unknown, and of the weight it is multiplied by."""
        for i, (beta, omega) in enumerate(self.lines, start=1):
            if unknown in (beta, omega):
                return f"{'b' if unknown == beta else 'w'}{i}", f"o{i}"
        return "c", ""

    def _residual(self, k: int) -> Any:
        lines = [self.lines[i] for i in self.active if self.patterns[i][k]]
        x, y = self.problem.points[k], self.problem.targets[k]
        return self.c - y + sum(beta + omega * x for beta, omega in lines)

    def _moment(self, residuals: Sequence[Any], pattern: Pattern, power: int) -> Any:
        """Return the sum of weight, residual and x^power over the points of a pattern."""
        parts = zip(self.problem.points, self.problem.weights, residuals, pattern, strict=True)
        return sum(q * r * x**power for x, q, r, on in parts if on)

    def _point(self, signs: Sequence[int], inner: bool) -> dict[str, Fraction] | None:
        """Return weights of the family with output weights 1 or -1, or None."""
        free = {symbol for value in self.solved.values() for symbol in value.free_symbols}
        free |= {unknown for line in self.lines for unknown in line if unknown not in self.solved}
        unknowns = sorted(free, key=str)
        system = [
            side
            for i in range(len(self.lines))
            for side in self._sides(i, signs[i], inner, unknowns)
        ]
        point = solution(system, len(unknowns))
        if point is None:
            return None
        values: dict[Any, Fraction] = dict(zip(unknowns, point, strict=True))
        exact = {unknown: fraction(value.subs(values)) for unknown, value in self.solved.items()}
        values |= exact
        weights = {"c": values[self.c]}
        for i, (beta, omega) in enumerate(self.lines):
            weights[f"w{i + 1}"] = signs[i] * values[omega]
            weights[f"b{i + 1}"] = signs[i] * values[beta]
            weights[f"o{i + 1}"] = Fraction(0 if self.silent[i] else signs[i])
        return weights

    def _sides(self, i: int, sign: int, inner: bool, unknowns: Sequence[Any]) -> list[Inequality]:
        """Return the inequalities of a unit's pattern, and of stationarity if it is silent."""
        beta, omega = (self.solved.get(unknown, unknown) for unknown in self.lines[i])
        inequalities = []
        for x, on in zip(self.problem.points, self.patterns[i], strict=True):
            value = (sign if on else -sign) * (beta + omega * x)
            inequalities.append(_inequality(value, unknowns, strict=on or inner))
        if i in self.pulls:
            pull = self.pulls[i][0] * beta + self.pulls[i][1] * omega
            inequalities += [_inequality(side * pull, unknowns, strict=False) for side in (1, -1)]
        return inequalities


def _inequality(value: Any, unknowns: Sequence[Any], *, strict: bool) -> Inequality:
    sympy = need("sympy", extra="symbolic", why="finding stationary points")
    polynomial = sympy.expand(value)
    parts = [fraction(polynomial.coeff(unknown)) for unknown in unknowns]
    constant = fraction(polynomial.subs(dict.fromkeys(unknowns, 0)))
    return above_zero(parts, constant, strict=strict)
