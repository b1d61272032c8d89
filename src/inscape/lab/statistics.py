"""The few statistics behind the verdicts: rank correlation, and means with an interval of 95%.

Nothing here guesses. One value has no interval, so it gets an infinite one; a value that is not a
number makes the estimate not a number; both are said in ``Estimate.method``.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.result import REAL, Range, wilson_ends
from inscape.lab.experiment import Estimate
from inscape.lab.intervals import by_jackknife

Numbers = Sequence[Any] | npt.NDArray[Any]

LEVEL = 0.95
#: Entries of the table of pairs that are held in memory at once.
BLOCK = 1 << 22
#: From so many units on a bootstrap's percentiles are an interval, from so many a studentised one.
PERCENTILES, STUDENTISED = 20, 5
#: Draws of a studentised bootstrap, each of which leaves every unit out in turn.
JACKKNIFES = 400


def kendall_tau(x: Numbers, y: Numbers) -> float:
    r"""Return Kendall's rank correlation :math:`\tau_b`, exact with ties.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(N - T_x)(N - T_y)}}

    where :math:`C` of the :math:`N` pairs are in the same order in both, :math:`D` in opposite
    order, and :math:`T` are tied. Counts are integers, so only the last division rounds.
    Undefined, and NaN, where one side is constant or holds a NaN.

    >>> kendall_tau([1, 2, 3, 4], [1, 3, 2, 4])
    0.6666666666666666
    """
    first, second = (np.asarray(side, dtype=float).ravel() for side in (x, y))
    if first.size != second.size:
        raise ValueError(
            f"kendall_tau needs two sides of one length, found {first.size} and {second.size}: "
            "give one pair for each point."
        )
    if np.isnan(first).any() or np.isnan(second).any():
        return math.nan
    ranks = [np.unique(side, return_inverse=True)[1] for side in (first, second)]
    untied = [_untied_pairs(np.bincount(side)) for side in ranks]
    if not all(untied):
        return math.nan
    return _balance(*ranks) / math.sqrt(untied[0] * untied[1])


def _balance(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> int:
    """Return the pairs in the same order minus those in opposite order."""
    rows = max(1, BLOCK // len(x))
    twice = 0  # each pair is seen from both of its ends
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        orders = (np.sign(side[part, None] - side[None, :]).astype(np.int8) for side in (x, y))
        twice += int(np.multiply(*orders).sum(dtype=np.int64))
    return twice // 2


def _untied_pairs(counts: npt.NDArray[Any]) -> int:
    """Return how many pairs differ, where each value occurs so often."""
    sizes = [int(count) for count in counts]
    return math.comb(sum(sizes), 2) - sum(math.comb(size, 2) for size in sizes)


def tau_ceiling(repeats: Sequence[int]) -> float:
    r"""Return the largest :math:`\tau_b` that a quantity without ties can reach.

    Runs of one size are tied in size, whatever the quantity does, so :math:`\tau_b` stays below 1.

    Args:
        repeats: How many runs there are of each size.

    >>> tau_ceiling([3] * 8) == math.sqrt(252 / 276)  # the eight sizes of the thesis
    True
    """
    pairs = math.comb(sum(repeats), 2)
    if len(repeats) < 2 or min(repeats) < 1:
        raise ValueError(
            f"tau_ceiling needs at least two sizes with one run each, found {list(repeats)}."
        )
    return math.sqrt(_untied_pairs(np.asarray(repeats)) / pairs)


def mean_estimate(values: Numbers, *, within: Range = REAL) -> Estimate:
    r"""Return the mean with its standard error :math:`s / \sqrt n` and Student's interval.

    Args:
        values: One number for each data set or network.
        within: Range of such a number; what of the interval lies beyond it is cut off, which
            the mean cannot be, so that the interval holds it as often.
    """
    mean = _mean(_line(values, "mean_estimate"), "t interval")
    if not math.isfinite(mean.se):
        return mean
    return replace(mean, low=max(mean.low, within[0]), high=min(mean.high, within[1]))


def exact_estimate(value: float, n: int = 1, method: str = "") -> Estimate:
    """Return a number that was counted or computed exactly: its interval is the number itself.

    Args:
        value: The number.
        n: How many things it was counted over.
        method: How it was found, in a few words.
    """
    return Estimate(
        value=value, low=value, high=value, se=0.0, n=n, exact=True, method=method, interval="exact"
    )


def unrepeated(value: float, method: str) -> Estimate:
    """Return an extreme or a count over trained networks that was found once: without interval.

    Args:
        value: The number.
        method: How it was found, in a few words.
    """
    return Estimate(
        value=value, low=-math.inf, high=math.inf, se=math.inf, n=1, method=method, interval="none"
    )


def resampled(
    value: float, draws: Iterable[float], n: int, method: str = "runs drawn again"
) -> Estimate:
    """Return what so many runs give together, such as a minimum, over resampled sets of them.

    Equal draws are an answer here: another set of runs gives the same.

    Args:
        value: What the runs give.
        draws: What resampled sets of as many runs give.
        n: How many runs are in a set.
        method: How the sets were drawn, in a few words.
    """
    drawn = np.fromiter(draws, dtype=float)
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest").tolist()
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), se=float(drawn.std()), n=n,
        method=f"{method}: {drawn.size:,} sets of {n:,}", interval="resampled",
    )  # fmt: skip


def resampled_statistic(
    runs: Sequence[Any], statistic: Callable[[Sequence[Any]], float], draws: int = 1000
) -> Estimate:
    """Return a statistic of a set of runs, such as their minimum, over resampled sets."""
    rolls = np.random.default_rng(0).integers(len(runs), size=(draws, len(runs))).tolist()
    again = (statistic([runs[i] for i in roll]) for roll in rolls)
    return resampled(float(statistic(runs)), again, len(runs))


def proportion_estimate(successes: int, n: int, *, over: str = "") -> Estimate:
    """Return the fraction of ``n`` trials that succeed, with Wilson's interval of 95%.

    Args:
        successes: How many succeed.
        n: How many trials there are.
        over: What the trials are, for the page; so many networks by default.

    >>> round(proportion_estimate(0, 100).high, 3)
    0.037
    """
    p = successes / n
    low, high = wilson_ends(p, n)
    return Estimate(
        value=p,
        low=max(0.0, low),
        high=min(1.0, high),
        se=math.sqrt(p * (1 - p) / n),
        n=n,
        method=f"Wilson's interval over {over or f'{n} networks'}",
        interval="binomial",
    )


def proportion_of(successes: Sequence[bool]) -> Estimate:
    """Return the fraction of networks that succeed, with Wilson's interval of 95%."""
    return proportion_estimate(sum(successes), len(successes))


