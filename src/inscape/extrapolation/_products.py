"""Products and distances of wide rows, some rows at a time, so that others can have their turn."""

from collections.abc import Generator

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

#: Products of numbers in one step: some tenths of a second.
STEP = 3_000_000_000

Steps = Generator[None, None, Float64[Tensor, "m n"]]


def rows_for(width: int) -> int:
    """Return for how many rows a step has room, each of which takes so many products."""
    return max(1, STEP // max(1, width))


def products(a: Float64[Tensor, "m d"], b: Float64[Tensor, "n d"]) -> Steps:
    """Return all inner products of rows, with a step between blocks of them."""
    found = a.new_empty(len(a), len(b))
    each = rows_for(b.numel())
    for first in range(0, len(a), each):
        if first:
            yield
        torch.mm(a[first : first + each], b.T, out=found[first : first + each])
    return found


def squared_distances(a: Float64[Tensor, "m d"], b: Float64[Tensor, "n d"]) -> Steps:
    """Return squared distances between rows by products: near ones lose digits."""
    found = yield from products(a, b)
    found.mul_(-2).add_(a.square().sum(1)[:, None]).add_(b.square().sum(1)[None])
    return found.clamp_(min=0)


def nearest(
    x: Float64[Tensor, "n d"], queries: Float64[Tensor, "m d"], *, own: bool = False
) -> Generator[None, None, tuple[Float64[Tensor, " m"], Int64[Tensor, " m"]]]:
    """Return the distance from each query to the nearest point, and which that is.

    Candidates come from products, distances from differences: near points lose no digits. ``own``
    says that the queries are the points themselves, none of which is its own neighbour.
    """
    numbers, each = [], rows_for(x.numel())
    for first in range(0, len(queries), each):
        if first:
            yield
        between = torch.cdist(queries[first : first + each], x)
        if own:
            between[torch.arange(len(between)), torch.arange(first, first + len(between))] = (
                torch.inf
            )
        numbers.append(between.argmin(1))
    found = torch.cat(numbers)
    return (queries - x[found]).norm(dim=1), found


def reach(x: Float64[Tensor, "n d"], fraction: float) -> Generator[None, None, float]:
    """Return within what distance a fraction of the points has another one; 0 for one point."""
    if len(x) < 2:
        return 0.0
    distances, _ = yield from nearest(x, x, own=True)
    return float(torch.quantile(distances, fraction))


def shortened(rows: Float64[Tensor, "m d"]) -> Float64[Tensor, "m k"]:
    """Return rows with the same inner products that are no longer than there are of them."""
    if rows.shape[1] <= len(rows):
        return rows
    shorter: Tensor = torch.linalg.qr(rows.T, mode="r").R.T
    return shorter
