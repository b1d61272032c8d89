"""How many eigenvalues of a symmetric matrix lie below a number: by Sylvester's law of inertia."""

from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from torch import Tensor


def inertia_below(matrix: Float64[Tensor, "p p"], shift: float) -> tuple[int, float]:
    r"""Return how many eigenvalues lie below ``shift``, and the error that this may have.

    .. math:: H - \sigma I = P L D L^T P^T

    has as many negative eigenvalues as ``D``. The computed factors are exact for a matrix that
    differs by ``error``, the norm of the difference: the count is right for all eigenvalues that
    are farther than that from the shift.
    """
    from scipy.linalg import ldl

    shifted = matrix.numpy() - shift * np.eye(len(matrix))
    lower, blocks, _ = ldl(shifted)
    error = float(np.linalg.norm(lower @ blocks @ lower.T - shifted))
    return _negative(blocks), error


def _negative(blocks: NDArray[np.floating[Any]]) -> int:
    """Return how many eigenvalues of a matrix of blocks of one and two rows are negative."""
    count, at = 0, 0
    while at < len(blocks):
        pair = at + 1 < len(blocks) and blocks[at + 1, at] != 0.0
        if pair:
            block = blocks[at : at + 2, at : at + 2]
            count += int((np.linalg.eigvalsh(block) < 0).sum())
        else:
            count += int(blocks[at, at] < 0)
        at += 2 if pair else 1
    return count
