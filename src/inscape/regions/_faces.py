"""The half-spaces that bound a point's cell: one for each unit that switches at its border."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.piecewise.graph.piecewise_ops import PiecewiseOp

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

#: A slope below this fraction of a unit's values is rounding: the unit is constant in the cell.
CONSTANT = 1e-12
#: Bytes for each entry of the half-spaces: a linear programme holds some thirty copies of them.
PROGRAMME = 240
#: Half-spaces closer than this, in direction and relative distance, are one.
SAME = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Faces:
    """Half-spaces normals (y - point) <= distances with normals of length one.

    ``switching_units`` has the columns face, operation, unit and successor: the entry of a window
    that is the maximum beyond the face, -1 where the unit has no window. Sides of a box have
    operation -1.
    """

    normals: Array
    distances: Array
    switching_units: Whole
    constant: int = 0

    @property
    def layers(self) -> Whole:
        """Return the operation that switches at each face, the first of several."""
        first = np.full(len(self.distances), np.iinfo(np.int64).max)
        np.minimum.at(first, self.switching_units[:, 0], self.switching_units[:, 1])
        return first

    def chosen(self, order: Whole) -> "Faces":
        """Return some of the faces, in this order."""
        place = np.full(len(self.distances), -1)
        place[order] = np.arange(len(order))
        switching_units = self.switching_units[place[self.switching_units[:, 0]] >= 0].copy()
        switching_units[:, 0] = place[switching_units[:, 0]]
        switching_units = switching_units[np.lexsort(switching_units.T[::-1])]
        return Faces(
            normals=self.normals[order],
            distances=self.distances[order],
            switching_units=switching_units,
            constant=self.constant,
        )


def _faces(
    d: int, normals: list[Array], slacks: list[Array], switching_units: list[Whole], constant: int
) -> Faces:
    names = np.concatenate([np.zeros((0, 3), np.int64), *switching_units])
    return Faces(
        normals=np.concatenate([np.zeros((0, d)), *normals]),
        distances=np.concatenate([np.zeros(0), *slacks]),
        switching_units=np.insert(names, 0, np.arange(len(names)), axis=1),
        constant=constant,
    )


def rows_of(
    op: PiecewiseOp, pattern: Tensor, slopes: Tensor, values: Tensor
) -> tuple[Array, Array, Whole]:
    """Return rows and slacks of row (y - point) <= slack, with the unit and its successor."""
    if op.windows is None:
        sign = torch.where(pattern.bool(), -1.0, 1.0).double()
        units = torch.arange(len(values))
        names = torch.stack([units, torch.full_like(units, -1)], 1)
        return (sign[:, None] * slopes).numpy(), (-sign * values).numpy(), names.numpy()
    winner = op.windows.gather(1, pattern.long()[:, None])
    unit, place = (op.windows != winner).nonzero(as_tuple=True)
    pairs = np.unique(torch.stack([unit, op.windows[unit, place]], 1).numpy(), axis=0)
    unit, successor = torch.from_numpy(pairs).unbind(1)
    winner = winner[unit, 0]
    rows = slopes[successor] - slopes[winner]
    size = slopes[successor].norm(dim=1) + slopes[winner].norm(dim=1)
    rows[rows.norm(dim=1) <= CONSTANT * size] = 0.0
    slack = values[winner] - values[successor]
    return rows.numpy(), slack.numpy(), pairs


def sizes_of(op: PiecewiseOp, names: Whole, sizes: Float64[Tensor, " m"]) -> Array:
    """Return the size of the summands of each half-space: for a window its largest entry."""
    largest = sizes if op.windows is None else sizes[op.windows].amax(1)
    chosen: Array = largest.numpy()[names[:, 0]]
    return chosen


def sides(box: tuple[Array, Array], point: Array) -> Faces:
    """Return the sides of a box as half-spaces around a point in it."""
    low, high = box
    d = len(point)
    axes = np.arange(d)
    names = np.stack([np.full(2 * d, -1), np.tile(axes, 2), np.full(2 * d, -1)], 1)
    normals = np.concatenate([-np.eye(d), np.eye(d)])
    return _faces(d, [normals], [np.concatenate([point - low, high - point])], [names], 0)


def together(first: Faces, second: Faces) -> Faces:
    """Return the union of two sets of half-spaces."""
    switching_units = second.switching_units.copy()
    switching_units[:, 0] += len(first.distances)
    return Faces(
        normals=np.concatenate([first.normals, second.normals]),
        distances=np.concatenate([first.distances, second.distances]),
        switching_units=np.concatenate([first.switching_units, switching_units]),
        constant=first.constant + second.constant,
    )


def merged(faces: Faces, scale: float) -> Faces:
    """Return the half-spaces without duplicates; the switching units of duplicates are united."""
    order = np.argsort(faces.distances, kind="stable")
    normals, distances = faces.normals[order], faces.distances[order]
    ends = np.searchsorted(distances, distances + SAME * scale, side="right")
    stands = np.arange(len(order))
    for k, end in enumerate(ends.tolist()):
        if stands[k] == k and end > k + 1:
            near = np.abs(normals[k + 1 : end] - normals[k]).max(1) <= SAME
            stands[k + 1 : end][near & (stands[k + 1 : end] == np.arange(k + 1, end))] = k
    back = np.empty_like(order)
    back[order] = order[stands]
    switching_units = faces.switching_units.copy()
    switching_units[:, 0] = back[switching_units[:, 0]]
    renumbered = Faces(
        normals=faces.normals,
        distances=faces.distances,
        switching_units=switching_units,
        constant=faces.constant,
    )
    return renumbered.chosen(np.unique(back))
