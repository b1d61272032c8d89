"""Profile: error against distance from the data, smoothed, with a confidence interval."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import Result, Row, Summary, checks
from inscape._core.result import Z95

#: Default number of positions of a profile.
PLACES = 60
#: Least number of points for residuals, and the most kernel weights computed for them.
FEWEST, WEIGHTS = 30, 10**7
#: Fraction of the largest squared error that replaces zeros.
SMALL = 1e-8


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Profile(Result):
    """A smoothed mean, its 95% confidence interval, and the effective sample size.

    ``weight`` is the effective number of points under the kernel at each position.
    """

    at: Float64[Tensor, " k"]
    mean: Float64[Tensor, " k"]
    low: Float64[Tensor, " k"]
    high: Float64[Tensor, " k"]
    weight: Float64[Tensor, " k"]
    bandwidth: float

    def rows(self) -> Iterator[Row]:
        """Yield one row for each position."""
        names = ("at", "mean", "low", "high", "weight")
        for values in zip(*(getattr(self, name).tolist() for name in names), strict=True):
            yield dict(zip(names, values, strict=True))

    def summary(self) -> Summary:
        """Return the increase of the mean from the first position to the last."""
        rise = float(self.mean[-1] - self.mean[0])
        basis = f"{len(self.at)} places, bandwidth {self.bandwidth:.3g}"
        half = float((self.high - self.low)[[0, -1]].norm()) / 2
        return Summary(value=rise, kind="estimate", basis=basis, low=rise - half, high=rise + half)


def profile(
    distances: Float[Tensor, " m"],
    values: Float[Tensor, " m"],
    *,
    at: Float[Tensor, " k"] | None = None,
    bandwidth: float | None = None,
) -> Profile:
    r"""Smooth values over distances by a Gaussian kernel, with confidence intervals.

    .. math:: m(r) = \sum_i w_i(r) v_i, \quad w_i(r) \propto e^{-(r - r_i)^2 / 2 h^2}, \quad
              s(r)^2 = \sum_i w_i(r)^2 (v_i - m(r))^2

    The interval is 1.96 standard errors s to either side: of the smoothed mean, not of single
    points. Where few points are near, it is at least as wide as from the residual standard
    deviation of all points. It does not include the bias of smoothing, largest at the ends.

    Args:
        distances: Distance of each point.
        values: What is smoothed; for errors of many magnitudes, their logarithms.
        at: Positions; by default 60 between the nearest and the farthest point.
        bandwidth: Standard deviation h of the kernel; by default Silverman's rule.

    >>> r = torch.linspace(0, 1, 101, dtype=torch.float64)
    >>> smooth = profile(r, 3 * r, at=torch.tensor([0.5]), bandwidth=0.05)
    >>> round(float(smooth.mean), 6)
    1.5
    """
    r, v = distances.detach().double().flatten().cpu(), values.detach().double().flatten().cpu()
    if len(r) != len(v) or not len(r):
        raise ValueError(
            f"distances and values must be as many, found {len(r)} and {len(v)}: pass one value "
            "for each distance."
        )
    if not bool(r.isfinite().all() and v.isfinite().all()):
        raise ValueError("distances and values must be finite, found NaN or Inf: leave them out.")
    if bandwidth is not None and not bandwidth > 0:
        raise ValueError(f"bandwidth must be positive, found {bandwidth}: raise bandwidth.")
    h = _silverman(r) if bandwidth is None else float(bandwidth)
    if at is None:
        at = torch.linspace(float(r.min()), float(r.max()), PLACES, dtype=torch.float64)
    at = at.detach().double().cpu()
    checks.points(at[:, None], "at")
    weights = _weights(r, at, h)
    mean, weight = weights @ v, 1 / weights.square().sum(1)
    local_error = (weights * (v - mean[:, None])).norm(dim=1)
    half_width = Z95 * torch.maximum(local_error, _residual_std(r, v, h) / weight.sqrt())
    return Profile(
        at=at, mean=mean, low=mean - half_width, high=mean + half_width, weight=weight, bandwidth=h
    )


def _weights(
    r: Float64[Tensor, " m"], at: Float64[Tensor, " k"], h: float
) -> Float64[Tensor, "k m"]:
    """Return the kernel weight of each point at each position."""
    return torch.softmax(-((at[:, None] - r) / h).square() / 2, dim=1)


def _residual_std(r: Float64[Tensor, " m"], v: Float64[Tensor, " m"], h: float) -> float:
    """Return the standard deviation of residuals, corrected for the degrees of freedom.

    Zero where every point is its own smoothed mean.
    """
    chosen = (
        torch.linspace(0, len(r) - 1, min(len(r), max(FEWEST, WEIGHTS // len(r)))).round().long()
    )
    weights = _weights(r, r[chosen], h)
    degrees_of_freedom = len(chosen) - float(weights[torch.arange(len(chosen)), chosen].sum())
    residuals = v[chosen] - weights @ v
    return (
        float((residuals.square().sum() / degrees_of_freedom).sqrt())
        if degrees_of_freedom > 1e-9
        else 0.0
    )


def _silverman(r: Float64[Tensor, " m"]) -> float:
    """Return the bandwidth of Silverman's rule; 1 where all distances are equal."""
    if len(r) < 2:
        return 1.0
    quartiles = torch.quantile(r, torch.tensor([0.25, 0.75], dtype=torch.float64))
    estimates = [float(r.std()), float(quartiles.diff()) / 1.349]
    std = min(filter(None, estimates), default=0.0)
    return 0.9 * std * len(r) ** -0.2 or 1.0


def log_errors(errors: Float[Tensor, "..."]) -> Float64[Tensor, "..."]:
    """Return natural logarithms, with exact zeros replaced by the smallest error that is not.

    As in Klindt's maps (his code; erratum K8: maps show the negative of these). If the smallest is
    above 1e-8 of the largest, as where labels have few values, that replaces zeros.
    """
    errors = errors.detach().double()
    positive = errors[errors > 0]
    if not len(positive):
        return torch.full_like(errors, torch.finfo(torch.float64).tiny).log()
    return errors.clamp(min=min(float(positive.min()), SMALL * float(positive.max()))).log()
