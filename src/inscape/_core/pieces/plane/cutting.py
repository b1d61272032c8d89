"""Cut a polygon of a plane at every place where a network bends, layer by layer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.pieces.affine import affine_steps
from inscape._core.pieces.piecewise import Piecewise
from inscape._core.pieces.plane.history import History
from inscape._core.pieces.plane.maxima import cut_by_maxima
from inscape._core.pieces.plane.signs import cut_by_signs
from inscape._core.pieces.plane.sources import Chain, Graph, Source
from inscape._core.pieces.plane.subdivision import Subdivision, Workers, polygon
from inscape._core.pieces.plane.work import Budget, Work

Array = npt.NDArray[Any]

#: Values nearer to zero than this many roundings of their size are zero.
ROUNDINGS = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """A polygon cut into the cells of a network, in coordinates from -1 to 1 of its window.

    ``maps`` are the outputs on each cell: coefficients for x, for y and constant.
    """

    plane: Subdivision
    history: History
    maps: Array
    complete: bool


def cells(
    net: Piecewise,
    points: Float64[Tensor, "3 *d"],
    corners: Array,
    *,
    budget: Budget,
    threads: int = 1,
    on_round: Callable[[str, int], None] = lambda place, faces: None,
) -> Cells:
    """Return all cells of a network in a convex polygon.

    ``points`` are the inputs at (0, 0), (1, 0) and (0, 1) of the window's coordinates.
    """
    history, steps = History(), affine_steps(net)
    source: Source = (
        Graph(net, points, history) if steps is None else Chain(steps, net, points, history)
    )
    workers = Workers(threads)
    try:
        work = Work(source, history, workers, budget, polygon(corners))
        for at, bend in enumerate(net.bends):
            tolerance = _tolerance(net, points, corners, at)
            work.until = budget.share(at, len(net.bends))
            if bend.windows is None:
                cut_by_signs(work, at, tolerance)
            else:
                cut_by_maxima(work, at, bend.windows.numpy(), tolerance, bend.sign)
            on_round(bend.place, work.plane.faces)
        maps = work.coefficients(len(net.bends))
        return Cells(plane=work.plane, history=history, maps=maps, complete=work.complete)
    finally:
        workers.close()


def _tolerance(net: Piecewise, points: Float64[Tensor, "3 *d"], corners: Array, at: int) -> Array:
    """Return below which size the value of a function is rounding.

    The size of a function is the largest that it has at the corners, and at these and at the
    origin with some signs of the input turned: so a small window far from zero is judged by the
    numbers that go into its values.
    """
    at_corner = torch.from_numpy(corners).to(points)
    shape = [-1, *[1] * (points.ndim - 1)]
    u, v = (at_corner[:, k].reshape(shape) for k in range(2))
    x = points[:1] + u * (points[1:2] - points[:1]) + v * (points[2:] - points[:1])
    signs = torch.empty_like(x).bernoulli_(0.5, generator=torch.Generator().manual_seed(0))
    near = torch.cat([x, points[:1], torch.zeros_like(x[:1]), x * (2 * signs - 1)])
    size = net.functions(near, at).abs().amax(0).numpy()
    return size * ROUNDINGS * np.finfo(np.float64).eps
