"""Linear regions of planes: every cell is asked for its map, and random places for their cell."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fuzz.calls import Call
from fuzz.claims import Claim, at_least, equal, holds
from fuzz.reference import Reference


def _inputs(call: Call, result: Any, at: Tensor) -> Tensor:
    axes = result.axes.flatten(1)
    flat = result.origin.flatten() + at[:, :1] * axes[0] + at[:, 1:] * axes[1]
    return flat.reshape(-1, *call.shape)


def _area(corners: Tensor) -> Tensor:
    x, y = corners.T
    return (x * y.roll(-1) - x.roll(-1) * y).sum().abs() / 2


def _places(domain: Tensor, count: int, seed: int) -> Tensor:
    """Return random places in a convex polygon."""
    draw = torch.Generator().manual_seed(seed)
    weights = torch.rand(count, len(domain), generator=draw, dtype=torch.float64).log()
    return (weights / weights.sum(1, keepdim=True)) @ domain


def plane_regions(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    yield from _cells(call, f, result)


def _cells(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    cells = [
        result.vertices[result.corners[result.first[k] : result.first[k + 1]].long()]
        for k in range(len(result.first) - 1)
    ]
    centre = torch.stack([corners.mean(0) for corners in cells])
    moved = (centre - result.center).unsqueeze(2)
    maps = result.intercepts + (result.slopes @ moved).squeeze(2)
    size = float((result.intercepts.abs() + (result.slopes.abs() @ moved.abs()).squeeze(2)).max())
    at = _inputs(call, result, centre)
    yield equal("values", maps, f.many_values(at), scale=size)
    axes = result.axes.flatten(1).double()
    slopes = f.jacobians(at) @ axes.T
    wide = _wide(cells, result)
    yield equal("slopes", result.slopes[wide], slopes[wide], scale=_steepness(result, maps, slopes))
    gram = axes @ axes.T
    unit = torch.linalg.det(gram).clamp(min=0).sqrt()
    areas = torch.stack([_area(corners) for corners in cells])
    whole = _area(result.domain)
    if result.complete:
        yield equal("areas", areas.sum(), whole, scale=1e4 * float(whole))
        yield holds("area of each", _proportional(result.areas, areas, unit))
        yield from _members(call, f, result, cells)
    yield at_least("merged", len(cells), len(result.merged.unique()))


def _steepness(result: Any, values: Tensor, slopes: Tensor) -> float:
    """Return the size of what rounds in slopes: they are differences of values over the window."""
    width = float((result.domain.amax(0) - result.domain.amin(0)).min())
    return float(slopes.abs().max()) + 8 * float(values.abs().max()) / width


def _proportional(found: Tensor, areas: Tensor, unit: Tensor) -> bool:
    """Tell whether areas are those of the plane, in its coordinates or in the input space."""
    slack = 1e-6 * float(areas.max())
    plain = bool((found - areas).abs().max() <= slack)
    return plain or bool((found - areas * unit).abs().max() <= slack * float(unit))


def _wide(cells: list[Tensor], result: Any) -> Tensor:
    """Tell which cells are so wide that rounding does not carry their centre over an edge."""
    width = float((result.domain.amax(0) - result.domain.amin(0)).max())
    return torch.tensor([float(_area(c)) > 1e-9 * width**2 for c in cells])


def _members(call: Call, f: Reference, result: Any, cells: list[Tensor]) -> Iterator[Claim]:
    """Every place lies in a cell, whose map has the network's value there."""
    for place in _places(result.domain, 20, call.number):
        outside = [_outside(corners, place) for corners in cells]
        k = int(torch.tensor(outside).argmin())
        width = float((result.domain.amax(0) - result.domain.amin(0)).max())
        yield holds("covered", outside[k] <= 1e-7 * width)
        mapped = result.intercepts[k] + result.slopes[k] @ (place - result.center)
        size = float(
            (
                result.intercepts[k].abs() + result.slopes[k].abs() @ (place - result.center).abs()
            ).max()
        )
        yield equal("value", mapped, f.value(_inputs(call, result, place[None])[0]), scale=size)


