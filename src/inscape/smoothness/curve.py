"""A function of one input on an interval: its knots, values and slopes, exact where it can be."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, UnsupportedModelError, checks
from inscape._core.checks import Function
from inscape.functional.jacobians import jacobians, norm, probe
from inscape.piecewise import Cut, cut, export
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines.segments import CutSegments, lines

R = TypeVar("R", bound=Result)


#: Where between two knots the slope of a function that is only followed is taken: seldom a kink.
BETWEEN = 0.527864


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """Knots in order, the values there, and a slope for each piece between them."""

    at: Float[Tensor, " knots"]
    values: Float[Tensor, "knots c"]
    slopes: Float[Tensor, "pieces c"]
    exact: bool


def on_interval(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    low: float | None,
    high: float | None,
    knots: int,
    what: str,
) -> Curve | NotApplicable:
    """Return ``f`` on [low, high], by default the range of the data.

    A piecewise-linear network gives all its knots, exactly. Anything else is followed through
    ``knots`` equidistant points, which can only miss variation. A module is followed in float64
    where it allows that, any other function in the precision of the data.
    """
    checks.whole(2, knots=knots)
    checks.number(**{k: v for k, v in (("low", low), ("high", high)) if v is not None})
    probe(f, x).need_gradient()
    if x[0].numel() != 1:
        reason = f"it needs one input dimension, the model takes {x[0].numel()}"
        return NotApplicable(what=what, reason=reason)
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
        return _exact(f, ends)
    except UnsupportedModelError:
        return _followed(f, ends, knots)


def _precise(f: Function, x: Tensor) -> tuple[Function, torch.dtype]:
    """Return a float64 copy of a module, if it runs in float64, else the function as it is."""
    if isinstance(f, nn.Module):
        try:
            return probe(deepcopy(f).double(), x.double()).f, torch.float64
        except UnsupportedModelError:
            pass
    return probe(f, x).f, x.dtype


def _exact(f: Function, ends: Float[Tensor, "2 *d"]) -> Curve:
    """Cut the interval at every bend; slopes come from the derivative inside each piece."""
    if ends.dtype == torch.float64:
        found: CutSegments | Cut = lines(piecewise(f, ends), ends[:1], ends[1:])
    else:
        found = cut(export(f, ends), ends[0], ends[1])
    at = torch.lerp(ends[0].reshape(()), ends[1].reshape(()), found.t.to(ends))
    middles = (at[:-1] + at[1:]) / 2
    slopes = jacobians(f, middles.reshape(-1, *ends.shape[1:]))[:, :, 0]
    drawn = slopes * at.diff()[:, None]
    scale = 1 + float(found.values.abs().max()) + float(drawn.abs().max())
    if float((drawn - found.values.diff(dim=0)).abs().max()) > scale * _root(ends.dtype):
        raise UnsupportedModelError("its derivative does not belong to its values")
    return Curve(at=at, values=found.values, slopes=slopes, exact=True)


def _root(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).eps ** 0.5)


def _followed(f: Function, ends: Float[Tensor, "2 *d"], knots: int) -> Curve:
    share = torch.linspace(0, 1, knots, dtype=ends.dtype, device=ends.device)
    at = torch.lerp(ends[0].reshape(()), ends[1].reshape(()), share)
    with torch.no_grad():
        values = f(at.reshape(-1, *ends.shape[1:])).reshape(knots, -1)
    between = torch.lerp(at[:-1], at[1:], BETWEEN).reshape(-1, *ends.shape[1:])
    return Curve(at=at, values=values, slopes=jacobians(f, between)[:, :, 0], exact=False)


def variation(rows: Float[Tensor, "m c"]) -> float:
    """Return the length of the way through the rows."""
    return float(norm(rows.diff(dim=0), dim=1).sum())


def measured(found: Curve | NotApplicable, make: Callable[[Curve], R]) -> R | NotApplicable:
    """Turn a curve into a result; pass the reason on where there is none."""
    if isinstance(found, NotApplicable):
        return found
    result = make(found)
    if (summary := result.summary()) is not None:  # finite values may have an infinite sum
        checks.finite(torch.tensor([summary.value]), "intervals")
    return result


def spline(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return knots and values of the linear spline through the data, Volhejn's Eq. (3.11).

    None where no function passes through the data: several inputs, class labels, or one place
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
