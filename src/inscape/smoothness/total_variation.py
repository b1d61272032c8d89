"""Total variation: how far a function of one input goes up and down on an interval."""

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
class TotalVariation(Result):
    """The function at its knots; its total variation is the length of the path through them."""

    range: ClassVar[Range] = NONNEGATIVE

    at: Float[Tensor, " knots"]
    values: Float[Tensor, "knots c"]
    exact: bool

    def rows(self) -> Iterator[Row]:
        """Yield one row for each knot."""
        for at, values in zip(self.at.tolist(), self.values.tolist(), strict=True):
            yield {"x": at} | {f"f{k}": value for k, value in enumerate(values)}

    def summary(self) -> Summary:
        """Return the total variation."""
        return Summary(
            value=variation(self.values),
            kind="exact" if self.exact else "lower bound",
            basis=f"{len(self.at)} knots on [{self.at[0]:.4g}, {self.at[-1]:.4g}]",
        )


def spline_bound(x: Tensor, y: Tensor) -> Bound | None:
    """Return the total variation of the linear spline, Volhejn's Eqs. (3.11)-(3.13)."""
    interpolant = spline(x, y)
    return interpolant and Bound(variation(interpolant[1]), "any function through these points")


@instrument(
    reads="function",
    larger="rougher",
    cost="instant",
    work=lambda n, c: 10_000,
    setup=0.5,
    meaning="From one end of the data to the other the output varies by {value} in total.",
    cites="volhejn2020smoothness, Eqs. (1.13), (3.9)",
    bound=spline_bound,
)
@anytime
def total_variation(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    low: float | None = None,
    high: float | None = None,
    knots: int = 10_001,
) -> Iterator[TotalVariation | NotApplicable]:
    r"""Measure the total variation of a function of one input on an interval.

    .. math:: PL_0^{(1)}(f) = TV(f) = \sup_P \sum_i \lVert f(x_i) - f(x_{i-1}) \rVert

    Exact for piecewise-linear networks, all of whose knots are found from the exported graph;
    for anything else a lower bound by secants. A module is evaluated in float64. Not applicable to
    more than one input.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Data, whose range is the interval unless ``low`` and ``high`` are set.
        low: Left end of the interval.
        high: Right end of the interval.
        knots: Number of secant points where ``f`` is not piecewise linear.

    >>> import torch
    >>> total_variation(torch.abs, torch.tensor([[-2.0], [2.0]])).summary().value
    4.0
    """
    on_interval = curves(f, x, low=low, high=high, knots=knots, name="total_variation")
    yield from results(on_interval, _result)


def _result(curve: Curve) -> TotalVariation:
    return TotalVariation(at=curve.at, values=curve.values, exact=curve.exact)
