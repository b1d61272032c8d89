"""Intervals for few units, against SciPy, brute force and simulated coverage."""

import itertools
import math

import numpy as np
import pytest

from inscape._core.result import CORRELATION
from inscape.lab.intervals import (
    by_jackknife,
    clopper_pearson,
    log_mean,
    log_ratio_of_means,
    sign_interval,
    studentised,
)
from inscape.lab.statistics import bootstrap_estimate, resampled, resampled_statistic, unrepeated


@pytest.mark.parametrize(("k", "n"), [(0, 1), (3, 3), (5, 5), (0, 100), (7, 20), (99, 100)])
def test_clopper_and_pearson_is_that_of_scipy(k, n):
    from scipy.stats import binomtest

    theirs = binomtest(k, n).proportion_ci(method="exact")
    assert clopper_pearson(k, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.97])
def test_clopper_and_pearson_covers_at_least_95_of_100_by_full_enumeration(p):
    n, covered = 30, 0.0
    for k in range(n + 1):
        low, high = clopper_pearson(k, n)
        covered += math.comb(n, k) * p**k * (1 - p) ** (n - k) * (low <= p <= high)
    assert covered >= 0.95


@pytest.mark.parametrize("n", [6, 8, 9, 12])
def test_the_sign_interval_covers_the_median_by_full_enumeration(n):
    # Only on which side of the median each unit lies matters: all 2^n ways are equally likely.
    low, high = sign_interval(list(range(n)))  # ranks of the two ends
    inside = sum(low < sum(sides) <= high for sides in itertools.product((0, 1), repeat=n))
    assert inside / 2**n >= 0.95
    narrower = sum(
        low + 1 < sum(sides) <= high - 1 for sides in itertools.product((0, 1), repeat=n)
    )
    assert narrower / 2**n < 0.95


def test_five_units_have_no_sign_interval():
    assert sign_interval([1.0, 2.0, 3.0, 4.0, 5.0]) == (-math.inf, math.inf)


def test_the_error_of_a_log_mean_is_that_of_the_jackknife():
    x = np.random.default_rng(0).lognormal(size=200)
    value, se = (float(part[0]) for part in log_mean(x[None]))
    assert value == pytest.approx(math.log(x.mean()), rel=1e-14)
    left = np.array([math.log(np.delete(x, i).mean()) for i in range(200)])
    assert se == pytest.approx(math.sqrt(199**2 / 200 * left.var(ddof=1)), rel=0.05)


def test_a_log_ratio_of_equal_columns_is_nothing_and_of_scaled_ones_the_scale():
    x = np.random.default_rng(1).lognormal(size=12)
    value, se = log_ratio_of_means(np.stack([3 * x, x], axis=1)[None])
    assert float(value[0]) == pytest.approx(math.log(3))
    assert float(se[0]) == pytest.approx(0.0, abs=1e-15)
    value, _ = log_ratio_of_means(np.stack([np.ones(12), x], axis=1)[None])
    assert float(value[0]) == pytest.approx(-math.log(x.mean()))


def test_studentised_intervals_cover_the_mean_of_a_skewed_law_better_than_percentiles():
    rng = np.random.default_rng(0)
    truth, rounds, hits, plain = math.log(math.exp(0.5)), 200, 0, 0
    for _ in range(rounds):
        x = rng.lognormal(size=10)
        low, high, _ = studentised(x, log_mean)
        hits += low <= truth <= high
        drawn = np.log(x[rng.integers(10, size=(500, 10))].mean(1))
        plain += np.quantile(drawn, 0.025) <= truth <= np.quantile(drawn, 0.975)
    assert hits / rounds > 0.88
    assert hits > plain + 0.03 * rounds


