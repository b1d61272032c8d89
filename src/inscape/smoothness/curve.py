"""A function of one input on an interval: its knots, values and slopes, exact where it can be."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, UnsupportedModelError, checks
from inscape._core.anytime import most_rows, stoppable
from inscape._core.checks import Function
from inscape._core.precision import converted_copy
from inscape.functional.jacobians import chunks, jacobians, norm, probe
from inscape.piecewise import Cut, cut, export
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines.segments import CutSegments, lines

R = TypeVar("R", bound=Result)


#: Where between two knots a sampled function is differentiated: seldom at a kink.
BETWEEN = 0.527864
#: Every so many of the points make a coarser curve, where the caller may stop.
STRIDES = (100, 10)


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """Knots in order, the values there, and a slope for each piece between them."""

    at: Float[Tensor, " knots"]
    values: Float[Tensor, "knots c"]
    slopes: Float[Tensor, "pieces c"]
    exact: bool


def curves(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    low: float | None,
    high: float | None,
    knots: int,
    name: str,
) -> Iterator[Curve | NotApplicable]:
    """Yield ever finer curves of ``f`` on [low, high], by default the range of the data.

    Exact for a piecewise-linear network, with all its knots. Anything else is sampled at ``knots``
    equidistant points, which can only miss variation, and at fewer of them before that where the
    caller may stop. A module is evaluated in float64 where it supports that, any other function in
    the precision of the data.
    """
    checks.whole(2, knots=knots)
    checks.number(**{k: v for k, v in (("low", low), ("high", high)) if v is not None})
    probe(f, x).need_gradient()
    if x[0].numel() != 1:
        reason = f"it needs one input dimension, the model has {x[0].numel()}"
        yield NotApplicable(what=name, reason=reason)
        return
    low = float(x.min()) if low is None else low
    high = float(x.max()) if high is None else high
    if not low < high:
        raise ValueError(
            f"the interval must have low < high, found low={low:g} and high={high:g}: "
            "pass low and high, or data with at least two different points."
        )
    f, dtype = _precise(f, x)
    ends = torch.tensor([low, high], dtype=dtype, device=x.device).reshape(2, *x.shape[1:])
    try:
        yield _exact(f, ends)
        return
    except UnsupportedModelError:
        pass
    at = _equidistant(ends, knots)
    for stride in STRIDES if stoppable() else ():
        if (knots - 1) % stride == 0 and knots > 2 * stride:
            yield _sampled(f, at[::stride], ends)
    yield _sampled(f, at, ends)


def _precise(f: Function, x: Tensor) -> tuple[Function, torch.dtype]:
    """Return a float64 copy of a module, if it runs in float64, else the function as it is."""
    if isinstance(f, nn.Module):
        try:
            return probe(converted_copy(f, torch.float64), x.double()).f, torch.float64
        except UnsupportedModelError:
            pass
    return probe(f, x).f, x.dtype


def _exact(f: Function, ends: Float[Tensor, "2 *d"]) -> Curve:
    """Return the curve cut at every breakpoint, with the derivative inside each interval."""
    if ends.dtype == torch.float64:
        segments: CutSegments | Cut = lines(piecewise(f, ends), ends[:1], ends[1:])
    else:
        segments = cut(export(f, ends), ends[0], ends[1])
    at = torch.lerp(ends[0].reshape(()), ends[1].reshape(()), segments.t.to(ends))
    middles = (at[:-1] + at[1:]) / 2
    slopes = jacobians(f, middles.reshape(-1, *ends.shape[1:]))[:, :, 0]
    increments = slopes * at.diff()[:, None]
    scale = 1 + float(segments.values.abs().max()) + float(increments.abs().max())
    if float((increments - segments.values.diff(dim=0)).abs().max()) > scale * _sqrt_eps(
        ends.dtype
    ):
        raise UnsupportedModelError("its derivative does not match its values")
    return Curve(at=at, values=segments.values, slopes=slopes, exact=True)


def _sqrt_eps(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).eps ** 0.5)


def _equidistant(ends: Float[Tensor, "2 *d"], knots: int) -> Float[Tensor, " knots"]:
    fractions = torch.linspace(0, 1, knots, dtype=ends.dtype, device=ends.device)
    return torch.lerp(ends[0].reshape(()), ends[1].reshape(()), fractions)


def _sampled(f: Function, at: Float[Tensor, " knots"], ends: Float[Tensor, "2 *d"]) -> Curve:
    """Return the curve through sampled values, with a derivative between neighbours."""
    rows, shape = most_rows(len(at)), ends.shape[1:]
    between = torch.lerp(at[:-1], at[1:], BETWEEN)
    with torch.no_grad():
        values = [f(part.reshape(-1, *shape)).reshape(len(part), -1) for part in chunks(at, rows)]
    slopes = [jacobians(f, part.reshape(-1, *shape))[:, :, 0] for part in chunks(between, rows)]
    return Curve(at=at, values=torch.cat(values), slopes=torch.cat(slopes), exact=False)


def variation(vertices: Float[Tensor, "m c"]) -> float:
    """Return the length of the polygonal path through the vertices."""
    return float(norm(vertices.diff(dim=0), dim=1).sum())


def results(
    curves: Iterator[Curve | NotApplicable], make: Callable[[Curve], R]
) -> Iterator[R | NotApplicable]:
    """Yield the results for curves, or the reason why there is none."""
    for curve in curves:
        if isinstance(curve, NotApplicable):
            yield curve
            return
        result = make(curve)
        if (summary := result.summary()) is not None:  # finite values may have an infinite sum
            checks.finite(torch.tensor([summary.value]), "intervals")
        yield result


def spline(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return knots and values of the linear spline through the data, Volhejn's Eq. (3.11).

    None where no function passes through the data: several inputs, class labels, or one input
    with two labels.
    """
    if x[0].numel() != 1 or not y.is_floating_point():
        return None
    at, order = x.reshape(-1).double().sort()
    values = y.reshape(len(y), -1).double()[order]
    same = at.diff() == 0
    if bool((same[:, None] & (values.diff(dim=0) != 0)).any()):
        return None
    keep = torch.cat([same.new_ones(1), ~same])
    return at[keep], values[keep]
