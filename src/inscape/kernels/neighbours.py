"""Nearest neighbours by the tangent kernel, compared with those by Euclidean distance."""

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

#: Bytes per query and point for sorting, ranking and distances.
SORTED = 400


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Neighbours(Result):
    """The nearest points of each query, by the tangent kernel and by distance.

    ``by_kernel`` and ``by_distance`` hold indices of points, nearest first, with their ``cosines``
    and ``distances``. ``agreement`` is the fraction of one list that is in the other,
    ``correlation`` Spearman's rank correlation over all points.
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
        """Yield one row for each query and rank."""
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
        """Return the mean fraction of neighbours by kernel that are neighbours by distance."""
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
    r"""Return the nearest points by the normalised tangent kernel and by Euclidean distance.

    .. math:: \cos(x, x') = \frac{\mathrm{tr} K(x, x')}
              {\sqrt{\mathrm{tr} K(x, x) \, \mathrm{tr} K(x', x')}}

    A step of gradient descent on one point changes the outputs most at points of large cosine,
    relative to their gradient norms. Exact up to rounding; ties are in the order of ``x``. Integers
    such as token ids are compared by their values. Costs one trace of a tangent kernel.

    Args:
        model: A module in eval mode; its trainable parameters count.
        x: Candidate neighbours, such as the training set.
        queries: Points whose neighbours are returned; by default each of ``x`` among the others.
        count: Neighbours of each query.
        memory: Bytes for gradients, then for sorting, beside the kernel itself.
    """
    checks.in_eval_mode(model)
    inputs.check_points(x)
    checks.whole(1, count=count)
    among = len(x) - (queries is None)
    if count > among:
        raise ValueError(
            f"count must be at most the {among} points that a query has beside it, found {count}: "
            "lower count or pass more points."
        )
    others = None if queries is None else x
    query_points = x if queries is None else queries
    kernel = tangent_kernel(
        model,
        query_points,
        others=others,
        outputs="trace",
        normalised=True,
        projections=0,
        memory=memory,
    )
    if not isinstance(kernel, TangentKernel):
        return NotApplicable(what="neighbours", reason=kernel.reason)
    cosines = kernel.kernel.detach()
    batch_size = max(1, memory // (SORTED * len(x)))
    parts = []
    for first in range(0, len(query_points), batch_size):
        batch = slice(first, first + batch_size)
        distances = squared_distances(query_points[batch].double(), x.double()).sqrt_()
        self_index = torch.arange(first, first + len(distances)) if queries is None else None
        parts.append(_ranked(cosines[batch], distances, count, self_index))
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[Neighbours]) -> Neighbours:
    """Return the concatenated neighbours of several batches of queries."""
    names = [field.name for field in fields(Neighbours) if field.name not in ("chance", "points")]
    columns: dict[str, Any] = {name: torch.cat([getattr(p, name) for p in parts]) for name in names}
    return replace(parts[0], **columns)


def _ranked(
    cosines: Float[Tensor, "q n"],
    distances: Float64[Tensor, "q n"],
    count: int,
    self_index: Int64[Tensor, " q"] | None,
) -> Neighbours:
    """Return the neighbours of some queries; ``self_index`` are their indices in ``x``, if any."""
    among = cosines.shape[1]
    if self_index is not None:  # a point is not its own neighbour: it is ranked last
        among -= 1
        cosines = cosines.scatter(1, self_index[:, None].to(cosines.device), -torch.inf)
        distances.scatter_(1, self_index[:, None].to(distances.device), torch.inf)
    sorted_cosines = cosines.sort(dim=1, descending=True, stable=True)
    sorted_distances = distances.sort(dim=1, stable=True)
    by_kernel, by_distance = sorted_cosines.indices[:, :count], sorted_distances.indices[:, :count]
    in_both = (by_kernel[:, :, None] == by_distance[:, None]).any(2)
    return Neighbours(
        by_kernel=by_kernel,
        cosines=sorted_cosines.values[:, :count],
        by_distance=by_distance,
        distances=sorted_distances.values[:, :count],
        agreement=in_both.double().mean(1),
        correlation=_rank_correlation(-cosines.double(), distances, among),
        chance=count / among,
        points=cosines.shape[1],
    )


def _rank_correlation(
    first: Float64[Tensor, "q n"], second: Float64[Tensor, "q n"], among: int
) -> Float64[Tensor, " q"]:
    """Return Spearman's rank correlation, 0 where all are equal, without the query itself."""
    from scipy.stats import rankdata

    ranks = [torch.from_numpy(rankdata(values.cpu().numpy(), axis=1)) for values in (first, second)]
    others = [rank.where(rank <= among, torch.nan) for rank in ranks]
    centred = [rank - rank.nanmean(1, keepdim=True) for rank in others]
    left, right = (rank.nan_to_num(0.0) for rank in centred)
    norms = left.norm(dim=1) * right.norm(dim=1)
    correlation: Tensor = (left * right).sum(1) / norms
    return correlation.where(norms > 0, 0.0)
