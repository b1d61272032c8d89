"""Zones, distances and baseline predictions of queries, cached across networks."""

import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from inscape.extrapolation._baselines import BASELINES, TrainingSet
from inscape.extrapolation._distances import nearest, reach
from inscape.extrapolation.convex_hull import ConvexHull, convex_hull

#: The fraction of data points whose nearest neighbour is within the reach of the domain.
COVERED = 0.99
#: Multiplications that may be spent on the convex hull: about ten seconds.
WORK = 5e9
#: Entries of a cache: a report evaluates several networks on the same data in turn.
CACHE_SIZE = 16


@dataclass(frozen=True, eq=False)
class Locations:
    """Distance and zone of each query; reach of the domain, and whether the hull is flat."""

    distances: Float64[Tensor, " m"]
    zones: Int64[Tensor, " m"]
    reach: float
    flat: bool


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of every baseline at each query, and warnings about them."""

    values: tuple[Float64[Tensor, "m c"], ...]
    warnings: tuple[str, ...]


T = TypeVar("T")

_locations: dict[str, Locations] = {}
_predictions: dict[str, Predictions] = {}


def locations(
    training_set: TrainingSet, queries: Float64[Tensor, "m d"], domain: Bool[Tensor, " m"] | None
) -> Generator[None, None, Locations]:
    """Return distances and zones of queries, from the cache if possible.

    ``domain`` marks those in the training domain; None decides by the distance.
    """
    extra = () if domain is None else (domain,)
    key = _key(training_set[0], queries, *extra, name="places")
    if key not in _locations:
        distances, _ = yield from nearest(training_set[0], queries)
        yield
        radius = yield from reach(training_set[0], COVERED)
        yield
        hull = convex_hull(training_set[0], flat=True)
        within = distances <= radius if domain is None else domain
        zones = yield from _zones(hull, queries, within)
        computed = Locations(distances=distances, zones=zones, reach=radius, flat=hull.flat)
        _store(_locations, key, computed)
    return _locations[key]


def predictions(
    training_set: TrainingSet,
    queries: Float64[Tensor, "m d"],
    baselines: tuple[str, ...],
    seed: int,
) -> Generator[None, None, Predictions]:
    """Return the predictions of baselines, from the cache if possible."""
    key = _key(*training_set, queries, name=f"{baselines} {seed}")
    if key not in _predictions:
        predicted = []
        for name in baselines:
            predicted.append((yield from BASELINES[name](training_set, queries, seed)))
            yield
        values, warnings = (
            tuple(value for value, _ in predicted),
            tuple(text for _, text in predicted if text),
        )
        _store(_predictions, key, Predictions(values=values, warnings=warnings))
    return _predictions[key]


def _store(cache: dict[str, T], key: str, value: T) -> None:
    while len(cache) >= CACHE_SIZE:
        cache.pop(next(iter(cache)))
    cache[key] = value


def _zones(
    hull: ConvexHull, queries: Float64[Tensor, "m d"], domain: Bool[Tensor, " m"]
) -> Generator[None, None, Int64[Tensor, " m"]]:
    """Return the indices of the zones, by the hull for queries outside of the domain."""
    zones = torch.zeros(len(queries), dtype=torch.long)
    if not bool(domain.all()):
        inside, known = yield from hull.search(queries[~domain], work=WORK)
        zones[~domain] = torch.where(known, torch.where(inside, 1, 2), 3)
    return zones


def _key(*tensors: Tensor, name: str) -> str:
    """Return a hash of the tensors."""
    digest = hashlib.sha256(name.encode())
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
