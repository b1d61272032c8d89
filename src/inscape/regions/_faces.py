"""The half-spaces that hold a point's cell: one for each unit that could choose otherwise."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import BudgetError
from inscape._core.pieces.bends import Bend
from inscape._core.pieces.line_sizes import NOISE
from inscape._core.pieces.piecewise import Piecewise
from inscape._core.progress import progress
from inscape.regions._probing import affine_values, around

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

#: A slope below this share of a unit's values is rounding: the unit is constant in the cell.
CONSTANT = 1e-12
#: Half-spaces closer than this, in direction and relative distance, are one.
SAME = 1e-9
#: Bytes for each entry of the half-spaces: a linear programme holds some thirty copies of them.
PROGRAMME = 240


@dataclass(frozen=True, eq=False, kw_only=True)
class Faces:
    """Half-spaces normals (y - point) <= distances with normals of length one.

    ``makers`` has the columns face, bend, unit and rival: the entry of a window that would win
    beyond the face, -1 where the unit has no window. The sides of a box have bend -1.
    """

    normals: Array
    distances: Array
    makers: Whole
    constant: int = 0

    @property
    def layers(self) -> Whole:
        """Return the bend that made each face, the first of several."""
        first = np.full(len(self.distances), np.iinfo(np.int64).max)
        np.minimum.at(first, self.makers[:, 0], self.makers[:, 1])
        return first

    def chosen(self, order: Whole) -> "Faces":
        """Return some of the faces, in this order."""
        place = np.full(len(self.distances), -1)
        place[order] = np.arange(len(order))
        makers = self.makers[place[self.makers[:, 0]] >= 0].copy()
        makers[:, 0] = place[makers[:, 0]]
        makers = makers[np.lexsort(makers.T[::-1])]
        return Faces(
            normals=self.normals[order],
            distances=self.distances[order],
            makers=makers,
            constant=self.constant,
        )


def half_spaces(net: Piecewise, point: Float64[Tensor, "*d"], memory: int) -> Faces:
    """Return a half-space for each unit that is not constant in the cell of a point."""
    patterns = net.patterns(point[None])
    _check_size(net, patterns, memory)
    normals, slacks, makers, constant = [], [], [], 0
    with progress(len(net.bends), label="half-spaces") as bar:
        for at, one in enumerate(net.bends):
            found = affine_values(net, point, patterns, at=at, memory=memory)
            rows, slack, names = _rows(one, patterns[at][0], *found)
            length = np.linalg.norm(rows, axis=1)
            noise = NOISE * _sizes(one, names, around(net, point, patterns, at))
            moves = (length > CONSTANT * np.abs(slack)) & (length > noise)
            constant += int((~moves).sum())
            normals.append(rows[moves] / length[moves, None])
            slacks.append(np.maximum(slack[moves] / length[moves], 0.0))
            makers.append(np.insert(names[moves], 0, at, axis=1))
            bar.advance()
    return _faces(net.inputs, normals, slacks, makers, constant)


def _faces(
    d: int, normals: list[Array], slacks: list[Array], makers: list[Whole], constant: int
) -> Faces:
    names = np.concatenate([np.zeros((0, 3), np.int64), *makers])
    return Faces(
        normals=np.concatenate([np.zeros((0, d)), *normals]),
        distances=np.concatenate([np.zeros(0), *slacks]),
        makers=np.insert(names, 0, np.arange(len(names)), axis=1),
        constant=constant,
    )


def _check_size(net: Piecewise, patterns: list[Tensor], memory: int) -> None:
    rows = 0
    for one, pattern in zip(net.bends, patterns, strict=True):
        rows += pattern.shape[1] * (1 if one.windows is None else one.windows.shape[1] - 1)
    size = PROGRAMME * rows * net.inputs
    if size > memory:
        raise BudgetError(
            f"the half-spaces must fit into {memory / 2**30:.2g} GiB, but {rows} of them in "
            f"{net.inputs} dimensions take {size / 2**30:.2g} GiB: raise memory, or cut the cell "
            "by a line or a plane (line_regions, plane_regions)."
        )


def _rows(one: Bend, pattern: Tensor, slopes: Tensor, values: Tensor) -> tuple[Array, Array, Whole]:
    """Return rows and slacks of row (y - point) <= slack, with the unit and its rival."""
    if one.windows is None:
        sign = torch.where(pattern.bool(), -1.0, 1.0).double()
        units = torch.arange(len(values))
        names = torch.stack([units, torch.full_like(units, -1)], 1)
        return (sign[:, None] * slopes).numpy(), (-sign * values).numpy(), names.numpy()
    winner = one.windows.gather(1, pattern.long()[:, None])
    unit, place = (one.windows != winner).nonzero(as_tuple=True)
    pairs = np.unique(torch.stack([unit, one.windows[unit, place]], 1).numpy(), axis=0)
    unit, rival = torch.from_numpy(pairs).unbind(1)
    winner = winner[unit, 0]
    rows = slopes[rival] - slopes[winner]
    size = slopes[rival].norm(dim=1) + slopes[winner].norm(dim=1)
    rows[rows.norm(dim=1) <= CONSTANT * size] = 0.0
    slack = values[winner] - values[rival]
    return rows.numpy(), slack.numpy(), pairs


def _sizes(one: Bend, names: Whole, sizes: Float64[Tensor, " m"]) -> Array:
    """Return what the row of each half-space is summed from: for a window its largest entry."""
    largest = sizes if one.windows is None else sizes[one.windows].amax(1)
    found: Array = largest.numpy()[names[:, 0]]
    return found


def sides(box: tuple[Array, Array], point: Array) -> Faces:
    """Return the sides of a box as half-spaces around a point in it."""
    low, high = box
    d = len(point)
    axes = np.arange(d)
    names = np.stack([np.full(2 * d, -1), np.tile(axes, 2), np.full(2 * d, -1)], 1)
    normals = np.concatenate([-np.eye(d), np.eye(d)])
    return _faces(d, [normals], [np.concatenate([point - low, high - point])], [names], 0)


def together(one: Faces, two: Faces) -> Faces:
    """Return all half-spaces of both."""
    makers = two.makers.copy()
    makers[:, 0] += len(one.distances)
    return Faces(
        normals=np.concatenate([one.normals, two.normals]),
        distances=np.concatenate([one.distances, two.distances]),
        makers=np.concatenate([one.makers, makers]),
        constant=one.constant + two.constant,
    )


def merged(faces: Faces, scale: float) -> Faces:
    """Return the half-spaces without doubles; one that stays has the makers of all of them."""
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
    makers = faces.makers.copy()
    makers[:, 0] = back[makers[:, 0]]
    kept = Faces(
        normals=faces.normals,
        distances=faces.distances,
        makers=makers,
        constant=faces.constant,
    )
    return kept.chosen(np.unique(back))
