"""Neighbours: which points a network takes for alike, and which only look alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Float64, Int64, Real
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import PROPORTION, Range
from inscape.kernels.gaussian_process.covariance import squared_distances
from inscape.kernels.tangent import inputs
from inscape.kernels.tangent_kernel import MEMORY, TangentKernel, tangent_kernel

#: Bytes for each query and point that sorting, ranking and distances take.
SORTED = 400


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Neighbours(Result):
    """The nearest points of each query, by the tangent kernel and by distance.

    ``by_kernel`` and ``by_distance`` hold numbers of points, nearest first; ``cosines`` and
    ``distances`` belong to them. ``agreement`` is the share of one list that is in the other,
    ``correlation`` that of the ranks of all points (Spearman's).
    """

    range: ClassVar[Range] = PROPORTION

    by_kernel: Int64[Tensor, "q k"]
    cosines: Float[Tensor, "q k"]
    by_distance: Int64[Tensor, "q k"]
    distances: Float64[Tensor, "q k"]
    agreement: Float64[Tensor, " q"]
    correlation: Float64[Tensor, " q"]
    chance: float
    points: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each query and place in its lists."""
        for q in range(len(self.agreement)):
            for k in range(self.by_kernel.shape[1]):
                yield {
                    "query": q,
                    "place": k + 1,
                    "by_kernel": int(self.by_kernel[q, k]),
                    "cosine": float(self.cosines[q, k]),
                    "by_distance": int(self.by_distance[q, k]),
                    "distance": float(self.distances[q, k]),
                }

    def summary(self) -> Summary:
        """Return the mean share of the nearest by kernel that are among the nearest by distance."""
        count = self.by_kernel.shape[1]
        basis = f"{count} nearest of {self.points}, {len(self.agreement)} queries"
        basis += f"; by chance {self.chance:.2g}"
        return Summary(value=float(self.agreement.mean()), kind="exact", basis=basis)


@instrument(
    reads="parameters",
    larger="closer to plain distance",
    cost="seconds",
    work=lambda n, c: 3.0 * c * min(n, 256) + min(n, 256) ** 2 * c / 100,
    meaning="Of the nearest points by the network's gradients, a fraction of {value} is also "
    "nearest by distance, on average.",
    cites="charpiat2019input; courtois2025path, section 5.1.2",
    by_default=False,
    discrete=True,
)
def neighbours(
    model: nn.Module,
    x: Real[Tensor, "n *d"],
    *,
    queries: Real[Tensor, "q *d"] | None = None,
    count: int = 5,
    memory: int = MEMORY,
) -> Neighbours | NotApplicable:
    r"""Find the nearest points by the normalised tangent kernel and by Euclidean distance.

    .. math:: \cos(x, x') = \frac{\mathrm{tr} K(x, x')}
              {\sqrt{\mathrm{tr} K(x, x) \, \mathrm{tr} K(x', x')}}

    A step of gradient descent that is taken for one point moves the outputs most at those that are
    near by this cosine, in proportion to their gradients. Exact up to rounding; of equally near
    points the first in ``x`` comes first. Distances between whole numbers are those of the numbers
    as they are, though they may be names of words. Costs one trace of a tangent kernel.

    Args:
        model: A module in eval mode; its trainable parameters count.
        x: Points among which neighbours are sought, such as the training data.
        queries: Points whose neighbours are sought; by default each of ``x`` among the others.
        count: Neighbours of each query.
        memory: Bytes that gradients of points, then lists of neighbours in the making, may take
            beside the kernel itself.
    """
    checks.in_eval_mode(model)
    inputs.points(x)
    checks.whole(1, count=count)
    among = len(x) - (queries is None)
    if count > among:
        raise ValueError(
            f"count must be at most the {among} points that a query has beside it, found {count}: "
            "lower count or pass more points."
        )
    others = None if queries is None else x
    asked = x if queries is None else queries
    kernel = tangent_kernel(
        model,
        asked,
        others=others,
        outputs="trace",
        normalised=True,
        projections=0,
        memory=memory,
    )
    if not isinstance(kernel, TangentKernel):
        return NotApplicable(what="neighbours", reason=kernel.reason)
    cosines = kernel.kernel.detach()
    rows = max(1, memory // (SORTED * len(x)))
    parts = []
    for first in range(0, len(asked), rows):
        some = slice(first, first + rows)
        distances = squared_distances(asked[some].double(), x.double()).sqrt_()
        own = torch.arange(first, first + len(distances)) if queries is None else None
        parts.append(_ranked(cosines[some], distances, count, own))
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[Neighbours]) -> Neighbours:
    """Return the neighbours of all queries of several parts."""
    names = [field.name for field in fields(Neighbours) if field.name not in ("chance", "points")]
    whole: dict[str, Any] = {name: torch.cat([getattr(p, name) for p in parts]) for name in names}
    return replace(parts[0], **whole)


def _ranked(
    cosines: Float[Tensor, "q n"],
    distances: Float64[Tensor, "q n"],
    count: int,
    own: Int64[Tensor, " q"] | None,
) -> Neighbours:
    """Return the neighbours of some queries; ``own`` are their numbers where they are points."""
    among = cosines.shape[1]
    if own is not None:  # a point is no neighbour of its own: it goes to the end
        among -= 1
        cosines = cosines.scatter(1, own[:, None].to(cosines.device), -torch.inf)
        distances.scatter_(1, own[:, None].to(distances.device), torch.inf)
    near = cosines.sort(dim=1, descending=True, stable=True)
    close = distances.sort(dim=1, stable=True)
    by_kernel, by_distance = near.indices[:, :count], close.indices[:, :count]
    shared = (by_kernel[:, :, None] == by_distance[:, None]).any(2)
    return Neighbours(
        by_kernel=by_kernel,
        cosines=near.values[:, :count],
        by_distance=by_distance,
        distances=close.values[:, :count],
        agreement=shared.double().mean(1),
        correlation=_rank_correlation(-cosines.double(), distances, among),
        chance=count / among,
        points=cosines.shape[1],
    )


def _rank_correlation(
    one: Float64[Tensor, "q n"], two: Float64[Tensor, "q n"], among: int
) -> Float64[Tensor, " q"]:
    """Return the correlation of ranks, 0 where all are equal; a point's own (the last) is left."""
    from scipy.stats import rankdata

    ranks = [torch.from_numpy(rankdata(part.cpu().numpy(), axis=1)) for part in (one, two)]
    kept = [part.where(part <= among, torch.nan) for part in ranks]
    kept = [part - part.nanmean(1, keepdim=True) for part in kept]
    left, right = (part.nan_to_num(0.0) for part in kept)
    size = left.norm(dim=1) * right.norm(dim=1)
    found: Tensor = (left * right).sum(1) / size
    return found.where(size > 0, 0.0)
