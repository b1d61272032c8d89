"""Differences from published numbers: published examples, SciPy, simulated coverage and size."""

import math

import numpy as np
import pytest

from inscape.lab.equivalence import (
    difference,
    margin_of,
    newcombe,
    printed,
    recovered,
    seeds_to_decide,
    welch,
)
from inscape.lab.experiment import Estimate, Value
from inscape.lab.statistics import mean_estimate, proportion_estimate


def value(published=0.5, **more):
    return Value(name="v", says="It is.", of="q", published=published, **more)


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [  # Newcombe (1998), table II, method 10
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0000),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombes_interval_is_that_of_his_table(a, b, low, high):
    ends = newcombe((a[0] / a[1], a[1]), (b[0] / b[1], b[1]))
    assert ends == pytest.approx((low, high), abs=5e-5)


def test_welch_is_that_of_scipy():
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=9), rng.normal(scale=3, size=14)
    theirs = ttest_ind(x, y, equal_var=False).confidence_interval()
    pair = (x.std(ddof=1) / 3, 9), (y.std(ddof=1) / math.sqrt(14), 14)
    assert welch(x.mean() - y.mean(), *pair) == pytest.approx((theirs.low, theirs.high))


def test_welch_of_a_sure_number_is_the_interval_of_one_sample():
    ours = mean_estimate([1.0, 2.0, 4.0, 3.0, 7.0])
    low, high = welch(ours.value - 1.0, (ours.se, ours.n), (0.0, None))
    assert (low, high) == pytest.approx((ours.low - 1, ours.high - 1))
    one = difference(value(1.0, tolerance=1.0), ours)
    assert (one.low, one.high, one.how) == (low, high, "our interval alone")


def test_recovered_intervals_of_normal_ones_are_normal():
    low, high = recovered(2.0, (1.4, 2.6), 1.0, (0.2, 1.8))
    assert (low, high) == pytest.approx((0.0, 2.0))
    assert recovered(2.0, (1.0, 5.0), 1.0, (1.0, 1.0)) == pytest.approx((0.0, 4.0))


def test_a_published_error_is_that_of_both():
    ours = mean_estimate([1.0, 2.0, 4.0, 3.0, 7.0])
    claim = value(3.0, published_se=0.5, published_n=20)
    one = difference(claim, ours)
    assert (one.low, one.high) == pytest.approx(welch(0.4, (ours.se, 5), (0.5, 20)))
    assert one.how == "Welch's interval"


def test_a_verdict_of_equivalence_is_wrong_in_2_and_a_half_of_100_on_the_edge():
    # The truth is off by exactly the margin: at most 2.5% may be called reproduced.
    rng, rounds = np.random.default_rng(0), 4000
    x = rng.normal(size=(rounds, 12))
    se = x.std(1, ddof=1) / math.sqrt(12)
    from scipy.stats import t

    claim, called = value(0.0, tolerance=1.2), 0
    for row, error in zip(x[:400], se[:400], strict=True):  # the function itself
        mean = 1.2 + float(row.mean())
        ours = Estimate(value=mean, low=0, high=0, se=float(error), n=12, interval="t")
        called += difference(claim, ours).inside
    assert called / 400 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 400)
    half = t.ppf(0.975, 11) * se  # and its closed form, on more rounds
    rate = float(((1.2 + x.mean(1) + half <= 1.2) & (1.2 + x.mean(1) - half >= -1.2)).mean())
    assert abs(rate - 0.025) < 3 * math.sqrt(0.025 * 0.975 / rounds)


def test_welch_covers_the_difference_of_two_noisy_numbers():
    rng, rounds, hits = np.random.default_rng(1), 400, 0
    for _ in range(rounds):
        x, y = rng.normal(size=8), rng.normal(scale=2, size=10)
        ends = welch(
            x.mean() - y.mean(),
            (x.std(ddof=1) / math.sqrt(8), 8),
            (y.std(ddof=1) / math.sqrt(10), 10),
        )
        hits += ends[0] <= 0 <= ends[1]
    assert abs(hits / rounds - 0.95) < 3 * math.sqrt(0.05 * 0.95 / rounds)


