"""Differences and rank correlations against closed forms, SciPy and simulations."""

import math

import numpy as np
import pytest
from scipy import stats

from inscape.lab import comparison
from inscape.lab.comparison import (
    NetworkQuantity,
    difference,
    independence_p,
    paired_fractions,
    rank_correlation,
    welch_difference,
)
from repeated import repeated


def quantity(samples, sampling="seed 0") -> NetworkQuantity:
    values = np.asarray(samples, dtype=float)
    return NetworkQuantity(value=float(values.mean()), samples=values, sampling=sampling)


def test_the_same_samples_are_compared_in_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 50), rng.normal(0, 1, 50)
    result = difference(quantity(a), quantity(b))
    theirs = stats.ttest_rel(a, b).confidence_interval()
    assert result.value == pytest.approx(a.mean() - b.mean())
    assert (result.low, result.high) == pytest.approx((theirs.low, theirs.high))
    assert result.method == "paired t interval over 50 values"


@pytest.mark.parametrize("other", ["seed 1", "fewer"])
def test_other_samples_are_compared_by_welch(other):
    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 1, 50), rng.normal(0, 3, 30 if other == "fewer" else 50)
    result = difference(quantity(a), quantity(b, "seed 0" if other == "fewer" else other))
    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (result.low, result.high) == pytest.approx((theirs.low, theirs.high))
    assert result.method.startswith("unpaired, Welch's interval over 50 and")


def test_pairs_give_a_narrower_interval_where_samples_go_together():
    rng = np.random.default_rng(2)
    hard = rng.exponential(5, 200)
    a, b = hard + rng.normal(0.1, 0.1, 200), hard + rng.normal(0, 0.1, 200)
    paired, apart = difference(quantity(a), quantity(b)), welch_difference(a, b)
    assert paired.high - paired.low < 0.1 * (apart.high - apart.low)


def test_lopsided_intervals_stay_lopsided():
    first = NetworkQuantity(value=5, low=4, high=8)
    result = difference(first, NetworkQuantity(value=2, low=1.5, high=2.1))
    assert result.low == pytest.approx(3 - math.hypot(1, 0.1))
    assert result.high == pytest.approx(3 + math.hypot(3, 0.5))
    assert result.method == "unpaired, from both intervals"


def test_what_has_no_interval_is_said():
    result = difference(NetworkQuantity(value=5), NetworkQuantity(value=2, low=1, high=3))
    assert result.value == 3
    assert math.isnan(result.low)
    assert result.method == "no interval: at least one number has none"
    exact = difference(NetworkQuantity(value=5, exact=True), NetworkQuantity(value=2, exact=True))
    assert (exact.low, exact.high, exact.exact) == (3, 3, True)
    assert "one sample has no interval" in welch_difference([1.0], [2.0, 3.0]).method
    assert "all samples are equal" in welch_difference([1.0, 1.0], [2.0, 2.0]).method


def test_fractions_without_any_difference_keep_an_interval():
    result = paired_fractions([1, 1, 0, 1], [1, 1, 0, 1])
    assert result.value == 0
    assert result.low < 0 < result.high


@pytest.mark.parametrize(
    ("n", "up", "down"), [(50, 0.09, 0.01), (80, 0.24, 0.16), (60, 0.02, 0.02)]
)
def test_intervals_of_paired_fractions_cover(n, up, down):
    """Exactly: over all counts of samples that only the first, or only the second, has right."""
    law = stats.multinomial(n, [up, down, 1 - up - down])
    covered = 0.0
    for more in range(n + 1):
        for less in range(n + 1 - more):
            chance = law.pmf([more, less, n - more - less])
            if chance > 1e-9:
                first = np.arange(n) < more
                second = (np.arange(n) >= more) & (np.arange(n) < more + less)
                result = paired_fractions(first, second)
                covered += chance * (result.low <= up - down <= result.high)
    assert covered > 0.94


def test_intervals_of_paired_means_cover():
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(500):
        hard = rng.exponential(1, 60)
        a, b = hard * rng.gamma(4, 0.5, 60), hard * rng.gamma(4, 0.25, 60)
        result = difference(quantity(a), quantity(b))
        covered += result.low <= 1.0 <= result.high
    assert covered / 500 > 0.9  # skewed samples; the paired t interval has 95% for normal ones


@pytest.mark.parametrize("ties", [False, True])
def test_tau_and_p_are_those_of_scipy(ties):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=12), rng.normal(size=12)
    if ties:
        x, y = x.round(), y.round()
    theirs = stats.kendalltau(x, y)
    assert rank_correlation(x, y).value == pytest.approx(theirs.statistic)
    assert independence_p(x, y) == pytest.approx(theirs.pvalue)


def test_draws_of_a_bootstrap_have_the_tau_of_scipy():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=9), rng.normal(size=9)
    rolls = np.random.default_rng(3).integers(9, size=(comparison.DRAWS, 9))
    theirs = [stats.kendalltau(x[roll], y[roll]).statistic for roll in rolls[:40]]
    np.testing.assert_allclose(comparison._drawn_taus(x, y, 3)[:40], theirs)


@pytest.mark.parametrize(("n", "rho"), [(10, 0.0), (10, 0.7), (20, 0.9)])
def test_intervals_of_tau_cover(n, rho, monkeypatch):
    monkeypatch.setattr(comparison, "DRAWS", 400)
    rng = np.random.default_rng(6)
    truth, covered = 2 / math.pi * math.asin(rho), 0
    for seed in repeated(range(150)):
        x = rng.normal(size=n)
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)
        result = rank_correlation(x, y, seed=seed)
        covered += result.low <= truth <= result.high
    assert covered / 150 > 0.9


def test_one_order_of_all_networks_has_an_exact_bound_on_one_side():
    result = rank_correlation(range(10), range(10))
    assert result.value == 1
    assert (result.low, result.high) == (pytest.approx(2 * 0.05 ** (1 / 5) - 1), 1)
    assert result.method == "all 10 networks in one order: exact one-sided bound from 5 pairs"
    back = rank_correlation(range(10), range(10, 0, -1))
    assert (back.low, back.high) == (-1, -result.low)


def test_too_few_networks_and_constant_columns_are_said():
    assert rank_correlation([1, 2, 3], [1, 2, 3]).method == (
        "no interval: 3 networks are too few, 4 are needed"
    )
    constant = rank_correlation([1, 2, 3, 4], [1, 1, 1, 1])
    assert math.isnan(constant.value)
    assert constant.method == "no correlation: one side is the same for all"
