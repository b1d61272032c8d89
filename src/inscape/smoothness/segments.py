"""Walking along segments: knots between pairs of points, in pieces that fit the memory."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import checks
from inscape._core.anytime import stoppable
from inscape._core.checks import Function
from inscape._core.compiled import compiled
from inscape._core.functional import chunks, norm

#: Numbers from which on the compiled sum pays for being compiled.
LARGE = 10_000_000
#: Pairs and knots of a first, coarse answer where a batch is shorter than a walk.
COARSE_PAIRS, COARSE_KNOTS = 16, 8
#: Pairs that are cut exactly in one step at most where the caller may stop.
BLOCK = 64

R = TypeVar("R")


def walks(
    x: Float[Tensor, "n *d"], ends: Int64[Tensor, "2 pairs"], knots: int, *, rows: int
) -> Iterator[tuple[slice, Float[Tensor, "m k *d"]]]:
    """Yield which pairs, and their points at some consecutive knots, about ``rows`` at a time.

    Windows of one pair overlap by a knot, so that every step from knot to knot is in just one.
    Both ends are exactly the points of ``x`` that ``ends`` numbers. All lie in one place, each over
    the one before: fresh memory for every piece is slower to write and to read.
    """
    at = torch.linspace(0, 1, knots, dtype=torch.float64).to(x)
    at = at.reshape(1, -1, *[1] * (x.ndim - 1))
    pairs, group, window = ends.shape[1], max(1, rows // knots), min(knots, max(2, rows))
    windows = [at[:, start : start + window] for start in range(0, knots - 1, window - 1)]
    x, ends = x.detach(), ends.to(x.device)
    space = x.new_empty(min(group, pairs) * window * x[0].numel())
    for first in range(0, pairs, group):
        some = slice(first, min(first + group, pairs))
        start, stop = (x[end[some]][:, None] for end in ends)
        for t in windows:
            shape = (len(start), t.shape[1], *x.shape[1:])
            yield some, torch.lerp(start, stop, t, out=space[: math.prod(shape)].view(shape))


def in_stages(
    walk: Callable[[int, int], Iterator[tuple[int, R | None]]], pairs: int, knots: int, rows: int
) -> Iterator[R]:
    """Yield the results of walks along ever more pairs, one for each batch of the model.

    Where one walk takes several batches and the caller may stop, a few pairs are walked along with
    fewer knots first, so that there is a coarse answer soon.

    Args:
        walk: ``(pairs, knots) -> (pairs so far, result)`` for each batch; None before a walk ends.
        pairs: Number of pairs.
        knots: Number of knots.
        rows: Knots that a batch may have.
    """
    best: R | None = None
    count, coarse = 0, max(COARSE_KNOTS, rows)
    stages = [(min(pairs, COARSE_PAIRS), coarse)] if stoppable() and coarse < knots else []
    for stage in [*stages, (pairs, knots)]:
        for done, result in walk(*stage):
            if result is not None and done >= count:
                best, count = result, done
            if best is not None:
                yield best


def blocks(
    x: Float[Tensor, "n *d"], ends: Int64[Tensor, "2 pairs"]
) -> Iterator[tuple[Float64[Tensor, "m *d"], Float64[Tensor, "m *d"]]]:
    """Yield both ends of all pairs at once; of ever more at a time where the caller may stop."""
    first, pairs = 0, ends.shape[1]
    size = 1 if stoppable() else pairs
    while first < pairs:
        some = ends[:, first : first + size].to(x.device)
        yield x[some[0]].double(), x[some[1]].double()
        first, size = first + size, min(2 * size, BLOCK)


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
