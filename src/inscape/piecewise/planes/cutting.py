"""Cut a polygon of a plane at every kink of a network, layer by layer."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.anytime import finished
from inscape.piecewise.graph.affine_maps import AffineMap, affine_steps
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.planes.arrangement import Arrangement
from inscape.piecewise.planes.budget import CutBudget, Ending
from inscape.piecewise.planes.coefficients import (
    ChainCoefficients,
    Coefficients,
    GraphCoefficients,
    NearbyPoints,
)
from inscape.piecewise.planes.graph_coefficients import ForwardCoefficients
from inscape.piecewise.planes.maxima import cut_by_maxima
from inscape.piecewise.planes.patterns import PatternHistory
from inscape.piecewise.planes.resolution import Rounding
from inscape.piecewise.planes.sign_kernels import ROUNDING
from inscape.piecewise.planes.signs import cut_by_signs
from inscape.piecewise.planes.subdivision import Subdivision, polygon
from inscape.piecewise.planes.threads import Workers
from inscape.piecewise.stepping import within

Array = npt.NDArray[Any]

#: A window with corners nearer to its centre than this fraction of its distance from zero is small.
CLOSE = 2.0**-4

#: Points that differ by less than this fraction of their size have functions of the same size.
SAME = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """A polygon cut into the cells of a network, in coordinates from -1 to 1 of its window.

    ``maps`` are the outputs on each cell: coefficients for x, for y and constant; ``noise`` is
    their rounding error, and ``rounding`` that of the kinks.
    """

    plane: Subdivision
    history: PatternHistory
    maps: Array
    noise: Array
    rounding: Rounding
    ended_by: Ending
    threads: int


def cells(
    net: Piecewise,
    points: Float64[Tensor, "3 *d"],
    corners: Array,
    *,
    budget: CutBudget,
    threads: int = 1,
    steps: Sequence[AffineMap] | None = None,
) -> Cells:
    """Return all cells of a network in a convex polygon.

    ``points`` are the inputs at (0, 0), (1, 0) and (0, 1) of the window's coordinates; ``steps``
    the affine maps between the piecewise-linear operations where they are known already.
    """
    axes = points[1:] - points[:1]
    return finished(
        cutting(net, points, axes, corners, budget=budget, threads=threads, steps=steps)
    )


def cutting(
    net: Piecewise,
    points: Float64[Tensor, "3 *d"],
    axes: Float64[Tensor, "2 *d"],
    corners: Array,
    *,
    budget: CutBudget,
    threads: int = 1,
    steps: Sequence[AffineMap] | None = None,
    near: NearbyPoints | None = None,
    watched: bool = False,
    on_round: Callable[[str, int], None] = lambda place, faces: None,
) -> Generator[None, None, Cells]:
    """Return all cells of a network in a convex polygon, cut in small steps.

    ``axes`` are the differences of the points, which those of a small window would round; ``near``
    are the points of ``near_of`` where they are known already. The steps are small where the work
    is ``watched``.
    """
    near = near or near_of(points, corners)
    work = _cut(net, points, axes, corners, budget, threads, steps, near, watched, on_round)
    return within(_one_thread, work)


def _cut(
    net: Piecewise,
    points: Float64[Tensor, "3 *d"],
    axes: Float64[Tensor, "2 *d"],
    corners: Array,
    budget: CutBudget,
    threads: int,
    steps: Sequence[AffineMap] | None,
    near: NearbyPoints,
    watched: bool,
    on_round: Callable[[str, int], None],
) -> Generator[None, None, Cells]:
    history, workers = PatternHistory(), Workers(threads)
    try:
        if steps is None:
            steps = yield from affine_steps(net, budget.memory // 4)
        source = yield from _source(net, points, axes, near, history, budget, steps)
        work = Arrangement(source, history, workers, budget, polygon(corners), watched=watched)
        for at, op in enumerate(net.ops):
            if work.ended_by != "complete":
                work.plane = work.plane.compact()
            yield from source.reached(at)
            if op.windows is None:
                yield from cut_by_signs(work, at)
            else:
                yield from cut_by_maxima(work, at, op.windows.numpy(), op.sign)
            on_round(op.place, work.plane.faces)
        yield from source.reached(len(net.ops))
        maps = yield from work.coefficients(len(net.ops))
        noise = ROUNDING * np.sqrt(maps[:, 3] + np.abs(maps[:, :3]).sum(1) ** 2)
        return Cells(
            plane=work.plane,
            history=history,
            maps=maps[:, :3],
            noise=noise,
            rounding=work.rounding,
            ended_by=work.ended_by,
            threads=threads,
        )
    finally:
        workers.close()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Give torch one thread: else its sums depend on the batch size."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _source(
    net: Piecewise,
    points: Float64[Tensor, "3 *d"],
    axes: Float64[Tensor, "2 *d"],
    near: NearbyPoints,
    history: PatternHistory,
    budget: CutBudget,
    steps: Sequence[AffineMap] | None,
) -> Generator[None, None, Coefficients]:
    """Return the coefficients by the method that suits the graph: a chain where it is one."""
    if steps is not None:
        graph = GraphCoefficients(net, points, near, history)
        yield from graph.measured()
        return ChainCoefficients(steps, net, graph, budget.memory)
    forward = ForwardCoefficients(net, points, near, history)
    yield from forward.measured()
    forward.prepare(axes, budget.memory // 4)
    return forward


def near_of(
    points: Float64[Tensor, "3 *d"], corners: Array, known: NearbyPoints | None = None
) -> NearbyPoints:
    """Return the corners and the centre of the window, and these with some signs turned.

    Of a window that is small relative to its distance from zero, those of its centre are returned.
    What is ``known`` is returned where its points are the same but for rounding.
    """
    at_corner = torch.from_numpy(corners).to(points)
    shape = [-1, *[1] * (points.ndim - 1)]
    u, v = (at_corner[:, k].reshape(shape) for k in range(2))
    x = points[:1] + u * (points[1:2] - points[:1]) + v * (points[2:] - points[:1])
    if float((x - points[:1]).flatten(1).norm(dim=1).max()) <= CLOSE * float(points[0].norm()):
        x = points[:1]
    signs = torch.empty_like(x).bernoulli_(0.5, generator=torch.Generator().manual_seed(0))
    corner = x if len(x) > 1 else x[:0]
    rows = torch.cat([corner, points[:1], torch.zeros_like(x[:1]), x * (2 * signs - 1)])
    if known is not None and known.rows.shape == rows.shape:
        off = float((known.rows - rows).norm())
        return known if off <= SAME * float(rows.norm()) else NearbyPoints(rows)
    return NearbyPoints(rows)
