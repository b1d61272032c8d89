"""The smoothness measures by loops over points, chords and knots."""

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fuzz.calls import Call
from fuzz.claims import PLAIN, Claim, equal, holds
from fuzz.reference import Reference
from fuzz.truths.common import chords, drawn, points, seeded
from fuzz.truths.lines import affine_pieces


def gradient_norm(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)[drawn(call)]
    yield equal("norms", result.norms, [f.jacobian(point).norm() for point in x])


def path_length(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    a, b = chords(call)
    pairs = list(zip(a, b, strict=True))
    size = _size(f, a, b)
    straight = [(f.value(stop) - f.value(start)).norm() for start, stop in pairs]
    yield equal("distances", result.distances, straight, scale=size)
    if result.exact:
        seen = zip(pairs, result.lengths.tolist(), strict=True)
        pieces = [affine_pieces(f, *pair, seen=length) for pair, length in seen]
        lengths = [walk.variation() for walk in pieces]
        size = max(walk.size() for walk in pieces)
    else:
        lengths = [_steps([f.value(p) for p in _knots(call, *pair)]).sum() for pair in pairs]
    yield equal("lengths", result.lengths, lengths, scale=size * _count(call))


def gradient_path_length(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    a, b = chords(call)
    pairs = list(zip(a, b, strict=True))
    if result.exact:
        lengths = [affine_pieces(f, *pair).turning() for pair in pairs]
        size = 0.0
    else:
        walks = [[f.jacobian(p).flatten() for p in _knots(call, *pair)] for pair in pairs]
        lengths = [_steps(walk).sum() for walk in walks]
        size = max(float(torch.stack(walk).abs().max()) for walk in walks) * _count(call)
    yield equal("lengths", result.lengths, lengths, scale=size)


def gradient_deflection(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    a, b = chords(call)
    knots, size, found = _count(call), _size(f, a, b), []
    for start, stop in zip(a, b, strict=True):
        straight = f.value(stop) - f.value(start)
        walk = torch.stack([f.value(p) for p in _knots(call, start, stop)])
        slopes = (knots - 1) * walk.diff(dim=0)
        found.append((slopes - straight).square().sum(1).mean().sqrt())
    # "what may be rounding of the outputs counts as zero": differences times the number of knots
    yield equal("deflections", result.deflections, found, scale=4 * knots * size)


def rugosity(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    every = points(call)
    count = int(call.settings.get("points", 1000))
    order = torch.randperm(len(every), generator=seeded(call.settings.get("seed", 0)))[:count]
    root = (every - every.mean(0)).flatten(1).square().sum(1).mean().sqrt()
    step = call.settings.get("step", 0.1) * float(root)
    yield equal("distance", result.distance, step)
    generator = seeded(call.settings.get("seed", 0))
    count, changes, size = int(call.settings["directions"]), [], 0.0
    for point in every[order]:
        ways = torch.randn(count, point.numel(), generator=generator, dtype=torch.float64)
        ways = (ways / ways.norm(dim=1, keepdim=True)).reshape(count, *point.shape)
        base = f.jacobian(point)
        moved = torch.stack([f.jacobian(point + step * way) for way in ways])
        changes.append((moved - base).flatten(1).norm(dim=1).mean() / step)
        size = max(size, float(base.norm()) / step)
    means = torch.stack(changes)
    means = means[order.argsort()] if len(order) == len(every) else means
    yield equal("changes", result.changes, means, scale=4 * size)


def effective_length_scale(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    a, b = chords(call, "lines")
    knots = _count(call)
    generator = seeded(call.settings.get("seed", 0) + 1)
    starts = torch.rand(len(a), generator=generator, dtype=torch.float64)
    variances, slopes = [], []
    for k, (start, stop) in enumerate(zip(a, b, strict=True)):
        at = [start + (i + starts[k]) / knots * (stop - start) for i in range(knots)]
        variances.append(f.values(torch.stack(at)).var(0, correction=0))
        steep = torch.stack([f.jacobian(p) @ (stop - start).flatten() for p in at])
        slopes.append(steep.square().mean(0))
    size = _size(f, a, b)
    yield equal("variances", result.variances, torch.stack(variances), scale=size**2)
    steepest = max(float(f.jacobian(p).norm() * (b - a).flatten(1).norm(dim=1).max()) for p in a)
    rounding = PLAIN * torch.finfo(call.network.dtype).eps * steepest**2
    size = 2 * float(torch.stack(slopes).max()) ** 0.5 * steepest + rounding
    yield equal("slopes", result.slopes, torch.stack(slopes), scale=size)
    yield equal("lengths", result.lengths, (b - a).flatten(1).norm(dim=1))
    low, high = result.interval.tolist()
    yield holds("the interval holds the scale", 0 <= low <= result.value <= high)
    yield holds("at most the longest", 0 < result.value <= result.longest)


def _count(call: Call) -> int:
    return int(call.settings["knots"])


def _knots(call: Call, start: Tensor, stop: Tensor) -> list[Tensor]:
    knots = _count(call)
    return [start + i / (knots - 1) * (stop - start) for i in range(knots)]


def _steps(rows: list[Tensor]) -> Tensor:
    return torch.stack([(b - a).norm() for a, b in itertools.pairwise(rows)])


def _size(f: Reference, a: Tensor, b: Tensor) -> float:
    """Return the largest output at the ends of chords: differences round relative to it."""
    return float(f.values(torch.cat([a, b])).abs().max())
