"""Linear regions around points, on grids and as formulas, from values and Jacobians alone."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, equal, holds
from fuzz.reference import Reference
from fuzz.truths.common import drawn, points


def local_maps(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)[drawn(call)]
    yield equal("points", result.points, x.flatten(1))
    yield equal("values", result.values, f.values(x))
    jacobians = torch.stack([f.jacobian(point) for point in x])
    clear = ~result.on_kink
    yield equal("jacobians", result.jacobians[clear], jacobians[clear])
    if result.patterns is not None:  # one pattern, one map
        for label in result.labels[clear].unique().tolist():
            group = jacobians[clear & (result.labels == label)]
            yield equal(
                f"map {label}",
                group,
                group[:1].expand_as(group),
                scale=float(jacobians.abs().max()),
            )


def grid_regions(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    u, v = torch.meshgrid(result.u, result.v, indexing="xy")
    axes = result.axes.flatten(1)
    at = result.origin.flatten() + u.reshape(-1, 1) * axes[0] + v.reshape(-1, 1) * axes[1]
    at = at.reshape(-1, *call.shape)
    maps = f.jacobians(at).flatten(1)
    size = float(maps.abs().max())
    labels = result.labels.flatten()
    for label in labels.unique().tolist() if result.method == "pattern" else ():
        group = maps[labels == label]
        yield equal(f"map {label}", group, group[:1].expand_as(group), scale=size)
    if result.method == "jacobian":
        yield at_least("different maps", result.distinct, _different(maps, 1e-5 * size))
    yield at_least("parts", len(labels.unique()), result.distinct)


def _different(maps: Tensor, tolerance: float) -> int:
    """Return a number of maps that are clearly different from each other."""
    kept: list[Tensor] = []
    for row in maps:
        if all(float((row - other).abs().max()) > tolerance for other in kept):
            kept.append(row)
    return len(kept) if tolerance > 0 else 1


def region_at(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    index = int(call.settings.get("index", 0))
    point = points(call)[index]
    yield equal("point", result.point, point.flatten())
    value = f.value(point)
    size = float(value.abs().max()) + float((result.slopes.abs() @ point.flatten().abs()).max())
    yield equal("value", result.slopes @ point.flatten() + result.constants, value, scale=size)
    distances = result.offsets - result.normals @ point.flatten()
    reach = 1 + float(point.abs().max())
    yield at_least("inside", distances, torch.zeros_like(distances), scale=reach)
    yield equal("distances", result.distances, distances, scale=reach)
    steepness = 1 + float(f.jacobians(points(call)).abs().max())
    for inner in _inside(result, point.flatten(), call.number):
        expected = f.value(inner.reshape(point.shape))
        size = steepness * float(inner.abs().sum() + result.constants.abs().max())
        yield equal("affine", result.slopes @ inner + result.constants, expected, scale=size)


def _inside(result: Any, point: Tensor, seed: int) -> Iterator[Tensor]:
    """Yield points of the region: part of the way to its boundary in random directions."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(12):
        way = torch.randn(len(point), generator=draw, dtype=torch.float64)
        speed = result.normals @ way
        room = (result.offsets - result.normals @ point).clamp(min=0) / speed
        room = room[speed > 0]
        most = float(room.min()) if len(room) else 3.0 * (1 + float(point.abs().max()))
        if most > 1e-6:
            yield point + 0.99 * min(most, 1e3 * (1 + float(point.abs().max()))) * way


def region_bounds(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    layers = [layer for layer in f.module.modules() if isinstance(layer, nn.Linear)]
    if type(f.module) is not nn.Sequential:
        raise Unverifiable("the widths of a module of one's own")
    if any(isinstance(layer, nn.Conv1d | nn.Conv2d) for layer in f.module):
        raise Unverifiable("the widths of convolutions")
    if tuple(call.x.shape[1:]) != call.network.shape:
        raise Unverifiable("layers that act along an axis of their own")
    widths = [layer.out_features for layer in layers[:-1]]
    inputs = torch.Size(call.shape).numel()
    dimension = call.settings.get("dimension") or inputs
    upper, least = 1, dimension
    for width in widths:
        upper *= sum(math.comb(width, k) for k in range(min(least, width) + 1))
        least = min(least, width)
    yield holds("widths", list(result.widths) == widths)
    yield holds("upper", result.upper == upper)


def closed_regions(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    level = call.settings.get("level", 0.0)
    yield holds(
        "inner <= outer", bool((result.inner.nan_to_num(0) <= result.outer * (1 + 1e-9)).all())
    )
    if len(result.corners):
        at = result.corners.reshape(-1, *call.shape)
        reach = float(f.jacobians(at).abs().sum((1, 2)).max() * (1 + at.abs().max()))
        values = f.values(at).flatten()
        yield equal("corners are at the level", values, torch.full_like(values, level), scale=reach)
    if call.shape == (1,):
        yield equal("count", result.count, _bounded_intervals(f, level))


def _bounded_intervals(f: Reference, level: float) -> int:
    """Return how many bounded intervals lie on one side of a level, for one input."""
    first = next(layer for layer in f.module.modules() if isinstance(layer, nn.Linear))
    knots = sorted((-first.bias / first.weight[:, 0]).tolist()) if first.bias is not None else [0.0]
    if not all(map(math.isfinite, knots)):
        raise Unverifiable("a unit without a breakpoint")
    far = 1e6 * (1 + max(map(abs, knots)))
    at = torch.tensor([-far, *knots, far], dtype=torch.float64)
    values = f.values(at[:, None]).flatten() - level
    if float(values.abs().min()) < 1e-9 * float(values[1:-1].abs().max() + 1):
        raise Unverifiable("a value on the level")
    changes = int((values.sign().diff() != 0).sum())
    return max(0, changes - 1)


def tropical(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    draw = torch.Generator().manual_seed(call.number)
    x = points(call)
    far = torch.randn(20, *x.shape[1:], generator=draw, dtype=torch.float64) * 3
    at = torch.cat([x, far])
    size = max(
        float(part.abs().max()) * (1 + float(at.abs().max()))
        for part in (
            result.plus_slopes,
            result.minus_slopes,
            result.plus_constants,
            result.minus_constants,
        )
        if part.numel()
    )
    yield equal("values", result.values(at), f.values(at), scale=size)
    for output, part in itertools.product(range(result.outputs), (0, 1)):
        yield holds("has a term", len(result.terms(output)[part][1]) > 0)
