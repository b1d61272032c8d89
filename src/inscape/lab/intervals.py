"""Intervals of 95% for few units: of proportions, of medians, of means with a heavy tail."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ends = tuple[float, float]

TAIL = 0.025
#: Standard errors on each side of a normal interval.
Z = 1.959963984540054
#: Draws of a studentised bootstrap.
DRAWS = 4000
#: A draw whose standard error is so small a fraction of the sample's own has none but rounding.
ROUNDING = 1e-9
#: Stands for infinity where percentiles are interpolated.
HUGE = 1e300


def clopper_pearson(successes: int, n: int) -> Ends:
    r"""Return the exact interval of a proportion, which is never too narrow.

    The ends are quantiles of beta distributions, :math:`B(k, n - k + 1)` and :math:`B(k + 1, n -
    k)`.

    >>> [round(end, 4) for end in clopper_pearson(5, 5)]
    [0.4782, 1.0]
    """
    from scipy.special import betaincinv

    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, TAIL))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1 - TAIL))
    return low, high


def sign_interval(units: Sequence[float]) -> Ends:
    """Return the exact interval of the median between two order statistics; needs six units.

    >>> sign_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
    (1.0, 6.0)
    """
    from scipy.stats import binom

    ordered = sorted(units)
    rank = int(binom.ppf(TAIL, len(ordered), 0.5))
    if rank == 0:
        return -math.inf, math.inf
    return ordered[rank - 1], ordered[-rank]


def studentised(
    units: Array, statistic: Callable[[Array], tuple[Array, Array]], seed: int = 0
) -> tuple[float, float, float]:
    r"""Return the ends of a studentised bootstrap interval, and the standard error.

    .. math:: [\theta - q_{0.975}\, s,\; \theta - q_{0.025}\, s], \quad q \text{ of }
              (\theta^* - \theta) / s^*

    Args:
        units: One row for each unit.
        statistic: Gives the value and its standard error for many samples at once, in the first
            axis.
        seed: Seed of the draws.
    """
    rolls = np.random.default_rng(seed).integers(len(units), size=(DRAWS, len(units)))
    value, se = (float(part[0]) for part in statistic(units[None]))
    values, errors = statistic(units[rolls])
    return *_studentised_ends(value, se, values, errors), se


def _studentised_ends(value: float, se: float, values: Array, errors: Array) -> Ends:
    """Return the ends that the draws give; infinite ones if too many draws have no error.

    A draw of equal units is infinitely many of its own standard errors away. To leave it out would
    leave out one side: of values at the end of their range all draws without the others are equal.
    """
    defined = np.isfinite(values) & np.isfinite(errors)
    if not se > 0 or 2 * (defined & (errors > ROUNDING * se)).sum() < len(values):
        return -math.inf, math.inf
    gaps, widths = values[defined] - value, errors[defined]
    gaps[np.abs(gaps) <= ROUNDING * se] = 0.0
    t = np.where(
        widths > ROUNDING * se, gaps / np.maximum(widths, ROUNDING * se), HUGE * np.sign(gaps)
    )
    lower, upper = np.quantile(t, [TAIL, 1 - TAIL]).tolist()
    if max(-lower, upper) > 1 / ROUNDING:
        return -math.inf, math.inf
    return value - upper * se, value - lower * se


def log_mean(samples: Array) -> tuple[Array, Array]:
    r"""Return :math:`\ln \bar x` and its standard error by the delta method, sample by sample."""
    mean = samples.mean(1)
    se = samples.std(1, ddof=1) / math.sqrt(samples.shape[1])
    return np.log(mean), se / mean


def log_ratio_of_means(samples: Array) -> tuple[Array, Array]:
    r"""Return :math:`\ln(\bar x / \bar y)` of pairs and its standard error by the delta method."""
    means = samples.mean(1)
    scaled = samples / means[:, None]
    se = (scaled[..., 0] - scaled[..., 1]).std(1, ddof=1) / math.sqrt(samples.shape[1])
    return np.log(means[:, 0] / means[:, 1]), se


def by_jackknife(
    entries: Sequence[Any], statistic: Callable[[Sequence[Any]], float], draws: int, seed: int
) -> tuple[float, float, float]:
    """Return a studentised interval of any statistic, its errors from leaving each unit out.

    Args:
        entries: One for each unit.
        statistic: Gives a number for a list of entries.
        draws: Samples of the bootstrap; each needs the statistic once for each unit.
        seed: Seed of the draws.
    """
    rolls = np.random.default_rng(seed).integers(len(entries), size=(draws, len(entries)))
    value, se = _left_out(entries, statistic)
    pairs = np.array([_left_out([entries[i] for i in roll], statistic) for roll in rolls.tolist()])
    return *_studentised_ends(value, se, pairs[:, 0], pairs[:, 1]), se


def _left_out(
    entries: Sequence[Any], statistic: Callable[[Sequence[Any]], float]
) -> tuple[float, float]:
    """Return a statistic and its jackknife standard error."""
    n = len(entries)
    parts = np.array([statistic([*entries[:i], *entries[i + 1 :]]) for i in range(n)])
    return float(statistic(entries)), math.sqrt((n - 1) ** 2 / n * float(parts.var(ddof=1)))