def proportion_difference(ones: Sequence[bool], others: Sequence[bool]) -> Estimate:
    """Return the first fraction minus the second, with Newcombe's interval made of Wilson's two."""
    a, b = proportion_of(ones), proportion_of(others)
    gap = a.value - b.value
    return Estimate(
        value=gap,
        low=gap - math.hypot(a.value - a.low, b.high - b.value),
        high=gap + math.hypot(a.high - a.value, b.value - b.low),
        se=math.hypot(a.se, b.se),
        n=min(a.n, b.n),
        method=f"Newcombe's interval over {a.n} and {b.n} networks",
        interval="binomial",
    )


def log_slope(x: Numbers, y: Numbers) -> float:
    """Return the power with which ``y`` grows: the slope of its logarithm on that of ``x``.

    >>> round(log_slope([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    across, up = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    across = across - across.mean()
    return float(across @ up / (across @ across))


def paired_difference(a: Numbers, b: Numbers) -> Estimate:
    """Return the mean of ``a - b``, pair by pair, with the interval of the paired t test."""
    first, second = (_line(side, "paired_difference") for side in (a, b))
    if first.size != second.size:
        raise ValueError(
            f"paired_difference needs two sides of one length, found {first.size} and "
            f"{second.size}: give the same data sets in the same order."
        )
    return _mean(first - second, "paired t interval")


def bootstrap_estimate(
    values_by_dataset: Mapping[Any, Any] | Numbers,
    statistic: Callable[[Sequence[Any]], float] | None = None,
    draws: int = 2000,
    seed: int = 0,
    *,
    within: Range = REAL,
) -> Estimate:
    """Return a statistic with the interval of a bootstrap over data sets.

    Whole data sets are drawn, with replacement: runs on one data set are not independent. The
    interval is that between percentiles where there are 20 data sets or more; of 5 to 19 it is
    studentised, by the jackknife, where the statistic is smooth enough to have an error in nearly
    all draws. Where it has not, percentiles are shown, which are too few data sets for a verdict.

    Args:
        values_by_dataset: One entry for each data set: a number, or all that the statistic needs
            of it.
        statistic: Gives a number for a list of such entries; the mean by default.
        draws: How many times as many data sets are drawn as there are.
        seed: Seed of the draws; the global generator is left alone.
        within: Range of the statistic; what of the interval lies beyond it is cut off.
    """
    values = values_by_dataset
    entries = list(values.values() if isinstance(values, Mapping) else values)
    if not entries:
        raise ValueError("bootstrap_estimate needs at least one data set, found none.")
    of = statistic or _plain_mean
    value, n = float(of(entries)), len(entries)
    units = tuple(map(float, entries)) if statistic is None else ()  # of a mean they are kept
    if math.isnan(value):
        return _not_a_number(n, "the statistic of all data sets is not a number")
    if n == 1:
        return _single(value)
    if STUDENTISED <= n < PERCENTILES:
        low, high, se = by_jackknife(entries, of, min(draws, JACKKNIFES), seed)
        if math.isfinite(low):
            low, high = max(low, within[0]), min(high, within[1])
            return Estimate(
                value=value, low=low, high=high, se=se, n=n, interval="studentised", units=units,
                method=f"studentised bootstrap over {n} data sets",
            )  # fmt: skip
    rolls = np.random.default_rng(seed).integers(n, size=(draws, n))
    drawn = np.array([of([entries[i] for i in roll]) for roll in rolls.tolist()], dtype=float)
    return replace(_percentiles(value, drawn, n), units=units)


def _percentiles(value: float, drawn: npt.NDArray[Any], n: int) -> Estimate:
    """Return the interval between percentiles; draws without a number are left out and counted."""
    good = drawn[np.isfinite(drawn)]
    if 2 * good.size < drawn.size:
        return _not_a_number(n, f"{drawn.size - good.size} of {drawn.size} draws have no number")
    lost = f", {drawn.size - good.size} of them without a number" * (good.size < drawn.size)
    if (good == value).all():
        method, low, high, se = "every draw gives the same number", value, value, 0.0
    else:
        low, high = np.quantile(good, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
        se = float(good.std(ddof=1))
        method = f"bootstrap over {n} data sets, {drawn.size:,} draws"
    return Estimate(
        value=value, low=low, high=high, se=se, n=n, method=method + lost, interval="percentile"
    )


def _mean(values: npt.NDArray[Any], name: str) -> Estimate:
    n = values.size
    if bad := int((~np.isfinite(values)).sum()):
        return _not_a_number(n, f"{bad} of {n} values {'is' if bad == 1 else 'are'} not finite")
    if n == 1:
        return _single(float(values[0]))
    if (values == values[0]).all():  # spread is 0, not what rounding of the mean leaves
        same = float(values[0])
        method = f"all {n} values are equal"
        return _of_units(values, (same, same, same), 0.0, method)
    from scipy.stats import t

    mean, se = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(n)
    half = float(t.ppf((1 + LEVEL) / 2, n - 1)) * se
    return _of_units(values, (mean, mean - half, mean + half), se, f"{name} over {n} values")


def _of_units(
    values: npt.NDArray[Any], ends: tuple[float, float, float], se: float, method: str
) -> Estimate:
    """Return an estimate of a mean that keeps the values it was taken over."""
    return Estimate(
        value=ends[0], low=ends[1], high=ends[2], se=se, n=values.size, method=method,
        interval="t", units=tuple(values.tolist()),
    )  # fmt: skip


def _line(values: Numbers, name: str) -> npt.NDArray[Any]:
    line = np.asarray(values, dtype=float)
    if line.ndim != 1 or not line.size:
        raise ValueError(
            f"{name} needs a list of at least one number, found shape {line.shape}: "
            "give one number for each data set or network."
        )
    return line


def _plain_mean(values: Sequence[Any]) -> float:
    """Return the mean; that of equal numbers is the number itself, without rounding."""
    first = values[0]
    if all(value == first for value in values):
        return float(first)
    return math.fsum(values) / len(values)


def _single(value: float) -> Estimate:
    """Return an estimate from one value: nobody knows how far off it is."""
    method = "one value has no interval"
    return Estimate(
        value=value, low=-math.inf, high=math.inf, se=math.inf, n=1, method=method,
        interval="none", units=(value,),
    )  # fmt: skip


def _not_a_number(n: int, method: str) -> Estimate:
    nan = math.nan
    return Estimate(value=nan, low=nan, high=nan, se=nan, n=n, method=method, interval="none")
