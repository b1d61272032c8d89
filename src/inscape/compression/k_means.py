"""k-means: clusters of points around their means, in float32 and by mini-batches where many."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from inscape._core import checks
from inscape._core.sampling import generator

#: Up to so many points, every step takes all of them (Lloyd's algorithm); beyond, a mini-batch.
ALL = 4096
#: Points of a mini-batch at least, and for each centre.
BATCH, FOR_EACH = 1024, 10
#: Steps at most: of all points, and of mini-batches.
STEPS, BATCHES = 50, 400
#: Mini-batches without a better average after which it ends, and the weight of the newest.
PATIENCE, NEWEST = 10, 0.1
#: Points that are converted to float64 at once.
PART = 512
#: Entries of a block of distances.
BLOCK = 2**22
#: Points with fewer than this fraction of the fullest centre's are drawn anew now and then.
POOR, EVERY = 0.01, 10


@dataclass(frozen=True, eq=False)
class Clusters:
    """Centres, the nearest of each point, and the sum of squared distances from them."""

    centres: Float64[Tensor, "k d"]
    labels: Int64[Tensor, " n"]
    inertia: float


def k_means(x: Float[Tensor, "n d"], k: int, *, seed: int = 0) -> Clusters:
    r"""Return ``k`` clusters of points.

    .. math:: \min_{c, \, l} \; \sum_{i=1}^{n} \lVert x_i - c_{l_i} \rVert^2

    A local minimum: from a start by k-means++ (on a part of many points), Lloyd's algorithm for up
    to 4096 points, mini-batches beyond, in float32. The centres that are returned are the means of
    their points, in float64, after one more assignment of all points. With one cluster, and with at
    least as many as points, nothing is left to search. Costs n k d multiplications for each step of
    all points.

    Args:
        x: Points.
        k: Number of clusters; no more than there are points are made.
        seed: Seed of the start and of the mini-batches.

    >>> x = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    >>> clusters = k_means(x, 2)
    >>> sorted(clusters.centres.flatten().tolist()), clusters.inertia
    ([0.5, 11.0], 2.5)
    """
    checks.whole(1, k=k)
    checks.points(x)
    if k >= len(x):
        labels = torch.arange(len(x))
        return Clusters(x.double(), labels, 0.0)
    mean = x.mean(0)
    points = (x - mean).float()
    low, high = points.aminmax()
    points /= max(float(high), -float(low)) or 1.0
    if k == 1:
        labels = torch.zeros(len(x), dtype=torch.int64)
    else:
        draw = generator(seed)
        batch = max(BATCH, FOR_EACH * k)
        few = len(x) <= max(ALL, batch)
        start = points if few else points[_drawn(len(points), 3 * batch, draw)]
        centres = _spread(start, k, draw)
        search = _lloyd if few else _mini_batches
        labels, _ = nearest(points, search(points, centres, draw))
    return _settled(x, mean.double(), labels, k)


def nearest(
    x: Float32[Tensor, "n d"], centres: Float32[Tensor, "k d"]
) -> tuple[Int64[Tensor, " n"], Float32[Tensor, " n"]]:
    """Return the nearest centre of each point, and the squared distance from it."""
    sizes, labels, distances = centres.square().sum(1), [], []
    for part in torch.split(x, max(1, BLOCK // len(centres))):
        gaps = torch.addmm(sizes, part, centres.T, alpha=-2)
        least, label = gaps.min(1)
        labels.append(label)
        distances.append((least + part.square().sum(1)).clamp(min=0))
    return torch.cat(labels), torch.cat(distances)


def _drawn(n: int, count: int, draw: torch.Generator) -> Tensor:
    return torch.randint(n, (count,), generator=draw)


def _spread(x: Tensor, k: int, draw: torch.Generator) -> Tensor:
    """Return points far from each other: k-means++, the best of a few candidates each time."""
    candidates = 2 + int(torch.tensor(float(k)).log())
    chosen = x[_drawn(len(x), 1, draw)]
    centres, sizes = [chosen], x.square().sum(1)
    closest = (sizes - 2 * (x @ chosen[0]) + chosen[0].square().sum()).clamp(min=0)
    for _ in range(k - 1):
        chances = closest.double().cumsum(0)
        at = torch.rand(candidates, generator=draw, dtype=torch.float64) * chances[-1]
        numbers = torch.searchsorted(chances, at).clamp(max=len(x) - 1)
        options = x[numbers]
        gaps = torch.addmm(sizes[:, None] + options.square().sum(1), x, options.T, alpha=-2)
        gaps = torch.minimum(gaps.clamp(min=0), closest[:, None])
        best = int(gaps.sum(0).argmin())
        closest = gaps[:, best].contiguous()
        centres.append(options[best : best + 1])
    return torch.cat(centres)


def _lloyd(x: Tensor, centres: Tensor, draw: torch.Generator) -> Tensor:
    labels = None
    for _ in range(STEPS):
        assigned, gaps = nearest(x, centres)
        if labels is not None and torch.equal(assigned, labels):
            break
        labels = assigned
        counts = torch.bincount(labels, minlength=len(centres))
        sums = torch.zeros_like(centres).index_add_(0, labels, x)
        centres = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], centres)
        empty = (counts == 0).nonzero()[:, 0]
        if len(empty):  # begins anew at the points that are farthest from theirs
            centres[empty] = x[gaps.argsort(descending=True)[: len(empty)]]
    return centres


def _mini_batches(x: Tensor, centres: Tensor, draw: torch.Generator) -> Tensor:
    """Move each centre towards the mean of all points that it has been given (Sculley, 2010)."""
    batch, k = max(BATCH, FOR_EACH * len(centres)), len(centres)
    weights = torch.zeros(k)
    average, best, worse = None, float("inf"), 0
    for step in range(BATCHES):
        part = x[_drawn(len(x), batch, draw)]
        labels, gaps = nearest(part, centres)
        counts = torch.bincount(labels, minlength=k).float()
        sums = torch.zeros_like(centres).index_add_(0, labels, part)
        weights += counts
        share = (counts / weights.clamp(min=1))[:, None]
        centres = centres + share * (sums / counts.clamp(min=1)[:, None] - centres)
        if step % EVERY == EVERY - 1:
            poor = (weights < POOR * weights.max()).nonzero()[:, 0]
            if len(poor):
                centres[poor] = part[_drawn(len(part), len(poor), draw)]
                weights[poor] = weights[weights >= POOR * weights.max()].min()
        mean = float(gaps.mean())
        average = mean if average is None else (1 - NEWEST) * average + NEWEST * mean
        worse = 0 if average < best else worse + 1
        best = min(best, average)
        if worse >= PATIENCE:
            break
    return centres


def _settled(
    x: Tensor, mean: Float64[Tensor, " d"], labels: Int64[Tensor, " n"], k: int
) -> Clusters:
    """Return the means of the clusters that have points, numbered without gaps."""
    counts = torch.bincount(labels, minlength=k)
    numbers = (counts > 0).cumsum(0) - 1
    labels, counts = numbers[labels], counts[counts > 0]
    sums = torch.zeros(len(counts), x.shape[1], dtype=torch.float64)
    squares = 0.0
    for part, own in zip(torch.split(x, PART), torch.split(labels, PART), strict=True):
        moved = part.double() - mean
        sums.index_add_(0, own, moved)
        squares += float(moved.flatten() @ moved.flatten())
    centres = sums / counts[:, None]
    if len(x) > ALL:
        squares -= float((counts[:, None] * centres.square()).sum())
    else:  # without the rounding of a difference
        squares = float((x.double() - mean - centres[labels]).square().sum())
    return Clusters(centres + mean, labels, max(squares, 0.0))
