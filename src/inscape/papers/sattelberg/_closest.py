"""The three images that are closest together: the search of figures 6.8 and 6.9, exact.

The perimeter of a triangle of images is the sum of its three Euclidean distances. No side of a
triangle is longer than half of its perimeter, so once some triangle is known, only pairs nearer
than half of its perimeter can be sides of a smaller one.
"""

from itertools import combinations
from typing import Any

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

#: Rows of the table of distances that are held at once.
BLOCK = 500
#: Distances from products round; pairs this much further off are still looked at.
SLACK = 1e-3


def closest_triple(x: Float[Tensor, "n d"]) -> tuple[list[int], float]:
    """Return the three rows with the smallest sum of distances, and that sum."""
    near = _nearest(x, 2)
    whole = x.double()
    best, least = min(
        ((sorted({i, *row}), perimeter(whole[[i, *row]])) for i, row in enumerate(near.tolist())),
        key=lambda found: found[1],
    )
    friends = _pairs(x, least / 2)
    for i, others in friends.items():
        for j, k in combinations(others, 2):
            if k in friends.get(j, ()) and (size := perimeter(whole[[i, j, k]])) < least:
                best, least = [i, j, k], size
    return best, least


def perimeter(x: Float64[Tensor, "3 d"]) -> float:
    """Return the sum of the three distances."""
    return float(torch.pdist(x).sum())


def _blocks(x: Float[Tensor, "n d"]) -> Any:
    """Yield the first row of each block, and the squared distances of its rows to all others."""
    squares = (x * x).sum(1)
    for start in range(0, len(x), BLOCK):
        rows = x[start : start + BLOCK]
        table = squares[start : start + BLOCK, None] + squares - 2 * rows @ x.T
        table[torch.arange(len(rows)), start + torch.arange(len(rows))] = torch.inf
        yield start, table


def _nearest(x: Float[Tensor, "n d"], count: int) -> Int64[Tensor, "n k"]:
    """Return the nearest rows of every row."""
    return torch.cat([table.topk(count, largest=False).indices for _, table in _blocks(x)])


def _pairs(x: Float[Tensor, "n d"], limit: float) -> dict[int, list[int]]:
    """Return for every row the later rows that are nearer than ``limit``, and a little further."""
    found: dict[int, list[int]] = {}
    for start, table in _blocks(x):
        for i, j in torch.nonzero(table < (limit * (1 + SLACK)) ** 2).tolist():
            if start + i < j:
                found.setdefault(start + i, []).append(j)
    return found


def plane(
    a: Float64[Tensor, " d"], b: Float64[Tensor, " d"], c: Float64[Tensor, " d"]
) -> tuple[Float64[Tensor, "3 2"], Float64[Tensor, "2 d"]]:
    """Return the three points in the plane through them, and its two directions, by (6.2)."""
    first = b - a
    second = c - a - (c - a) @ first / (first @ first) * first
    directions = torch.stack([first / first.norm(), second / second.norm()])
    return torch.stack([p - a for p in (a, b, c)]) @ directions.T, directions
