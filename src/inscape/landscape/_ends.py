"""Both ends of the spectrum of a curvature matrix, with vectors, residuals and bounds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import BudgetError, checks
from inscape._core.sampling import generator
from inscape.functional.hessian_products import HessianProducts
from inscape.landscape._curvature_rounding import (
    EPSILON,
    LEAST_ROUNDING,
    curvature_rounding,
    has_terms,
    matrix_rounding,
)
from inscape.landscape._inertia import inertia_below
from inscape.landscape._lanczos import RitzPairs, lanczos, unseen
from inscape.landscape._loss_function import GRAPHS, LossFunction, Matrix

#: Probability with which the bounds of a random start may fail, both ends together.
FAILURE = 1e-3


@dataclass(frozen=True)
class EndSearch:
    """How the ends are searched for: the settings of ``hessian_extremes``."""

    matrix: Matrix = "hessian"
    tolerance: float = 1e-3
    products: int = 200
    starts: int = 1
    dense: int = 200
    seed: int = 0
    memory: int = 2 * GRAPHS

    def __post_init__(self) -> None:
        """Refuse settings that cannot be."""
        checks.whole(1, products=self.products, starts=self.starts, memory=self.memory)
        checks.whole(0, dense=self.dense)
        checks.at_least(0.0, tolerance=self.tolerance)
        checks.one_of(("hessian", "gauss_newton"), matrix=self.matrix)
        checks.seed(self.seed)


@dataclass(frozen=True, kw_only=True)
class SpectrumEnds:
    """Both ends, and what is known about them; vectors once they are verified."""

    smallest: float
    largest: float
    residuals: tuple[float, float]
    rounding: float
    below: float
    above: float
    proof: Literal["inertia", "probability"]
    failure: float
    converged: bool
    products: int
    vectors: tuple[Tensor, Tensor] | None = None

    @property
    def negative(self) -> bool:
        """Tell whether a verified vector has negative curvature by more than its rounding."""
        return self.vectors is not None and self.smallest < -self.rounding


@dataclass(frozen=True, kw_only=True)
class _Run:
    """The ends that one random start has found, not verified yet."""

    values: tuple[float, float]
    vectors: tuple[Tensor, Tensor]
    products: int
    unrestarted: int
    asymmetry: float


def extreme_ends(problem: LossFunction, search: EndSearch) -> Iterator[SpectrumEnds]:
    """Yield the ends after each product, and verified ones at last."""
    if problem.size <= search.dense:
        yield _dense_ends(problem.in_double(), search.matrix)
        return
    columns, product = _columns(problem, search.memory), problem.products(search.matrix)
    rng = generator(search.seed)
    runs: list[_Run] = []
    like = problem.tensors[0]
    for _ in range(search.starts):
        start = torch.randn(problem.size, generator=rng, dtype=torch.float64).to(like)
        for pairs in lanczos(product, start, columns=columns, products=search.products):
            yield _estimated(pairs, runs, problem.size, search.tolerance)
            if pairs.products >= 2 and pairs.converged(search.tolerance):
                break
        runs.append(_run(pairs))
        del pairs
    yield _verified(problem, runs, search)


def _columns(problem: LossFunction, memory: int) -> int:
    """Return how many vectors the basis may have, or raise if not even three fit."""
    vector = problem.size * problem.tensors[0].element_size()
    if memory < 6 * vector:
        raise BudgetError(
            f"memory must hold three vectors of {problem.size:,} parameters and their graphs, "
            f"{6 * vector:,} bytes, found {memory:,}: raise memory, or choose fewer parameters."
        )
    return memory // (2 * vector)


def _run(pairs: RitzPairs) -> _Run:
    return _Run(
        values=(float(pairs.values[0]), float(pairs.values[-1])),
        vectors=(_unit(pairs.vector(0)), _unit(pairs.vector(-1))),
        products=pairs.products,
        unrestarted=pairs.unrestarted,
        asymmetry=pairs.asymmetry,
    )


def _unit(vector: Tensor) -> Float64[Tensor, " p"]:
    """Return a vector in float64, where its length is one."""
    double = vector.double()
    unit: Tensor = double / double.norm()
    return unit


def _estimated(pairs: RitzPairs, runs: list[_Run], size: int, tolerance: float) -> SpectrumEnds:
    """Return the ends so far with the residuals that the recurrence tells."""
    low = min([float(pairs.values[0]), *(run.values[0] for run in runs)])
    high = max([float(pairs.values[-1]), *(run.values[1] for run in runs)])
    steps = [pairs.unrestarted, *(run.unrestarted for run in runs)]
    rounding = max(pairs.asymmetry, LEAST_ROUNDING * EPSILON * max(abs(low), abs(high)))
    below, above = _probable(low, high, size, steps)
    return SpectrumEnds(
        smallest=low,
        largest=high,
        residuals=(pairs.residual(0), pairs.residual(-1)),
        rounding=rounding,
        below=below,
        above=above,
        proof="probability",
        failure=FAILURE,
        converged=pairs.products >= 2 and pairs.converged(tolerance),
        products=pairs.products + sum(run.products for run in runs),
    )


def _probable(low: float, high: float, size: int, steps: list[int]) -> tuple[float, float]:
    """Return bounds of the spectrum that fail with a small probability over all starts.

    Of several starts all must fail for the bound to fail. The unknown width is at most that of the
    Ritz values over ``1 - 2 * fraction``.
    """
    failure = (FAILURE / 2) ** (1 / len(steps))
    fraction = max(unseen(size, max(1, count), failure) for count in steps)
    if 2 * fraction >= 1:
        return -math.inf, math.inf
    margin = fraction / (1 - 2 * fraction) * (high - low)
    return low - margin, high + margin


def _verified(problem: LossFunction, runs: list[_Run], search: EndSearch) -> SpectrumEnds:
    """Return the outermost ends of all runs with true residuals, computed in float64."""
    exact = problem.in_double().products(search.matrix)
    lowest = min(runs, key=lambda run: run.values[0])
    highest = max(runs, key=lambda run: run.values[1])
    low, low_residual = rayleigh(exact, lowest.vectors[0])
    high, high_residual = rayleigh(exact, highest.vectors[1])
    steps = [run.unrestarted for run in runs]
    below, above = _probable(low, high, problem.size, steps)
    asymmetry = max(run.asymmetry for run in runs)
    own = float(torch.finfo(problem.tensors[0].dtype).eps)
    size = max(abs(low), abs(high))
    rounding = max(asymmetry * EPSILON / own, LEAST_ROUNDING * EPSILON * size)
    doubtful = low < -rounding and has_terms(problem)  # rounding decides on the sign
    if doubtful:
        rounding = max(rounding, curvature_rounding(problem, lowest.vectors[0]))
    return SpectrumEnds(
        smallest=low,
        largest=high,
        residuals=(low_residual, high_residual),
        rounding=rounding,
        below=below,
        above=above,
        proof="probability",
        failure=FAILURE,
        converged=max(low_residual, high_residual) <= search.tolerance * (high - low)
        or max(low_residual, high_residual) <= LEAST_ROUNDING * own * size,
        products=sum(run.products for run in runs) + (4 if doubtful else 2),
        vectors=(lowest.vectors[0], highest.vectors[1]),
    )


def rayleigh(product: HessianProducts, vector: Float64[Tensor, " p"]) -> tuple[float, float]:
    """Return the Rayleigh quotient of a vector of length one, and its residual."""
    image = product(vector)
    checks.finite(image, "parameters")
    quotient = float(vector @ image)
    return quotient, float((image - quotient * vector).norm())


def _dense_ends(problem: LossFunction, matrix: Matrix) -> SpectrumEnds:
    """Return the ends of the whole matrix, and prove them by inertia."""
    product = problem.products(matrix)
    dense = product.matrix().cpu()
    checks.finite(dense, "parameters")
    values, vectors = torch.linalg.eigh(dense)
    low, high = float(values[0]), float(values[-1])
    unit = _power_of_two(max(-low, high))  # squares and products of huge curvatures overflow
    dense, values, low, high = dense / unit, values / unit, low / unit, high / unit
    size, terms = max(-low, high), matrix_rounding(problem) / unit
    residuals = [float((dense @ vectors[:, k] - values[k] * vectors[:, k]).norm()) for k in (0, -1)]
    margin = LEAST_ROUNDING * len(dense) * EPSILON * size + max(residuals) + terms
    below, error = inertia_below(dense, low - margin)
    above, other = inertia_below(-dense, -high - margin)
    error = max(error, other)
    proved = below == above == 0 and error <= margin
    return SpectrumEnds(
        smallest=low * unit,
        largest=high * unit,
        residuals=(residuals[0] * unit, residuals[1] * unit),
        rounding=max(LEAST_ROUNDING * EPSILON * size, terms) * unit,
        below=(low - margin - error) * unit,
        above=(high + margin + error) * unit,
        proof="inertia" if proved else "probability",
        failure=0.0 if proved else FAILURE,
        converged=True,
        products=product.products,
        vectors=(vectors[:, 0], vectors[:, -1]),
    )


def _power_of_two(size: float) -> float:
    """Return a number by which a size is divided without rounding to lie between 1/2 and 1."""
    return math.ldexp(1.0, min(max(math.frexp(size)[1], -1000), 1000))
