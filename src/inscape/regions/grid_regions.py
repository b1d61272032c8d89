"""Grid regions: regions of a plane counted on a grid of points, by Jacobian or by pattern."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import (
    NotApplicable,
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    checks,
    instrument,
)
from inscape._core.anytime import anytime, meanwhile, stoppable
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.jacobians import MEMORY, Probe, chunks, jacobians, probe
from inscape.functional.precision import in_precision
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines.evaluation import SegmentEvaluation
from inscape.piecewise.planes.frame import Frame
from inscape.regions._grid_components import GridNeighbours, Pairs, directions, joined
from inscape.regions._slice import Slice, rectangle
from inscape.runtime.progress import progress


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GridRegions(Result):
    """The region of each point of a grid: ``labels[i, j]`` at ``u[j]``, ``v[i]`` of the plane.

    A region that is thin against the grid may come out in several parts: ``count`` counts the
    parts, ``distinct`` the different maps (or patterns) among them. ``exact`` is the true number
    of regions of that rectangle where the caller knows it.
    """

    range: ClassVar[Range] = NONNEGATIVE

    labels: Int64[Tensor, "p p"]
    u: Float64[Tensor, " p"]
    v: Float64[Tensor, " p"]
    origin: Float64[Tensor, "*d"]
    axes: Float64[Tensor, "2 *d"]
    distinct: int
    method: str
    tolerance: float
    neighbours: str
    intercepts: bool
    dtype: str
    weights: str | None
    exact: int | None

    @property
    def count(self) -> int:
        """Return how many parts the grid shows, as the method labels them."""
        return int(self.labels.max()) + 1

    @property
    def missed(self) -> float | None:
        """Return the fraction of the exact number of regions that the grid does not show."""
        return None if self.exact is None else 1.0 - self.distinct / self.exact

    def rows(self) -> Iterator[Row]:
        """Yield one row for each region: its fraction of the grid."""
        sizes = torch.bincount(self.labels.flatten()).tolist()
        for label, size in enumerate(sizes):
            yield {"region": label, "points": size, "fraction": size / self.labels.numel()}

    def summary(self) -> Summary:
        """Return the number of different regions that the grid shows."""
        p = len(self.u)
        known = "" if self.missed is None else f", {self.missed:.1%} of {self.exact} missed"
        basis = f"{p} x {p} grid by {self.method}{known}"
        return Summary(value=float(self.distinct), kind="lower bound", basis=basis)


@instrument(
    reads="function",
    larger="more linear regions",
    cost="seconds",
    work=lambda n, c: 64 * 64 * (2 + 2 * c),
    setup=0.5,
    meaning="On a coarse grid over a plane through the data, {value} linear regions can be seen.",
    cites="sattelberg2026linearity, section 6.3",
    least_rows=3,
    by_default=False,
)
@anytime
def grid_regions(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    plane: Frame | None = None,
    domain: Float[Tensor, "k 2"] | None = None,
    grid: int = 64,
    method: Literal["jacobian", "pattern"] = "jacobian",
    tolerance: float = 1e-6,
    neighbours: Literal["4", "8", "row"] = "row",
    intercepts: bool = True,
    dtype: Literal["float16", "float32", "float64"] = "float64",
    weights: Literal["float16", "float32", "float64"] | None = None,
    exact: int | None = None,
    memory: int = MEMORY,
) -> Iterator[GridRegions | NotApplicable]:
    r"""Count the linear regions of a plane that a grid of points shows.

    .. math:: x_{ij} \sim x_{kl} \Leftrightarrow \lVert (J, y)_{ij} - (J, y)_{kl} \rVert \leq
              \varepsilon \max(\lVert (J, y)_{ij} \rVert, \lVert (J, y)_{kl} \rVert)

    ``"jacobian"`` takes any module: neighbours whose affine maps agree up to a tolerance belong
    together, and so do chains of them. ``"pattern"`` reads the activation patterns of a
    piecewise-linear network: equal patterns are one region, wherever they lie. Either misses what
    is thinner than the grid, so that the number of different regions is a lower bound; slopes
    also miss kinks that change them by less than the tolerance, and show one region as several
    where it is too thin for its points to be neighbours. ``grid_regions.refine`` yields coarser
    grids first, with an eighth, a quarter and a half of the points along each side.

    Costs a backward pass for each output and point of the grid; comparing takes :math:`O(p^3)` on a
    :math:`p \times p` grid with ``"row"`` against :math:`O(p^4)` for all pairs (S17), and
    :math:`O(p^2)` with ``"4"``, ``"8"``.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points: those of a two-dimensional input space give the window, of any other the first
            three (not on a line) the plane.
        plane: Plane of the grid, e.g. ``through(points)``; by default the whole of a
            two-dimensional input space, or the plane through the first three points.
        domain: Corners in the plane's coordinates; the grid lies on the rectangle around them. By
            default a box around the points, a tenth wider.
        grid: Points along each side.
        method: What tells regions apart.
        tolerance: Largest distance between equal maps, relative to the larger of the two.
        neighbours: ``"4"`` compares with the points on the left and above, ``"8"`` also with both
            diagonals, ``"row"`` with the left and the row above from its diagonal to its end.
        intercepts: Whether the constants of the maps are compared too, not their slopes only.
        dtype: Precision of the maps; a module is converted on a copy.
        weights: Precision to which the module's weights are first rounded.
        exact: The true number of regions, to show how many are missed.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> square = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
    >>> grid_regions(torch.abs, square, grid=10, exact=4).summary().basis
    '10 x 10 grid by jacobian, 0.0% of 4 missed'
    """
    checks.whole(2, grid=grid)
    checks.at_least(0, tolerance=tolerance)
    checks.whole(1, memory=memory, **({} if exact is None else {"exact": exact}))
    checks.one_of(("jacobian", "pattern"), method=method)
    checks.one_of(("4", "8", "row"), neighbours=neighbours)
    f, x, _ = in_precision(f, x, dtype, weights=weights)
    if x[0].numel() < 2:
        yield NotApplicable(what="grid_regions", reason="a plane needs at least two inputs")
        return
    part = rectangle(x, plane, domain)
    by = _by_pattern if method == "pattern" else _by_jacobian
    result: GridRegions | None = None
    for size in _sizes(grid):
        try:
            steps = by(f, x, part, size, (tolerance, neighbours, intercepts), memory)
            labels, distinct = yield from meanwhile(steps, result)
        except UnsupportedModelError as error:
            if method != "pattern":
                raise
            yield NotApplicable(what="grid_regions", reason=str(error))
            return
        u, v = part.ticks(size)
        result = GridRegions(
            labels=labels,
            u=u,
            v=v,
            origin=part.frame.origin,
            axes=part.frame.axes,
            distinct=distinct,
            method=method,
            tolerance=float(tolerance),
            neighbours=neighbours,
            intercepts=intercepts,
            dtype=dtype,
            weights=weights,
            exact=exact,
        )
        yield result


def _sizes(grid: int) -> list[int]:
    """Return the points along a side of each grid: coarse ones first, if the caller may stop."""
    coarse = [grid // parts for parts in (8, 4, 2)] if stoppable() else []
    return [*(size for size in coarse if size >= 2), grid]


Settings = tuple[float, str, bool]
#: A step for each row of the grid; in the end the label of each point, and how many differ.
Labels = Generator[None, None, tuple[Tensor, int]]


def _by_jacobian(
    f: Function, x: Tensor, part: Slice, grid: int, settings: Settings, memory: int
) -> Labels:
    """Join neighbours on the grid whose affine maps agree, one row of the grid after another."""
    tolerance, neighbours, intercepts = settings
    probed = probe(f, x)
    probed.need_gradient()
    size = probed.outputs * (x[0].numel() + intercepts)
    compare = GridNeighbours(neighbours, grid, tolerance, directions(size))
    pairs: list[Pairs] = []
    u, v = part.ticks(grid)
    with progress(grid, label="rows of the grid") as bar:
        for at in v:
            rows = chunks(part.row(u, at), probed.rows(memory))
            maps = [_maps(probed, points, part.frame, x.dtype, intercepts) for points in rows]
            pairs.append(compare.pairs(torch.cat(maps)))
            bar.advance()
            yield
    labels = joined(grid * grid, pairs)
    return labels.reshape(grid, grid), compare.distinct(labels)


def _maps(
    probed: Probe, points: Tensor, frame: Frame, dtype: torch.dtype, intercepts: bool
) -> Float64[Tensor, "n k"]:
    """Return the Jacobians at some points, and the constants of the maps at the plane's origin."""
    x = points.to(dtype)
    slopes = jacobians(probed.f, x).detach().double()
    checks.finite(slopes.flatten(1).sum(1), "points of the grid")
    if not intercepts:
        return slopes.flatten(1)
    with torch.no_grad():
        values = probed.f(x.clone()).reshape(len(x), -1).double()
    moved = (points - frame.origin).flatten(1)
    constants = values - torch.einsum("ncd,nd->nc", slopes, moved)
    return torch.cat([slopes.flatten(1), constants], 1)


def _by_pattern(
    f: Function, x: Tensor, part: Slice, grid: int, settings: Settings, memory: int
) -> Labels:
    """Label the points of the grid by their activation patterns."""
    net = piecewise(f, x)
    u, v = part.ticks(grid)
    rows = SegmentEvaluation(net, x[:1], x[:1], memory).most
    kinds: dict[bytes, int] = {}
    labels: list[int] = []
    with progress(grid, label="rows of the grid") as bar:
        for at in v:
            for points in chunks(part.row(u, at).to(x.dtype).double(), rows):
                chosen = net.patterns(points)
                keys = (
                    np.concatenate([pattern.numpy() for pattern in chosen], 1) if chosen else None
                )
                names = [b""] * len(points) if keys is None else [_digest(key) for key in keys]
                labels += [kinds.setdefault(name, len(kinds)) for name in names]
            bar.advance()
            yield
    return torch.tensor(labels).reshape(grid, grid), len(kinds)


def _digest(pattern: npt.NDArray[np.integer[npt.NBitBase]]) -> bytes:
    """Return 16 bytes for an activation pattern: two patterns share them one time in 2**128."""
    return blake2b(pattern.tobytes(), digest_size=16).digest()