def test_the_studentised_interval_of_a_mean_is_that_of_scipy():
    x = np.random.default_rng(3).normal(size=9)

    def mean(samples):
        return samples.mean(1), samples.std(1, ddof=1) / 3

    rolls = np.random.default_rng(0).integers(9, size=(4000, 9))
    means, errors = x[rolls].mean(1), x[rolls].std(1, ddof=1) / 3
    t = (means - x.mean()) / errors
    se = x.std(ddof=1) / 3
    low, high, error = studentised(x, mean)
    assert error == pytest.approx(se)
    assert low == pytest.approx(x.mean() - np.quantile(t, 0.975) * se)
    assert high == pytest.approx(x.mean() - np.quantile(t, 0.025) * se)


def test_the_jackknife_error_of_a_mean_is_its_standard_error():
    x = list(np.random.default_rng(5).normal(size=8))
    low, high, se = by_jackknife(x, lambda part: float(np.mean(part)), 400, 0)
    assert se == pytest.approx(np.std(x, ddof=1) / math.sqrt(8))
    assert low < np.mean(x) < high


def test_a_constant_statistic_has_no_studentised_interval():
    assert by_jackknife([1.0, 2.0, 3.0], lambda part: 7.0, 50, 0)[:2] == (-math.inf, math.inf)
    assert studentised(np.ones(6), log_mean)[:2] == (-math.inf, math.inf)


def test_draws_without_an_error_count_as_far_away_and_not_as_absent():
    # nine of ten at the end of the range: a third of all draws are without the tenth, and equal
    taus = [1.0] * 9 + [0.85]
    low, high, se = by_jackknife(taus, lambda part: float(np.mean(part)), 400, 0)
    assert (low, high) == (-math.inf, math.inf)
    assert se == pytest.approx(0.015)
    estimate = bootstrap_estimate(taus, within=CORRELATION)
    assert estimate.interval == "percentile"
    assert estimate.low < 0.97 < estimate.high == 1.0


def test_errors_that_are_rounding_alone_are_none():
    # a third of all draws have no 0.9, and an error of 1e-17: the interval reached up to 1e15
    units = [0.3] * 5 + [0.1 + 0.2] * 4 + [0.9]
    low, high, _ = by_jackknife(units, lambda part: float(np.mean(part)), 400, 0)
    assert (low, high) == (-math.inf, math.inf)


def test_no_bootstrap_interval_of_a_correlation_reaches_beyond_one():
    taus = [0.99, 0.2, 0.95, 0.97, 0.9, 0.5]
    wide, cut = bootstrap_estimate(taus), bootstrap_estimate(taus, within=CORRELATION)
    assert wide.interval == cut.interval == "studentised"
    assert wide.low < -1
    assert (cut.low, cut.high) == (-1.0, wide.high)


def test_a_bootstrap_says_which_kind_of_interval_it_has():
    rng = np.random.default_rng(0)
    kinds = {n: bootstrap_estimate(rng.normal(size=n), draws=200).interval for n in (3, 5, 19, 20)}
    assert kinds == {3: "percentile", 5: "studentised", 19: "studentised", 20: "percentile"}
    assert bootstrap_estimate([1.0] * 8).interval == "percentile"  # a constant has no error
    assert bootstrap_estimate([1.0] * 8).se == 0


def test_what_runs_give_together_is_judged_over_resampled_sets():
    least = resampled_statistic([3.0] * 60 + [5.0] * 40, min)
    assert (least.value, least.low, least.high, least.n) == (3.0, 3.0, 3.0, 100)
    rare = resampled_statistic([3.0] + [5.0] * 99, min)  # 37% of the sets miss it
    assert (rare.low, rare.high) == (3.0, 5.0)
    some = resampled(2.0, [1.0, 2.0, math.nan], 3)
    assert (some.low, some.high) == (1.0, 2.0)
    assert some.interval == "resampled"


def test_what_was_found_once_has_no_interval():
    once = unrepeated(4.0, "best of all")
    assert (once.low, once.high, once.n, once.exact) == (-math.inf, math.inf, 1, False)