def _outside(corners: Tensor, place: Tensor) -> float:
    """Return how far a place is outside of a counter-clockwise convex polygon; 0 inside."""
    sides = corners.roll(-1, 0) - corners
    moved = place - corners
    across = sides[:, 0] * moved[:, 1] - sides[:, 1] * moved[:, 0]
    return float((-across / sides.norm(dim=1).clamp(min=1e-300)).amax().clamp(min=0))


def boundary(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    if len(result.points):
        at = _inputs(call, result, result.points)
        values = f.many_values(at)
        reach = 1e3 + float(at.abs().max())
        size = float(values.abs().max()) + reach * float(f.jacobians(at).abs().max())
        if result.level is not None:
            yield equal(
                "level",
                values[:, result.output or 0],
                torch.full((len(values),), result.level),
                scale=size,
            )
        else:
            line = torch.repeat_interleave(torch.arange(len(result.closed)), result.first.diff())
            pair = values.gather(1, result.between[line])
            yield equal("two are equal", pair[:, 0], pair[:, 1], scale=size)
            yield equal("and the largest", pair[:, 0], values.amax(1), scale=size)
    if result.complete:
        yield from _crossings(call, f, result)


def _crossings(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    """Walk between random places: the decision changes only where a polyline is crossed."""
    places = _places(result.domain, 16, call.number)
    values = f.many_values(_inputs(call, result, places))
    if values.shape[1] == 1 or result.level is not None:
        margin = values[:, result.output or 0] - (result.level or 0.0)
        decision, clear = margin > 0, margin.abs() > 1e-6 * (1 + values.abs().max())
    else:
        top = values.topk(2).values
        decision, clear = (
            values.argmax(1),
            (top[:, 0] - top[:, 1]) > 1e-6 * (1 + values.abs().max()),
        )
    for k in range(0, len(places), 2):
        if clear[k] and clear[k + 1] and decision[k] != decision[k + 1]:
            if _tied(call, f, result, places[k], places[k + 1]):
                continue
            yield holds("crossed", _crosses(result, places[k], places[k + 1]))


def _tied(call: Call, f: Reference, result: Any, a: Tensor, b: Tensor) -> bool:
    """Tell whether a walk goes through a piece on which the decision is undecided all over."""
    t = torch.linspace(0, 1, 500, dtype=torch.float64)[:, None]
    values = f.many_values(_inputs(call, result, a + t * (b - a)))
    if values.shape[1] == 1 or result.level is not None:
        gap = (values[:, result.output or 0] - (result.level or 0.0)).abs()
    else:
        top = values.topk(2).values
        gap = top[:, 0] - top[:, 1]
    return int((gap <= 1e-12 * values.abs().max()).sum()) > 2


def _crosses(result: Any, a: Tensor, b: Tensor) -> bool:
    def side(p: Tensor, q: Tensor, at: Tensor) -> Tensor:
        return (q - p)[..., 0] * (at - p)[..., 1] - (q - p)[..., 1] * (at - p)[..., 0]

    for k in range(len(result.closed)):
        line = result.points[result.first[k] : result.first[k + 1]]
        p, q = line[:-1], line[1:]
        one = side(a, b, p) * side(a, b, q) <= 0
        two = side(p, q, a.expand_as(p)) * side(p, q, b.expand_as(p)) <= 0
        if bool((one & two).any()):
            return True
    return False


def region_evolution(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    trajectory = call.settings["trajectory"]
    for k, step in enumerate(result.steps.tolist()):
        regions = result.regions_at(k)
        yield equal(f"cells {step}", result.cells[k], len(regions.first) - 1)
        yield from _cells(call, f.at(trajectory.at(step)), regions)
    yield holds("shares", bool(((result.differs >= 0) & (result.differs <= 1)).all()))
    yield equal("at the end", result.differs[-1], torch.zeros_like(result.differs[-1]))
