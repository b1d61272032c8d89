"""Both ends of the spectrum of a large map by Golub-Kahan bidiagonalisation, with residuals."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import BudgetError, generator

#: Residuals below this fraction of the largest singular value end the iteration.
TOLERANCE = 1e-8
#: Below this fraction the vectors of a side fill an invariant space: what is left is rounding.
EXHAUSTED = 1e-14
#: Pairs of vectors that a step works on beside those that are kept.
WORKING = 3
#: Steps between two looks at the residuals.
EVERY = 5

Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class SingularValueEnds:
    r"""Approximations of both ends of a spectrum, each with its residual, after some steps.

    The residual r of a value t is the length of what its vectors miss, computed anew with two
    products: :math:`(|A v - t u|^2 + |A^T u - t v|^2)^{1/2} / \sqrt 2`. A singular value lies
    within r of t. ``largest`` is never above the largest one, ``smallest`` never below the
    smallest, up to rounding.
    """

    largest: float
    largest_residual: float
    smallest: float
    smallest_residual: float
    steps: int


def extreme_singular_values(
    product: Product,
    transposed: Product,
    shape: tuple[int, int],
    *,
    steps: int,
    memory: int,
    seed: int = 0,
) -> SingularValueEnds:
    """Return approximations of both ends of the spectrum of a matrix of ``shape``.

    The vectors are kept and orthogonalised twice against all earlier ones. The iteration ends when
    both residuals are small, the vectors fill the space, or after ``steps``; fewer where ``memory``
    does not hold the vectors.
    """
    if shape[0] < shape[1]:  # zeros of the longer side would be taken for singular values
        product, transposed, shape = transposed, product, shape[::-1]
    pair = 8 * sum(shape)
    most = min(steps, shape[1], memory // pair - WORKING)
    if most < min(2, shape[1]):
        needed = (2 + WORKING) * pair
        raise BudgetError(
            f"two steps of the iteration work on vectors of {needed:,} bytes, found "
            f"memory={memory:,}: raise memory to at least {needed:,}."
        )
    start = torch.randn(shape[1], generator=generator(seed), dtype=torch.float64)
    return _Bidiagonalisation(product, transposed, start, most).run()


class _Bidiagonalisation:
    """Bases of both sides, and the bidiagonal matrix between them."""

    def __init__(self, product: Product, transposed: Product, start: Tensor, most: int) -> None:
        self.product, self.transposed, self.most = product, transposed, most
        self.rights = start.new_empty(most, len(start))
        self.rights[0] = start / start.norm()
        self.basis = start.new_empty(0, 0)  # of the left side, once its length is known
        self.diagonal, self.above = list[float](), list[float]()

    def run(self) -> SingularValueEnds:
        for step in range(1, self.most + 1):
            goes_on = self._extend(step)
            if not goes_on or (step % EVERY == 0 and self._converged()):
                break
        return self._ends()

    def _extend(self, step: int) -> bool:
        """Add a vector to each side; return whether there is a next one."""
        left = self.product(self.rights[step - 1])
        if step == 1:
            self.basis = left.new_empty(self.most, len(left))
        left = _orthogonal(left, self.basis[: step - 1])
        self.diagonal.append(float(left.norm()))
        self.basis[step - 1] = left / (self.diagonal[-1] or 1.0)
        right = _orthogonal(self.transposed(self.basis[step - 1]), self.rights[:step])
        self.above.append(float(right.norm()))
        if self.above[-1] <= EXHAUSTED * max(self.diagonal) or step == self.most:
            return False
        self.rights[step] = right / self.above[-1]
        return True

    def _decomposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the singular vectors and values of the bidiagonal matrix."""
        k = len(self.diagonal)
        bidiagonal = torch.diag(torch.tensor(self.diagonal, dtype=torch.float64))
        if k > 1:
            bidiagonal += torch.diag(torch.tensor(self.above[: k - 1], dtype=torch.float64), 1)
        left, values, right = torch.linalg.svd(bidiagonal)
        return left, values, right

    def _converged(self) -> bool:
        left, values, _ = self._decomposed()
        residuals = self.above[-1] * left[-1].abs()
        worst = max(float(residuals[0]), float(residuals[-1]))
        return worst <= TOLERANCE * float(values[0])

    def _ends(self) -> SingularValueEnds:
        left, values, right = self._decomposed()
        lefts, rights = self.basis[: len(values)], self.rights[: len(values)]
        residuals = []
        for k in (0, -1):
            u, v = left[:, k] @ lefts, right[k] @ rights
            misses = self.product(v) - values[k] * u, self.transposed(u) - values[k] * v
            residuals.append(float(sum(miss.square().sum() for miss in misses) / 2) ** 0.5)
        return SingularValueEnds(
            largest=float(values[0]),
            largest_residual=residuals[0],
            smallest=float(values[-1]),
            smallest_residual=residuals[1],
            steps=len(values),
        )


def _orthogonal(
    vector: Float64[Tensor, " n"], basis: Float64[Tensor, "k n"]
) -> Float64[Tensor, " n"]:
    """Return a vector orthogonalised against a basis, twice, as rounding requires."""
    for _ in range(2 if len(basis) else 0):
        vector = vector - basis.T @ (basis @ vector)
    return vector
