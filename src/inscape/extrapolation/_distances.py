"""Inner products and distances between points, in interruptible blocks."""

from collections.abc import Generator

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

#: Multiplications in one step: some tenths of a second.
STEP = 3_000_000_000

Steps = Generator[None, None, Float64[Tensor, "m n"]]


def rows_per_step(width: int) -> int:
    """Return the rows of one step, each of which costs so many multiplications."""
    return max(1, STEP // max(1, width))


def products(a: Float64[Tensor, "m d"], b: Float64[Tensor, "n d"]) -> Steps:
    """Return all inner products, yielding between blocks."""
    inner = a.new_empty(len(a), len(b))
    rows = rows_per_step(b.numel())
    for first in range(0, len(a), rows):
        if first:
            yield
        torch.mm(a[first : first + rows], b.T, out=inner[first : first + rows])
    return inner


def squared_distances(a: Float64[Tensor, "m d"], b: Float64[Tensor, "n d"]) -> Steps:
    """Return squared distances by inner products, which are inaccurate for near points."""
    squares = yield from products(a, b)
    squares.mul_(-2).add_(a.square().sum(1)[:, None]).add_(b.square().sum(1)[None])
    return squares.clamp_(min=0)


def nearest(
    x: Float64[Tensor, "n d"], queries: Float64[Tensor, "m d"], *, own: bool = False
) -> Generator[None, None, tuple[Float64[Tensor, " m"], Int64[Tensor, " m"]]]:
    """Return the distance from each query to the nearest point, and which that is.

    Candidates come from inner products, distances from differences, which are accurate. With
    ``own`` the queries are the points themselves, and no point is its own neighbour.
    """
    parts, rows = [], rows_per_step(x.numel())
    for first in range(0, len(queries), rows):
        if first:
            yield
        distances = torch.cdist(queries[first : first + rows], x)
        if own:
            distances[torch.arange(len(distances)), torch.arange(first, first + len(distances))] = (
                torch.inf
            )
        parts.append(distances.argmin(1))
    indices = torch.cat(parts)
    return (queries - x[indices]).norm(dim=1), indices


def reach(x: Float64[Tensor, "n d"], fraction: float) -> Generator[None, None, float]:
    """Return the quantile of nearest-neighbour distances; 0 for one point."""
    if len(x) < 2:
        return 0.0
    distances, _ = yield from nearest(x, x, own=True)
    return float(torch.quantile(distances, fraction))


def reduced_coordinates(points: Float64[Tensor, "m d"]) -> Float64[Tensor, "m k"]:
    """Return points of at most ``m`` coordinates with the same inner products."""
    if points.shape[1] <= len(points):
        return points
    reduced: Tensor = torch.linalg.qr(points.T, mode="r").R.T
    return reduced
