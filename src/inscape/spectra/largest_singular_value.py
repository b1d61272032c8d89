"""The largest singular value of a matrix, or of a linear operator given by its products."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import generator

#: Steps of the iteration; each applies the operator once and its transpose once.
STEPS = 300


def of_matrix(matrix: Float[Tensor, "q p"]) -> float:
    """Return the largest singular value from the smaller Gram matrix, in double precision."""
    wide = matrix.double() if matrix.shape[0] <= matrix.shape[1] else matrix.double().T
    return float(torch.linalg.eigvalsh(wide @ wide.T)[-1].clamp(min=0).sqrt())


def of_operator(
    apply: Callable[[Tensor], Tensor],
    transposed: Callable[[Tensor], Tensor],
    like: Float[Tensor, " p"],
    *,
    steps: int = STEPS,
) -> tuple[float, bool]:
    """Return the largest singular value by Lanczos bidiagonalisation, and whether it converged.

    The iteration (Golub and Kahan 1965) keeps its vectors orthogonal, starts from a fixed random
    vector and stops when the residual is a few rounding errors. Until then the value is a lower
    bound.
    """
    tolerance = 30 * torch.finfo(like.dtype).eps
    v = torch.randn(len(like), generator=generator(0), dtype=torch.float64).to(like)
    rights, lefts = [v / v.norm()], list[Tensor]()
    diagonal, superdiagonal = list[float](), list[float]()
    value = 0.0
    for _ in range(min(steps, len(like))):
        u = _orthogonal(apply(rights[-1]), lefts)
        diagonal.append(float(u.norm()))
        lefts.append(u / (diagonal[-1] or 1.0))
        w = _orthogonal(transposed(lefts[-1]), rights)
        superdiagonal.append(float(w.norm()))
        value, last = _top(diagonal, superdiagonal)
        if superdiagonal[-1] * last <= tolerance * value:
            return value, True
        rights.append(w / superdiagonal[-1])
    return value, len(diagonal) == len(like)


def _orthogonal(vector: Tensor, others: list[Tensor]) -> Tensor:
    """Return a vector orthogonalised against others, twice, which floating point needs."""
    for _ in range(2 if others else 0):
        basis = torch.stack(others)
        vector = vector - basis.T @ (basis @ vector)
    return vector


def _top(diagonal: list[float], superdiagonal: list[float]) -> tuple[float, float]:
    """Return the largest singular value of a bidiagonal matrix, and the residual's factor."""
    bidiagonal = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    bidiagonal += torch.diag(
        torch.tensor(superdiagonal[: len(diagonal) - 1], dtype=torch.float64), 1
    )
    left_vectors, values, _ = torch.linalg.svd(bidiagonal)
    return float(values[0]), abs(float(left_vectors[-1, 0]))
