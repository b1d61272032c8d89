"""Section 7.2: few local maps in place of all, and how many examples share one."""

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import generator

#: Rounds of k-means; it ends before where no map changes its cluster.
ROUNDS = 20
#: Maps of one region differ by rounding alone, relative to the largest.
SAME = 1e-11


def centres(maps: Float64[Tensor, "n D"], k: int, *, seed: int) -> Float64[Tensor, "k D"]:
    """Return the centres that k-means finds for local maps, in float32; one centre is the mean.

    It begins from maps that are drawn far from those before (k-means++), and a cluster that
    becomes empty keeps its centre.
    """
    if k == 1:
        return maps.mean(0, keepdim=True)
    points = maps.float()
    found = _begun(points, min(k, len(points)), seed)
    nearest = torch.full((len(points),), -1)
    for _ in range(ROUNDS):
        before, nearest = nearest, assigned(points, found)
        if torch.equal(before, nearest):
            break
        sums = torch.zeros_like(found).index_add_(0, nearest, points)
        counts = torch.bincount(nearest, minlength=len(found))[:, None]
        found = torch.where(counts > 0, sums / counts.clamp(min=1), found)
    return found.double()


def _begun(points: Tensor, k: int, seed: int) -> Tensor:
    draw = generator(seed)
    chosen = [int(torch.randint(len(points), (), generator=draw))]
    distances = (points - points[chosen[0]]).square().sum(1)
    for _ in range(k - 1):
        if not float(distances.sum()) > 0:
            break
        chosen.append(int(torch.multinomial(distances, 1, generator=draw)))
        distances = torch.minimum(distances, (points - points[chosen[-1]]).square().sum(1))
    return points[chosen]


def assigned(points: Tensor, centres: Tensor) -> Tensor:
    """Return the nearest centre of each point."""
    nearest: Tensor = (centres.square().sum(1) - 2 * points @ centres.T).argmin(1)
    return nearest


def shared(fingerprints: Float64[Tensor, " n"]) -> float:
    """Return the share of examples whose map another example has too, by one number of each map."""
    ordered = fingerprints.sort().values
    same = ordered.diff().abs() <= SAME * ordered.abs().max()
    edge = torch.zeros(1, dtype=torch.bool)
    return float((torch.cat([edge, same]) | torch.cat([same, edge])).double().mean())
