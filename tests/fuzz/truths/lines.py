"""A network along a line: its affine pieces by bisection on the Jacobian."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, equal, holds
from fuzz.reference import Reference
from fuzz.truths.common import points

#: Cells of the first look at a line; the second number where some piece seems to be missed.
CELLS = 128, 4096
#: On longer segments the breakpoints of small networks lie within the last digits of bisection.
LONGEST = 1e4


@dataclass(frozen=True, eq=False)
class Pieces:
    """The affine pieces of a network on a segment: knots in [0, 1], values there, Jacobians."""

    t: Tensor
    values: Tensor
    jacobians: Tensor

    def variation(self) -> Tensor:
        """Return the length of the path of the outputs."""
        return self.values.diff(dim=0).norm(dim=1).sum()

    def size(self) -> float:
        """Return the size of the outputs, times what the width of the last bisections is in eps."""
        return 1e3 * float(self.values.abs().max() + self.values.diff(dim=0).norm(dim=1).sum())

    def steepness(self) -> float:
        """Return the largest slope, times the number of pieces: each jump rounds relative to it."""
        return float(self.jacobians.abs().max()) * len(self.t)

    def turning(self) -> Tensor:
        """Return the sum of the jumps of the Jacobian."""
        return self.jacobians.diff(dim=0).flatten(1).norm(dim=1).sum()


def affine_pieces(f: Reference, a: Tensor, b: Tensor, *, seen: float | None = None) -> Pieces:
    """Return the affine pieces of a piecewise-linear network between two points.

    Args:
        f: The network.
        a: Start of the segment.
        b: Its end.
        seen: What an instrument says of the variation: a finer look is taken where it is missed.
    """
    if float((b - a).abs().max()) > LONGEST:
        raise Unverifiable("breakpoints too close together on a segment of this length")
    pieces = _pieces(f, a, b, CELLS[0])
    if seen is not None and abs(float(pieces.variation()) - seen) > 1e-7 * abs(seen):
        pieces = _pieces(f, a, b, CELLS[1])
    return pieces


def _pieces(f: Reference, a: Tensor, b: Tensor, cells: int) -> Pieces:
    def at(t: Tensor) -> Tensor:
        return a + t.reshape(-1, *[1] * a.ndim) * (b - a)

    middles = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    middles[0], middles[-1] = 1e-12, 1 - 1e-12
    maps = f.jacobians(at(middles))
    same = 1e-8 * float(maps.abs().max())
    low, high, below, above = middles[:-1], middles[1:], maps[:-1], maps[1:]
    knots = []
    while len(low):
        differ = (below - above).flatten(1).abs().amax(1) > same
        low, high, below, above = low[differ], high[differ], below[differ], above[differ]
        done = high - low < 1e-13
        knots += ((low + high) / 2)[done].tolist()
        low, high, below, above = low[~done], high[~done], below[~done], above[~done]
        if len(low):
            middle = (low + high) / 2
            maps = f.jacobians(at(middle))
            low, high = torch.cat([low, middle]), torch.cat([middle, high])
            below, above = torch.cat([below, maps]), torch.cat([maps, above])
    t = torch.tensor([0.0, *sorted(knots), 1.0], dtype=torch.float64)
    return Pieces(t, f.many_values(at(t)), f.jacobians(at((t[1:] + t[:-1]) / 2)))


def line_regions(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)
    if call.settings.get("pairs") is not None:
        a, b = result.starts, result.stops  # pairs of equal points are drawn anew
        rows = {tuple(row) for row in x.flatten(1).tolist()}
        ends = torch.cat([a, b]).flatten(1).tolist()
        yield holds("ends are points of the data", all(tuple(end) in rows for end in ends))
        yield equal("number", len(a), call.settings["pairs"])
    else:
        a, b = x[:-1], x[1:]
        yield equal("starts", result.starts, a)
        yield equal("stops", result.stops, b)
    lengths = (b - a).flatten(1).norm(dim=1)
    yield equal("lengths", result.lengths, lengths)
    knots = torch.repeat_interleave(torch.arange(len(a)), result.offsets.diff())
    at = a[knots] + result.t.reshape(-1, *[1] * (a.ndim - 1)) * (b - a)[knots]
    yield equal("values", result.values, f.many_values(at))
    for k in range(len(a)):
        if lengths[k] == 0:
            continue
        pieces = affine_pieces(f, a[k], b[k], seen=float(result.variation[k]))
        yield equal(f"variation {k}", result.variation[k], pieces.variation(), scale=pieces.size())
        along = pieces.jacobians @ ((b - a)[k].flatten() / lengths[k])
        turning = along.diff(dim=0).norm(dim=1).sum()
        yield equal(
            f"slope variation {k}", result.slope_variation[k], turning, scale=pieces.steepness()
        )
        if result.gradient_variation is not None:
            yield equal(
                f"gradient variation {k}",
                result.gradient_variation[k],
                pieces.turning(),
                scale=pieces.steepness(),
            )


def total_variation(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    low, high = _interval(call)
    yield equal("ends", result.at[[0, -1]], [float(low), float(high)])
    yield equal("values", result.values, f.many_values(result.at.double().reshape(-1, *call.shape)))
    value = float(result.summary().value)
    if result.exact:
        pieces = affine_pieces(f, low, high, seen=value)
        yield equal("variation", value, pieces.variation(), scale=pieces.size())
    else:
        yield equal("secants", value, result.values.double().diff(dim=0).norm(dim=1).sum())


def slope_variation(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    low, high = _interval(call)
    value = float(result.summary().value)
    if result.exact:
        pieces = affine_pieces(f, low, high)
        yield equal("variation", value, pieces.turning(), scale=pieces.steepness())
        return
    # the slope inside of each piece at one place: never more variation than a fine grid shows
    at = low + torch.linspace(0, 1, 4001, dtype=torch.float64).reshape(-1, *[1] * low.ndim) * (
        high - low
    )
    fine = f.jacobians(at).flatten(1)
    total = fine.diff(dim=0).norm(dim=1).sum()
    yield at_least("a lower bound", total + 1e-3 * fine.abs().max(), value)


def _interval(call: Call) -> tuple[Tensor, Tensor]:
    x = points(call)
    low, high = call.settings.get("low"), call.settings.get("high")
    ends = (x.min() if low is None else low, x.max() if high is None else high)
    return tuple(torch.full(call.shape, float(end), dtype=torch.float64) for end in ends)  # type: ignore[return-value]
