"""Slope variation: how much the slope of a function of one input changes on an interval."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from inscape._core import Bound, NotApplicable, Result, Row, Summary, instrument
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.smoothness.curve import Curve, curves, results, spline, variation


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SlopeVariation(Result):
    """The slope between neighbouring knots; at one point in between where not exact."""

    range: ClassVar[Range] = NONNEGATIVE

    at: Float[Tensor, " knots"]
    slopes: Float[Tensor, "pieces c"]
    exact: bool

    def rows(self) -> Iterator[Row]:
        """Yield one row for each slope, with the knot from which it holds."""
        for at, slopes in zip(self.at.tolist(), self.slopes.tolist(), strict=False):
            yield {"x": at} | {f"slope{k}": slope for k, slope in enumerate(slopes)}

    def summary(self) -> Summary:
        """Return the total variation of the slope."""
        return Summary(
            value=variation(self.slopes),
            kind="exact" if self.exact else "lower bound",
            basis=f"{len(self.slopes)} slopes on [{self.at[0]:.4g}, {self.at[-1]:.4g}]",
        )


def spline_bound(x: Tensor, y: Tensor) -> Bound | None:
    """Return the slope variation of the linear spline, the least possible for one output."""
    interpolant = spline(x, y)
    if interpolant is None or interpolant[1].shape[1] != 1 or len(interpolant[0]) < 2:
        return None
    at, values = interpolant
    return Bound(
        variation(values.diff(dim=0) / at.diff()[:, None]), "any function through these points"
    )


@instrument(
    reads="function",
    larger="rougher",
    cost="instant",
    work=lambda n, c: 10_000,
    setup=0.5,
    meaning="From one end of the data to the other the slope changes by {value} in total.",
    cites="volhejn2020smoothness, Eqs. (3.9), (3.17)",
    bound=spline_bound,
)
@anytime
def slope_variation(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    low: float | None = None,
    high: float | None = None,
    knots: int = 10_001,
) -> Iterator[SlopeVariation | NotApplicable]:
    r"""Measure the total variation of the derivative of a function of one input.

    .. math:: PL_1^{(1)}(f) = TV(f')

    Exact for piecewise-linear networks, where it is the sum of the jumps of the slope at all
    knots; for anything else a lower bound over equidistant points. A two-layer ReLU network
    whose knots are distinct and inside the interval has :math:`TV(f') = WP(f)` (V4). A
    module is evaluated in float64. Not applicable to more than one input.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Data, whose range is the interval unless ``low`` and ``high`` are set.
        low: Left end of the interval.
        high: Right end of the interval.
        knots: Number of points where ``f`` is not piecewise linear.

    >>> import torch
    >>> slope_variation(torch.abs, torch.tensor([[-2.0], [2.0]])).summary().value
    2.0
    """
    on_interval = curves(f, x, low=low, high=high, knots=knots, name="slope_variation")
    yield from results(on_interval, _result)


def _result(curve: Curve) -> SlopeVariation:
    return SlopeVariation(at=curve.at, slopes=curve.slopes, exact=curve.exact)
