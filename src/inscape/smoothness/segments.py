"""Walking along segments: knots between pairs of points, in pieces that fit the memory."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape._core.checks import Function
from inscape._core.compiled import compiled
from inscape._core.functional import chunks, norm

#: Numbers from which on the compiled sum pays for being compiled.
LARGE = 10_000_000


def walks(
    a: Float[Tensor, "pairs *d"], b: Float[Tensor, "pairs *d"], knots: int, *, rows: int
) -> Iterator[tuple[slice, Float[Tensor, "m k *d"]]]:
    """Yield which pairs, and their points at some consecutive knots, about ``rows`` at a time.

    Windows of one pair overlap by a knot, so that every step from knot to knot is in just one.
    Both ends are exactly ``a`` and ``b``. All lie in one place, each over the one before: fresh
    memory for every piece is slower to write and to read.
    """
    at = torch.linspace(0, 1, knots, dtype=torch.float64).to(a)
    at = at.reshape(1, -1, *[1] * (a.ndim - 1))
    group, window = max(1, rows // knots), min(knots, max(2, rows))
    windows = [at[:, start : start + window] for start in range(0, knots - 1, window - 1)]
    a, b = a.detach()[:, None], b.detach()[:, None]
    space = a.new_empty(min(group, len(a)) * window * a[0].numel())
    for first in range(0, len(a), group):
        some = slice(first, first + group)
        start, stop = a[some], b[some]
        for t in windows:
            shape = (len(start), t.shape[1], *a.shape[2:])
            yield some, torch.lerp(start, stop, t, out=space[: math.prod(shape)].view(shape))


def values(f: Function, x: Float[Tensor, "m *d"], *, rows: int) -> Float[Tensor, "m c"]:
    """Return ``f`` at points, one flat row each, ``rows`` of them at a time."""
    return torch.cat([f(part).reshape(len(part), -1) for part in chunks(x, rows)])


def variation(rows: Float[Tensor, "m k w"], *, large: bool) -> Float[Tensor, " m"]:
    """Return the length of the way through the ``k`` rows of each of ``m`` walks."""
    if large and rows.device.type == "cpu":
        lengths = rows.new_empty(len(rows))
        _add_steps(rows.contiguous().numpy(), lengths.numpy())
        return lengths
    return norm(rows.diff(dim=1), dim=2).sum(1)


@compiled
def _add_steps(rows: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> None:
    """Sum the norms of the steps in one pass over memory, where torch takes three."""
    for i in range(rows.shape[0]):
        length = 0.0
        for k in range(rows.shape[1] - 1):
            square = rows[i, k, 0] - rows[i, k, 0]  # a zero of the rows' own precision
            for j in range(rows.shape[2]):
                step = rows[i, k + 1, j] - rows[i, k, j]
                square += step * step
            length += np.sqrt(square)
        lengths[i] = length


def halves(x: Float[Tensor, "n *d"]) -> tuple[Float[Tensor, "m *d"], Float[Tensor, "m *d"]]:
    """Pair the first half of a batch with the second; an odd last point is left out."""
    half = len(x) // 2
    return x[:half], x[half : 2 * half]


def reduced(values: Float[Tensor, " n"], reduction: Literal["mean", "sum"]) -> Float[Tensor, ""]:
    """Return the mean or the sum."""
    checks.one_of(("mean", "sum"), reduction=reduction)
    return values.mean() if reduction == "mean" else values.sum()
