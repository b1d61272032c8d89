"""Walking along segments: knots between pairs of points, in pieces that fit the memory."""

from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape._core.functional import chunks


def knots_between(
    a: Float[Tensor, "pairs *d"],
    b: Float[Tensor, "pairs *d"],
    knots: int,
    *,
    rows: int,
    reuse: bool = False,
) -> Iterator[Iterator[Float[Tensor, "m *d"]]]:
    """Yield for each group of at most ``rows`` pairs its points at knot 0, 1, ... in turn.

    With ``reuse`` every knot is written over the one before, which is quicker where the caller
    keeps nothing that may share memory with the points.
    """
    for start, end in zip(chunks(a, rows), chunks(b, rows), strict=True):
        yield _walk(start, end, knots, torch.empty_like(start) if reuse else None)


def _walk(a: Tensor, b: Tensor, knots: int, out: Tensor | None) -> Iterator[Tensor]:
    """Yield the points at each knot; both ends are exactly ``a`` and ``b``."""
    for t in torch.linspace(0, 1, knots, dtype=torch.float64).tolist():
        yield torch.lerp(a, b, t, out=out)


def halves(x: Float[Tensor, "n *d"]) -> tuple[Float[Tensor, "m *d"], Float[Tensor, "m *d"]]:
    """Pair the first half of a batch with the second; an odd last point is left out."""
    half = len(x) // 2
    return x[:half], x[half : 2 * half]


def reduced(values: Float[Tensor, " n"], reduction: Literal["mean", "sum"]) -> Float[Tensor, ""]:
    """Return the mean or the sum."""
    checks.one_of(("mean", "sum"), reduction=reduction)
    return values.mean() if reduction == "mean" else values.sum()
