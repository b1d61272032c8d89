"""Lanczos with full reorthogonalisation and thick restarts, for both ends of a spectrum."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import checks

Product = Callable[[Tensor], Tensor]

#: Below this many machine epsilons of the spectrum's width a new vector is rounding.
BREAKDOWN = 64
#: Up to this many columns the small matrix is solved after each product, then after every fourth.
OFTEN = 64
#: Fraction of the basis that a thick restart keeps, from both ends.
KEPT = 0.4


@dataclass(frozen=True, kw_only=True)
class RitzPairs:
    """The state of Lanczos after some products: Ritz values with their residual estimates.

    ``asymmetry`` is the largest part of a product that exact arithmetic would make zero: the norm
    of what the rounding of one product is, as estimated from its components in the basis.
    ``unrestarted`` counts the products before the first restart, to which the probability bound
    applies; ``exhausted`` tells that the Krylov space is invariant.
    """

    basis: Float[Tensor, "m p"]
    vectors: Float64[Tensor, "m m"]
    values: Float64[Tensor, " m"]
    last: float
    products: int
    unrestarted: int
    asymmetry: float
    exhausted: bool

    @property
    def width(self) -> float:
        """Return the distance between the outermost Ritz values."""
        return float(self.values[-1] - self.values[0])

    def residual(self, index: int) -> float:
        """Return the estimated residual norm of a Ritz pair."""
        return abs(self.last * float(self.vectors[-1, index]))

    def vector(self, index: int) -> Float[Tensor, " p"]:
        """Return a Ritz vector of length one."""
        combined = self.vectors[:, index].to(self.basis) @ self.basis
        unit: Tensor = combined / combined.norm()
        return unit

    def converged(self, tolerance: float) -> bool:
        """Tell whether both ends have residuals below a fraction of the width."""
        limit = tolerance * self.width
        return self.exhausted or max(self.residual(0), self.residual(-1)) <= limit


def lanczos(
    product: Product, start: Float[Tensor, " p"], *, columns: int, products: int
) -> Iterator[RitzPairs]:
    """Yield the Ritz pairs after each product, or after every fourth where they are many.

    Each new vector is orthogonalised twice against all others. Once ``columns`` vectors are there
    the outermost Ritz vectors are kept and the rest is dropped (thick restart, Wu and Simon 2000).
    """
    size = len(start)
    columns = max(3, min(columns, size, products))
    basis = start.new_zeros(columns, size)
    basis[0] = start / start.norm()
    small = torch.zeros(columns, columns, dtype=torch.float64)
    count, done, unrestarted, asymmetry, restarted = 1, 0, 0, 0.0, False
    while done < products:
        image = product(basis[count - 1])
        checks.finite(image, "parameters")
        done += 1
        image, small[:count, count - 1] = _orthogonal(image, basis[:count])
        if not restarted:
            asymmetry = max(asymmetry, _out_of_band(small[:count, count - 1], size))
            unrestarted = done
        small[count - 1, :count] = small[:count, count - 1].clone()
        norm = image.double().norm()  # the squares of float32 overflow early
        checks.finite(norm, "parameters")
        length = float(norm)
        scale = float(small[:count, :count].abs().max()) + length
        exhausted = length <= BREAKDOWN * _epsilon(start) * scale or count == size
        full, over = count == columns, done == products
        if exhausted or full or over or count <= OFTEN or count % 4 == 0:
            values, vectors = torch.linalg.eigh(small[:count, :count])
            yield RitzPairs(
                basis=basis[:count],
                vectors=vectors,
                values=values,
                last=0.0 if exhausted else length,
                products=done,
                unrestarted=unrestarted,
                asymmetry=asymmetry,
                exhausted=exhausted,
            )
            if exhausted or over:
                return
        if full:
            count, restarted = _restart(basis, small, values, vectors), True
        basis[count] = image / length
        count += 1


def _orthogonal(image: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """Return a vector made orthogonal to a basis, twice, and its components."""
    components = basis @ image
    image = image - components @ basis
    again = basis @ image
    return image - again @ basis, (components + again).double().cpu()


def _out_of_band(column: Float64[Tensor, " m"], size: int) -> float:
    """Return the norm of a product's rounding, from the components that should be zero."""
    zeros = column[:-2]
    if len(zeros) == 0:
        return 0.0
    return float(zeros.norm()) * math.sqrt(size / len(zeros))


def _restart(basis: Tensor, small: Tensor, values: Tensor, vectors: Tensor) -> int:
    """Replace the basis by the outermost Ritz vectors; return how many they are."""
    columns = len(values)
    half = max(1, min(int(KEPT * columns / 2), (columns - 2) // 2))
    chosen = [*range(half), *range(columns - half, columns)]
    basis[: len(chosen)] = vectors[:, chosen].T.to(basis) @ basis
    small.zero_()
    small.diagonal()[: len(chosen)] = values[chosen]
    return len(chosen)


def _epsilon(vector: Tensor) -> float:
    return float(torch.finfo(vector.dtype).eps)


def unseen(size: int, products: int, failure: float) -> float:
    r"""Return which fraction of the width may lie beyond the outermost Ritz value.

    .. math:: P\bigl(\lambda_{max} - \theta > \varepsilon (\lambda_{max} - \lambda_{min})\bigr)
              \le 1.648 \sqrt{p} \, e^{-\sqrt{\varepsilon} (2k - 1)}

    After ``k`` products from a random start (Kuczynski and Wozniakowski 1992, Theorem 4.2).
    """
    exponent = math.log(1.648 * math.sqrt(size) / failure)
    return min(1.0, (max(0.0, exponent) / (2 * products - 1)) ** 2)
