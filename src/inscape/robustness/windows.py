"""Windows of the Square attack: size, position and shape on the grid of an input."""

import math
from functools import cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Grid = tuple[int, int, int]

#: Queries, of ten thousand, after which the windows' fraction of the input is halved.
HALVINGS = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)


def grid_of(shape: tuple[int, ...]) -> Grid:
    """Return the channels, rows and columns that inputs are searched by.

    Vectors whose length is a square, or three squares, count as flattened images; others as a line.
    This affects where the search looks, not what is allowed.

    >>> grid_of((3, 32, 32)), grid_of((28, 28)), grid_of((784,)), grid_of((3072,)), grid_of((5,))
    ((3, 32, 32), (1, 28, 28), (1, 28, 28), (3, 32, 32), (1, 1, 5))
    """
    if len(shape) == 2:
        return (1, shape[0], shape[1])
    if len(shape) >= 3:
        return (math.prod(shape[:-2]), shape[-2], shape[-1])
    count = math.prod(shape)
    for channels in (1, 3):
        side = math.isqrt(count // channels)
        if side > 3 and channels * side * side == count:
            return (channels, side, side)
    return (1, 1, count)


def window_fraction(query: int, queries: int, start: float) -> float:
    """Return the fraction of the input that a window covers at a query."""
    passed = query * 10_000 / queries
    halved = sum(passed > halving for halving in HALVINGS)
    return start * math.pow(0.5, halved)


def window_size(grid: Grid, fraction: float, *, least: int = 1) -> tuple[int, int]:
    """Return rows and columns of a window that covers about a fraction of the grid."""
    _, h, w = grid
    if h == 1:
        return 1, min(w, max(least, round(fraction * w)))
    side = min(h, w, max(least, round(math.sqrt(fraction * h * w))))
    return side, side


def corners(
    grid: Grid, size: tuple[int, int], uniform: Float[Tensor, "n 2"]
) -> tuple[Tensor, Tensor]:
    """Return the first row and column of a window, from two numbers between 0 and 1 for each."""
    last = uniform.new_tensor([grid[1] - size[0], grid[2] - size[1]])
    corner = (uniform * (last + 1)).minimum(last).long()
    return corner[:, 0], corner[:, 1]


def mask(
    grid: Grid, corner: tuple[Tensor, Tensor], size: tuple[int, int]
) -> Bool[Tensor, "n 1 h w"]:
    """Return which places each window covers."""
    device = corner[0].device
    row = torch.arange(grid[1], device=device)[None] - corner[0][:, None]
    column = torch.arange(grid[2], device=device)[None] - corner[1][:, None]
    rows = (row >= 0) & (row < size[0])
    columns = (column >= 0) & (column < size[1])
    return (rows[:, :, None] & columns[:, None, :])[:, None]


def bump(size: tuple[int, int], like: Tensor) -> Float[Tensor, "a b"]:
    r"""Return a hill of one sign beside a hill of the other, of norm one.

    A hill is high in its middle, with :math:`\sum_{k \le M} (m + 1 - k)^{-2}` at ``M`` rings from
    its rim (Andriushchenko et al. 2020). A window with one column has one hill.
    """
    return _bump(*size).to(like)


@cache
def _bump(rows: int, columns: int) -> Float[Tensor, "a b"]:
    half = columns // 2
    parts = [_hill(rows, half), -_hill(rows, columns - half)] if half else [_hill(rows, columns)]
    window = torch.cat(parts, dim=1)
    length: Tensor = torch.linalg.vector_norm(window)
    return window / length


def _hill(rows: int, columns: int) -> Float[Tensor, "a b"]:
    middle = max(rows, columns) // 2
    row = (torch.arange(rows) - rows // 2).abs()
    column = (torch.arange(columns) - columns // 2).abs()
    rings = (middle - torch.maximum(row[:, None], column[None])).clamp_min(0)
    increments = [1 / (middle + 1 - k) ** 2 for k in range(middle + 1)]
    heights = torch.tensor(increments, dtype=torch.float64).cumsum(0)
    return heights[rings]
