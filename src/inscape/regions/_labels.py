"""Which points of a grid belong together: neighbours with equal coefficients, joined."""

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
    ones = np.ones(len(edges), dtype=bool)
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(count, count))
    _, found = connected_components(graph, directed=False)
    _, first, kind = np.unique(found, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return torch.from_numpy(rank[kind.reshape(-1)])


class Neighbours:
    """Compares a row of the grid with itself and with the row before it.

    ``"4"``: left and up; ``"8"``: the two diagonals of the row before as well; ``"row"``: left,
    and in the row before everything from the diagonal on the left to the right end, as in
    Sattelberg's figure 6.12.
    """

    def __init__(self, reach: str, width: int, tolerance: float, directions: Tensor) -> None:
        self.reach, self.width, self.tolerance = reach, width, tolerance
        self._directions = directions
        self._before: Tensor | None = None
        self._at = 0
        self._shadows: list[Tensor] = []
        self._places: list[Pairs] = []

    def pairs(self, row: Float64[Tensor, "p k"]) -> Pairs:
        """Return the pairs of points that are alike, of the next row of coefficients."""
        place = self.width * self._at + np.arange(self.width)
        found = [self._alike(row[1:], row[:-1], place[1:], place[:-1])]
        if self._before is not None:
            old, above = self._before, place - self.width
            found.append(self._alike(row, old, place, above))
            if self.reach == "8":
                found.append(self._alike(row[1:], old[:-1], place[1:], above[:-1]))
                found.append(self._alike(row[:-1], old[1:], place[:-1], above[1:]))
            elif self.reach == "row":
                found.append(self._far(row, old, place))
        self._before, self._at = row, self._at + 1
        pairs = np.concatenate(found)
        self._keep(row, np.setdiff1d(place, pairs[:, 0]))
        return pairs

    def _keep(self, row: Float64[Tensor, "p k"], new: Pairs) -> None:
        """Keep the shadows of points that are like none before: the firsts of all components."""
        points = row[torch.from_numpy(new % self.width)]
        shadows = points @ self._directions
        self._shadows.append(torch.cat([shadows, points.norm(dim=1, keepdim=True)], 1))
        self._places.append(new)

    def _alike(self, one: Tensor, two: Tensor, at: Pairs, by: Pairs) -> Pairs:
        near = self.tolerance * torch.maximum(one.norm(dim=1), two.norm(dim=1))
        same = ((one - two).norm(dim=1) <= near).numpy()
        return np.stack([at[same], by[same]], 1)

    def _far(self, row: Tensor, old: Tensor, place: Pairs) -> Pairs:
        """Compare with the rest of the row before: by products first, which lose some digits."""
        ours, theirs = row.square().sum(1)[:, None], old.square().sum(1)
        square = ours + theirs - 2 * row @ old.T
        slack = 1.001 * self.tolerance**2 + 4 * row.shape[1] * torch.finfo(row.dtype).eps
        reach = torch.ones_like(square, dtype=torch.bool).triu(-1)
        close = (reach & (square <= slack * torch.maximum(ours, theirs))).nonzero()
        found = []
        for some in torch.tensor_split(close, 1 + len(close) // 256):
            a, b = some.unbind(1)
            pairs = self._alike(row[a], old[b], place[a.numpy()], place[b.numpy()] - self.width)
            found.append(pairs)
        return np.concatenate([np.zeros((0, 2), np.int64), *found])

    def distinct(self, labels: Int64[Tensor, " n"]) -> int:
        """Return how many different maps the components have, by the shadows of their first.

        Shadows on random directions estimate the distance of two maps to about an eighth of it:
        equal maps are apart by rounding, which is far below any tolerance.
        """
        _, first = np.unique(labels.numpy(), return_index=True)
        rows = np.searchsorted(np.concatenate(self._places), first)
        kinds = torch.cat(self._shadows)[torch.from_numpy(rows)]
        order = kinds[:, 0].argsort()
        kinds, place = kinds[order], np.arange(len(order))
        size = len(self._directions)
        found: list[Pairs] = []
        for step in range(1, len(kinds)):
            near = self.tolerance * torch.maximum(kinds[step:, -1], kinds[:-step, -1])
            some = ((kinds[step:, 0] - kinds[:-step, 0]).abs() <= near).nonzero()[:, 0]
            if not len(some):
                break
            gaps = kinds[some + step, :-1] - kinds[some, :-1]
            same = some[(size * gaps.square().mean(1)).sqrt() <= near[some]].numpy()
            found.append(np.stack([place[same + step], place[same]], 1))
        return int(joined(len(kinds), found).max()) + 1


def directions(size: int) -> Float64[Tensor, "size trials"]:
    """Return random directions of length one, the same every time."""
    draw = torch.Generator().manual_seed(0)
    some = torch.randn(size, TRIALS, generator=draw, dtype=torch.float64)
    found: Tensor = some / some.norm(dim=0)
    return found
