"""What queries find around them, whatever the network: data, hull, and what peers would say."""

import hashlib
from collections.abc import Generator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from inscape.extrapolation._peers import PEERS, Known, nearest, reach
from inscape.extrapolation.convex_hull import ConvexHull, convex_hull

#: The share of data points that have another one within the reach of the domain.
SHARE = 0.99
#: Products that may be spent on whether queries are in the hull: about ten seconds.
WORK = 5e9
#: So many are kept: a report asks for several networks with the same data, in turn.
KEPT = 16


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Of each query the distance, its zone, and the predictions of each peer.

    ``doubts`` are sentences on peers that are not to be believed.
    """

    distances: Float64[Tensor, " m"]
    zones: Int64[Tensor, " m"]
    reach: float
    flat: bool
    predictions: tuple[Float64[Tensor, "m c"], ...]
    doubts: tuple[str, ...]


_kept: dict[str, Surroundings] = {}


def surroundings(
    known: Known,
    queries: Float64[Tensor, "m d"],
    domain: Bool[Tensor, " m"] | None,
    peers: tuple[str, ...],
    seed: int,
) -> Generator[None, None, Surroundings]:
    """Return the surroundings of queries; those asked for last are not computed again.

    ``domain`` tells which are in the training domain; None asks the distance.
    """
    given = () if domain is None else (domain,)
    key = _key(*known, queries, *given, said=f"{peers} {seed}")
    if key not in _kept:
        distances, near = nearest(known[0], queries)[0], reach(known[0], SHARE)
        yield
        hull = convex_hull(known[0], flat=True)
        zones = _zones(hull, queries, distances <= near if domain is None else domain)
        yield
        said = []
        for name in peers:
            said.append(PEERS[name](known, queries, seed))
            yield
        found = Surroundings(
            distances=distances,
            zones=zones,
            reach=near,
            flat=hull.dimensions < known[0].shape[1],
            predictions=tuple(prediction for prediction, _ in said),
            doubts=tuple(doubt for _, doubt in said if doubt),
        )
        while len(_kept) >= KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[key] = found
    return _kept[key]


def _zones(
    hull: ConvexHull, queries: Float64[Tensor, "m d"], domain: Bool[Tensor, " m"]
) -> Int64[Tensor, " m"]:
    """Return the numbers of the zones; the hull is asked about what is not in the domain."""
    zones = torch.zeros(len(queries), dtype=torch.long)
    if not bool(domain.all()):
        inside, known = hull.within(queries[~domain], work=WORK)
        zones[~domain] = torch.where(known, torch.where(inside, 1, 2), 3)
    return zones


def _key(*tensors: Tensor, said: str) -> str:
    """Return a fingerprint of the numbers."""
    digest = hashlib.sha256(said.encode())
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
