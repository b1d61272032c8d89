"""Our number minus the published one, with its interval, and how many seeds would decide."""

import math
from dataclasses import dataclass, replace

import numpy as np

from inscape._core.result import wilson_ends
from inscape.lab.experiment import Estimate, Value
from inscape.lab.intervals import Z, clopper_pearson, log_mean, studentised
from inscape.lab.margins import half_unit, margin

#: A tolerance is written in decimals: 0.1 must allow 0.9 to be called 1.
ROUNDING = 1e-9
#: Beyond this relative standard error a printed number says little more than its order.
VAGUE = 0.5


@dataclass(frozen=True, kw_only=True)
class PublishedDifference:
    """Ours minus the published number with its 95% interval; of heavy tails, in logarithms.

    Attributes:
        value: The difference.
        low: Lower end of its interval.
        high: Upper end.
        margin: The largest difference that a reader would call none.
        se: Standard error of ours.
        published_se: That of the published number; 0 where it is exact or unknown.
        how: How the interval was made, in a few words.
    """

    value: float
    low: float
    high: float
    margin: float
    se: float
    published_se: float
    how: str

    @property
    def inside(self) -> bool:
        """Tell whether the whole interval lies within the margin."""
        allowed = self.margin * (1 + ROUNDING)
        return -allowed <= self.low and self.high <= allowed

    @property
    def outside(self) -> bool:
        """Tell whether the whole interval lies beyond the margin, on one side."""
        allowed = self.margin * (1 + ROUNDING)
        return self.low > allowed or self.high < -allowed

    @property
    def undecidable(self) -> bool:
        """Tell whether the published number alone is less certain than the margin."""
        return self.published_se > 0 and Z * self.published_se >= self.margin


def margin_of(claim: Value, *, exact: bool = False) -> float:
    """Return the margin of a claim: its tolerance, or that of its kind of quantity.

    Args:
        claim: The claim.
        exact: Whether no sampling enters: then half a unit of the last printed digit.
    """
    if claim.tolerance is not None:
        return claim.tolerance
    if exact:
        return half_unit(printed(claim.number))
    return margin(claim.kind, claim.number, of=claim.published_of)


def printed(number: float) -> str:
    """Return a number with the digits that it has: ``0.87``, ``616126``."""
    return str(int(number)) if number == int(number) else repr(float(number))


def difference(claim: Value, ours: Estimate) -> PublishedDifference:
    """Return our number minus the published one with the interval that both allow."""
    if ours.exact:
        off = ours.value - claim.number
        return _difference(claim, ours, (off, off, off), 0.0, "exact", exact=True)
    if claim.kind == "heavy-tailed":
        return _of_logarithms(claim, ours)
    if claim.published_units and len(claim.published_units) == len(ours.units):
        return _paired(claim, ours)
    if claim.published_of is not None:
        return _newcombe(claim, ours)
    se = claim.published_se or 0.0
    if ours.interval == "t" and ours.se > 0:
        ends = welch(ours.value - claim.number, (ours.se, ours.n), (se, claim.published_n))
        how = "Welch's interval" if se else "our interval alone"
        return _difference(claim, ours, (ours.value - claim.number, *ends), se, how)
    published = (claim.number - Z * se, claim.number + Z * se)
    ends = recovered(ours.value, (ours.low, ours.high), claim.number, published)
    how = "from both intervals" if se else "our interval alone"
    return _difference(claim, ours, (ours.value - claim.number, *ends), se, how)


def welch(
    off: float, ours: tuple[float, int], other: tuple[float, int | None]
) -> tuple[float, float]:
    r"""Return the ends of Welch's interval of a difference of two means.

    .. math:: \nu = (s_1^2 + s_2^2)^2 / (s_1^4 / (n_1 - 1) + s_2^4 / (n_2 - 1))

    Args:
        off: The difference.
        ours: Standard error, and over how many units.
        other: The same of the published number; taken as sure of its error where None.
    """
    from scipy.special import stdtrit

    (se, n), (published_se, published_n) = ours, other
    parts = se**4 / (n - 1)
    if published_n is not None and published_se > 0:
        parts += published_se**4 / (published_n - 1)
    both = se**2 + published_se**2
    half = float(stdtrit(both**2 / parts, 0.975)) * math.sqrt(both)
    return off - half, off + half


def recovered(
    a: float, ours: tuple[float, float], b: float, other: tuple[float, float]
) -> tuple[float, float]:
    r"""Return the ends of the interval of :math:`a - b` that two intervals give.

    .. math:: a - b - \sqrt{(a - l_a)^2 + (u_b - b)^2}, \quad
              a - b + \sqrt{(u_a - a)^2 + (b - l_b)^2}

    The method of variance estimates recovery (Zou and Donner, 2008); of Wilson's intervals it is
    Newcombe's (1998, his method 10).
    """
    low = a - b - math.hypot(a - ours[0], other[1] - b)
    return low, a - b + math.hypot(ours[1] - a, b - other[0])


