"""What queries find around them, whatever the network: data, hull, and what peers would say."""

import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from inscape.extrapolation._peers import PEERS, Known
from inscape.extrapolation._products import nearest, reach
from inscape.extrapolation.convex_hull import ConvexHull, convex_hull

#: The share of data points that have another one within the reach of the domain.
SHARE = 0.99
#: Products that may be spent on whether queries are in the hull: about ten seconds.
WORK = 5e9
#: So many are kept: a report asks for several networks with the same data, in turn.
KEPT = 16


@dataclass(frozen=True, eq=False)
class Places:
    """Of each query the distance and its zone; how far the domain reaches, and how flat it is."""

    distances: Float64[Tensor, " m"]
    zones: Int64[Tensor, " m"]
    reach: float
    flat: bool


@dataclass(frozen=True, eq=False)
class Predictions:
    """Of each query what every peer says; ``doubts`` are on peers that are not to be believed."""

    values: tuple[Float64[Tensor, "m c"], ...]
    warnings: tuple[str, ...]


T = TypeVar("T")

_places: dict[str, Places] = {}
_predictions: dict[str, Predictions] = {}


def places(
    known: Known, queries: Float64[Tensor, "m d"], domain: Bool[Tensor, " m"] | None
) -> Generator[None, None, Places]:
    """Return where queries lie; those asked for last are not computed again.

    ``domain`` tells which are in the training domain; None asks the distance.
    """
    given = () if domain is None else (domain,)
    key = _key(known[0], queries, *given, said="places")
    if key not in _places:
        distances, _ = yield from nearest(known[0], queries)
        yield
        near = yield from reach(known[0], SHARE)
        yield
        hull = convex_hull(known[0], flat=True)
        within = distances <= near if domain is None else domain
        zones = yield from _zones(hull, queries, within)
        found = Places(distances=distances, zones=zones, reach=near, flat=hull.flat)
        _keep(_places, key, found)
    return _places[key]


def predictions(
    known: Known, queries: Float64[Tensor, "m d"], peers: tuple[str, ...], seed: int
) -> Generator[None, None, Predictions]:
    """Return what peers say of queries; those asked for last are not asked again."""
    key = _key(*known, queries, said=f"{peers} {seed}")
    if key not in _predictions:
        said = []
        for name in peers:
            said.append((yield from PEERS[name](known, queries, seed)))
            yield
        values, warnings = (
            tuple(value for value, _ in said),
            tuple(text for _, text in said if text),
        )
        _keep(_predictions, key, Predictions(values=values, warnings=warnings))
    return _predictions[key]


def _keep(kept: dict[str, T], key: str, value: T) -> None:
    while len(kept) >= KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = value


def _zones(
    hull: ConvexHull, queries: Float64[Tensor, "m d"], domain: Bool[Tensor, " m"]
) -> Generator[None, None, Int64[Tensor, " m"]]:
    """Return the numbers of the zones; the hull is asked about what is not in the domain."""
    zones = torch.zeros(len(queries), dtype=torch.long)
    if not bool(domain.all()):
        inside, known = yield from hull.search(queries[~domain], work=WORK)
        zones[~domain] = torch.where(known, torch.where(inside, 1, 2), 3)
    return zones


def _key(*tensors: Tensor, said: str) -> str:
    """Return a fingerprint of the numbers."""
    digest = hashlib.sha256(said.encode())
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
