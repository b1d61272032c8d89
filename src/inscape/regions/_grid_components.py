"""Connected components of a grid: neighbours with equal coefficients, joined."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

Pairs = npt.NDArray[np.int64]

#: Directions on which the maps of components are compared.
TRIALS = 32


def joined(count: int, pairs: Iterable[Pairs]) -> Int64[Tensor, " count"]:
    """Return the number of each point's component, in the order in which they are met."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = np.concatenate([np.zeros((0, 2), np.int64), *pairs])
    entries = np.ones(len(edges), dtype=bool)
    graph = coo_array((entries, (edges[:, 0], edges[:, 1])), shape=(count, count))
    _, component = connected_components(graph, directed=False)
    _, first, kind = np.unique(component, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return torch.from_numpy(rank[kind.reshape(-1)])


class GridNeighbours:
    """Finds equal neighbours in a row of the grid and in the row before it.

    ``"4"``: left and up; ``"8"``: the two diagonals of the row before as well; ``"row"``: left,
    and in the row before everything from the diagonal on the left to the right end, as in
    Sattelberg's figure 6.12.
    """

    def __init__(self, reach: str, width: int, tolerance: float, directions: Tensor) -> None:
        self.reach, self.width, self.tolerance = reach, width, tolerance
        self._directions = directions
        self._before: Tensor | None = None
        self._at = 0
        self._projections: list[Tensor] = []
        self._places: list[Pairs] = []

    def pairs(self, row: Float64[Tensor, "p k"]) -> Pairs:
        """Return the pairs of neighbours with equal coefficients, for the next row."""
        place = self.width * self._at + np.arange(self.width)
        pairs = [self._alike(row[1:], row[:-1], place[1:], place[:-1])]
        if self._before is not None:
            old, above = self._before, place - self.width
            pairs.append(self._alike(row, old, place, above))
            if self.reach == "8":
                pairs.append(self._alike(row[1:], old[:-1], place[1:], above[:-1]))
                pairs.append(self._alike(row[:-1], old[1:], place[:-1], above[1:]))
            elif self.reach == "row":
                pairs.append(self._far(row, old, place))
        self._before, self._at = row, self._at + 1
        joined_pairs = np.concatenate(pairs)
        self._keep(row, np.setdiff1d(place, joined_pairs[:, 0]))
        return joined_pairs

    def _keep(self, row: Float64[Tensor, "p k"], new: Pairs) -> None:
        """Keep the projections of points that equal none before: the first of each component."""
        points = row[torch.from_numpy(new % self.width)]
        projections = points @ self._directions
        self._projections.append(torch.cat([projections, points.norm(dim=1, keepdim=True)], 1))
        self._places.append(new)

    def _alike(self, first: Tensor, second: Tensor, at: Pairs, by: Pairs) -> Pairs:
        near = self.tolerance * torch.maximum(first.norm(dim=1), second.norm(dim=1))
        same = ((first - second).norm(dim=1) <= near).numpy()
        return np.stack([at[same], by[same]], 1)

    def _far(self, row: Tensor, old: Tensor, place: Pairs) -> Pairs:
        """Compare with the rest of the row before: first by inner products, which round more."""
        row_squares, old_squares = row.square().sum(1)[:, None], old.square().sum(1)
        square = row_squares + old_squares - 2 * row @ old.T
        slack = 1.001 * self.tolerance**2 + 4 * row.shape[1] * torch.finfo(row.dtype).eps
        reach = torch.ones_like(square, dtype=torch.bool).triu(-1)
        close = (reach & (square <= slack * torch.maximum(row_squares, old_squares))).nonzero()
        blocks = []
        for block in torch.tensor_split(close, 1 + len(close) // 256):
            a, b = block.unbind(1)
            pairs = self._alike(row[a], old[b], place[a.numpy()], place[b.numpy()] - self.width)
            blocks.append(pairs)
        return np.concatenate([np.zeros((0, 2), np.int64), *blocks])

    def distinct(self, labels: Int64[Tensor, " n"]) -> int:
        """Return how many different maps the components have, by random projections of their first.

        Random projections estimate the distance of two maps to about an eighth of it: equal maps
        differ by rounding, which is far below any tolerance.
        """
        _, first = np.unique(labels.numpy(), return_index=True)
        rows = np.searchsorted(np.concatenate(self._places), first)
        kinds = torch.cat(self._projections)[torch.from_numpy(rows)]
        order = kinds[:, 0].argsort()
        kinds, place = kinds[order], np.arange(len(order))
        size = len(self._directions)
        pairs: list[Pairs] = []
        for step in range(1, len(kinds)):
            near = self.tolerance * torch.maximum(kinds[step:, -1], kinds[:-step, -1])
            close = ((kinds[step:, 0] - kinds[:-step, 0]).abs() <= near).nonzero()[:, 0]
            if not len(close):
                break
            gaps = kinds[close + step, :-1] - kinds[close, :-1]
            same = close[(size * gaps.square().mean(1)).sqrt() <= near[close]].numpy()
            pairs.append(np.stack([place[same + step], place[same]], 1))
        return int(joined(len(kinds), pairs).max()) + 1


def directions(size: int) -> Float64[Tensor, "size trials"]:
    """Return random directions of length one, the same every time."""
    draw = torch.Generator().manual_seed(0)
    drawn = torch.randn(size, TRIALS, generator=draw, dtype=torch.float64)
    unit_vectors: Tensor = drawn / drawn.norm(dim=0)
    return unit_vectors