def newcombe(ours: tuple[float, int], other: tuple[float, int]) -> tuple[float, float]:
    """Return the ends of Newcombe's interval of a difference of two proportions.

    Args:
        ours: Our proportion, and of how many runs.
        other: The same of the published one.
    """
    return recovered(ours[0], wilson_ends(*ours), other[0], wilson_ends(*other))


def seeds_to_decide(
    ends: tuple[float, float, float], span: tuple[float, float], n: int, published_se: float = 0.0
) -> int | None:
    """Return how many units would bring an interval to one side of its bounds; None if none can.

    Each half of the interval falls with the root of the number of units, but for the part that the
    published number has in it.

    Args:
        ends: The estimate and both ends of its interval.
        span: Both bounds; infinite where there is none.
        n: Units of the estimate.
        published_se: Standard error of the published number.
    """
    value, low, high = ends
    if value > span[1]:
        halves = [(value - low, value - span[1])]
    elif value < span[0]:
        halves = [(high - value, span[0] - value)]
    else:
        halves = [(value - low, value - span[0]), (high - value, span[1] - value)]
    fixed, needed = (Z * published_se) ** 2, n + 1
    for half, room in halves:
        if math.isinf(half) or room**2 <= fixed:
            return None
        needed = max(needed, math.ceil(n * (half**2 - fixed) / (room**2 - fixed) - ROUNDING))
    return needed


def _difference(
    claim: Value,
    ours: Estimate,
    ends: tuple[float, float, float],
    published_se: float,
    how: str,
    *,
    exact: bool = False,
) -> PublishedDifference:
    value, low, high = ends
    return PublishedDifference(
        value=value, low=low, high=high, margin=margin_of(claim, exact=exact), se=ours.se,
        published_se=published_se, how=how,
    )  # fmt: skip


def _paired(claim: Value, ours: Estimate) -> PublishedDifference:
    """Compare data set by data set: what they share cancels."""
    gaps = np.asarray(ours.units) - np.asarray(claim.published_units)
    n = len(gaps)
    off, se = float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(n)
    ends = welch(off, (se, n), (0.0, None)) if se > 0 else (off, off)
    how = f"paired t interval over {n} data sets"
    return PublishedDifference(
        value=off, low=ends[0], high=ends[1], margin=margin_of(claim), se=se, published_se=0.0,
        how=how,
    )  # fmt: skip


def _newcombe(claim: Value, ours: Estimate) -> PublishedDifference:
    """Compare two proportions, in the units of the printed number."""
    assert claim.published_of is not None  # asked before
    scale = {"count": float(claim.published_of), "percentage": 100.0}.get(claim.kind, 1.0)
    published = claim.number / scale
    published_se = math.sqrt(published * (1 - published) / claim.published_of)
    interval = (ours.low / scale, ours.high / scale)
    if ours.interval == "binomial":
        interval = wilson_ends(ours.value / scale, ours.n)
    low, high = recovered(
        ours.value / scale, interval, published, wilson_ends(published, claim.published_of)
    )
    ends = (ours.value - claim.number, low * scale, high * scale)
    return _difference(claim, ours, ends, published_se * scale, "Newcombe's interval")


def _of_logarithms(claim: Value, ours: Estimate) -> PublishedDifference:
    """Compare the logarithms of two arithmetic means, ours by a studentised bootstrap."""
    value = math.log(ours.value)
    low, high, se = studentised(np.asarray(ours.units, dtype=float), log_mean)
    published = math.log(claim.number)
    half = Z * (claim.published_se or 0.0) / claim.number
    ends = recovered(value, (low, high), published, (published - half, published + half))
    return PublishedDifference(
        value=value - published, low=ends[0], high=ends[1], margin=margin_of(claim), se=se,
        published_se=half / Z, how="studentised bootstrap of the log of the mean",
    )  # fmt: skip


def with_positive_ends(ours: Estimate) -> Estimate:
    """Return a positive mean with the interval of its logarithm, which holds no negative number."""
    low, high, _ = studentised(np.asarray(ours.units, dtype=float), log_mean)
    method = f"studentised bootstrap of the log of the mean over {ours.n} values"
    return replace(
        ours, low=math.exp(low), high=math.exp(high), method=method, interval="studentised"
    )


def all_equal(ours: Estimate) -> bool:
    """Tell whether units or draws are all the same, so that their interval has no width."""
    if ours.exact or ours.interval in ("binomial", "resampled"):
        return False
    return ours.se == 0 or (len(ours.units) > 1 and len(set(ours.units)) == 1)


def as_proportion(ours: Estimate) -> Estimate | None:
    """Return an estimate of equal units that are all 0 or all 1 with the exact interval, if so."""
    if ours.value not in (0.0, 1.0):
        return None
    low, high = clopper_pearson(int(ours.value) * ours.n, ours.n)
    method = f"Clopper and Pearson's interval: all {ours.n} units are equal"
    return Estimate(
        value=ours.value, low=low, high=high, se=0.0, n=ours.n, method=method,
        interval="binomial", units=ours.units,
    )  # fmt: skip
