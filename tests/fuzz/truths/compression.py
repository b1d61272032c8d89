"""Shared regions and merged maps, from values and Jacobians of single points."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, equal, holds
from fuzz.reference import Reference
from fuzz.truths.common import drawn, points


def region_sharing(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)[drawn(call, 10_000)]
    maps = torch.stack([f.jacobian(point) for point in x])
    size = float(maps.abs().max())
    for label in result.regions.unique().tolist():
        members = (result.regions == label).nonzero()[:, 0]
        if len(members) < 2:
            continue
        near = x[members[:1]] + 1e-3 * (x[members[-1:]] - x[members[:1]])  # off the kinks
        own, other = f.jacobians(near)[0], f.jacobians(x[members].mean(0, keepdim=True))[0]
        yield equal(f"map of region {label}", own, other, scale=size)  # regions are convex
        yield holds("one region, one map", len(result.maps[members].unique()) == 1)


def map_compression(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)
    outputs = f.values(x)
    if outputs.shape[1] == 1:
        outputs = torch.cat([torch.zeros_like(outputs), outputs], 1)
    reached = outputs.gather(1, result.own.long()[:, None])[:, 0]
    yield at_least("own class", reached, outputs.amax(1), scale=float(outputs.abs().max()))
    yield at_least("within", result.within, torch.zeros_like(result.within))
    yield from _mean_map(x, f, result)


def _mean_map(x: Tensor, f: Reference, result: Any) -> Iterator[Claim]:
    """Claim that one cluster gives the class of the mean map of the other half."""
    if int(result.clusters[0]) > 1:
        raise Unverifiable("which local minimum k-means has found")
    half, parts = len(x) // 2, []
    for training, test in ((x[half:], x[:half]), (x[:half], x[half:])):
        slopes = torch.stack([f.jacobian(point) for point in training])
        constants = f.values(training) - torch.einsum("ncd,nd->nc", slopes, training.flatten(1))
        parts.append(test.flatten(1) @ slopes.mean(0).T + constants.mean(0))
    values = torch.cat(parts)
    size = float(torch.cat([values, slopes.abs().sum(2)]).abs().max())
    if values.shape[1] == 1:
        values = torch.cat([torch.zeros_like(values), values], 1)
    reached = values.gather(1, result.predicted[0].long()[:, None])[:, 0]
    size = 2.0**30 * size  # maps are clustered in float32
    yield at_least("class of the mean map", reached, values.amax(1), scale=size)