def test_newcombe_covers_the_difference_by_full_enumeration():
    n, m, p, q, covered = 25, 20, 0.1, 0.3, 0.0
    for i in range(n + 1):
        for j in range(m + 1):
            low, high = newcombe((i / n, n), (j / m, m))
            weight = math.comb(n, i) * p**i * (1 - p) ** (n - i)
            weight *= math.comb(m, j) * q**j * (1 - q) ** (m - j)
            covered += weight * (low <= p - q <= high)
    assert 0.93 < covered < 0.985


def test_so_many_seeds_do_decide():
    claim = value(0.5, tolerance=0.1)
    ours = proportion_estimate(54, 100)
    one = difference(claim, ours)
    assert not one.inside
    assert not one.outside
    seeds = seeds_to_decide((one.value, one.low, one.high), (-0.1, 0.1), ours.n)
    # Whole networks at 54%, and Wilson's interval shrinks a little slower than the root.
    enough, few = 50 * math.ceil(1.1 * seeds / 50), 50 * (seeds // 100)
    assert difference(claim, proportion_estimate(27 * enough // 50, enough)).inside
    assert not difference(claim, proportion_estimate(27 * few // 50, few)).inside


def test_no_seeds_decide_where_the_published_error_fills_the_gap():
    ends = (0.0, -0.3, 0.3)
    assert seeds_to_decide(ends, (-0.2, 0.2), 10) == 23  # (0.3 / 0.2)^2 times as many
    assert seeds_to_decide(ends, (-0.2, 0.2), 10, 0.11) is None
    assert seeds_to_decide(ends, (-0.2, 0.2), 10, 0.05) > 23
    assert seeds_to_decide(ends, (0.0, 1.0), 10) is None
    assert seeds_to_decide((0.0, -math.inf, math.inf), (-0.2, 0.2), 1) is None
    assert seeds_to_decide(ends, (-0.4, 0.4), 10) == 11  # at least one more


def test_only_the_half_towards_the_bound_counts():
    assert seeds_to_decide((0.0, -0.1, 9.0), (-math.inf, 0.0), 10) is None
    assert seeds_to_decide((0.5, 0.4, 9.0), (-math.inf, 0.45), 10) == 40
    assert seeds_to_decide((-0.5, -9.0, -0.4), (-0.45, math.inf), 10) == 40
    assert seeds_to_decide((0.5, 0.3, 9.0), (0.4, math.inf), 10) == 40


@pytest.mark.parametrize(
    ("number", "text"), [(5.0, "5"), (0.87, "0.87"), (616126, "616126"), (1e-05, "1e-05")]
)
def test_numbers_are_printed_with_the_digits_they_have(number, text):
    assert printed(number) == text


def test_a_tolerance_stays_and_else_the_kind_decides():
    assert margin_of(value(0.5, tolerance=0.3, kind="proportion")) == 0.3
    assert margin_of(value(0.5, kind="proportion")) == 0.02
    assert margin_of(value(0.87, kind="proportion"), exact=True) == 0.005
    assert margin_of(value(30, kind="count", published_of=100)) == 2.0


def test_logarithms_of_arithmetic_means_are_compared():
    units = tuple(np.random.default_rng(2).lognormal(size=10).tolist())
    ours = mean_estimate(units)
    one = difference(value(3.0, kind="heavy-tailed", published_se=0.3), ours)
    assert one.value == pytest.approx(math.log(np.mean(units) / 3.0))
    assert one.published_se == pytest.approx(0.1)
    assert one.margin == pytest.approx(math.log(2))
    scaled = difference(
        value(3e-9, kind="heavy-tailed", published_se=3e-10),
        mean_estimate([1e-9 * unit for unit in units]),
    )
    assert (scaled.low, scaled.high) == pytest.approx((one.low, one.high))  # no unit of measure
