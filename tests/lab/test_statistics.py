"""Rank correlation and intervals, against scipy, brute force and closed forms."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from inscape.lab import statistics
from inscape.lab.statistics import (
    bootstrap_estimate,
    kendall_tau,
    mean_estimate,
    paired_difference,
    tau_ceiling,
)

few = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30)


def by_pairs(x, y):
    """Kendall's tau_b from its definition, one pair after the other."""
    pairs = list(combinations(zip(x, y, strict=True), 2))
    balance = sum(np.sign(a[0] - b[0]) * np.sign(a[1] - b[1]) for a, b in pairs)
    untied = [sum(a[k] != b[k] for a, b in pairs) for k in (0, 1)]
    return balance / math.sqrt(untied[0] * untied[1])


@given(few)
def test_tau_is_that_of_scipy_and_of_the_definition_with_many_ties(points):
    x, y = zip(*points, strict=True)
    ours = kendall_tau(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(ours)
        return
    assert ours == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert ours == pytest.approx(by_pairs(x, y), abs=1e-15)


@given(few)
def test_tau_is_symmetric_odd_and_depends_on_order_alone(points):
    x, y = (np.array(side, dtype=float) for side in zip(*points, strict=True))
    tau = kendall_tau(x, y)
    assert kendall_tau(y, x) == pytest.approx(tau, nan_ok=True)
    assert kendall_tau(x, -y) == pytest.approx(-tau, nan_ok=True)
    assert kendall_tau(np.exp(x), y**3) == pytest.approx(tau, nan_ok=True)


def test_tau_in_blocks_is_tau_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, 180), rng.normal(size=180)
    whole = kendall_tau(x, y)
    monkeypatch.setattr(statistics, "BLOCK", 1000)  # five rows at a time
    assert kendall_tau(x, y) == whole == pytest.approx(stats.kendalltau(x, y).statistic)


def test_tau_of_perfect_orders_infinities_and_nothing_defined():
    assert kendall_tau(range(10), range(10)) == 1.0
    assert kendall_tau(range(10), range(10, 0, -1)) == -1.0
    assert kendall_tau([1, 2, math.inf], [-math.inf, 0, 5]) == 1.0
    assert math.isnan(kendall_tau([1, 2, math.nan], [1, 2, 3]))
    assert math.isnan(kendall_tau([1, 1, 1], [1, 2, 3]))
    assert math.isnan(kendall_tau([1], [1]))
    assert math.isnan(kendall_tau([], []))


def test_tau_of_two_lengths():
    with pytest.raises(ValueError, match="two sides of one length, found 2 and 3: give one pair"):
        kendall_tau([1, 2], [1, 2, 3])


def test_ceiling_is_reached_by_a_perfect_order_and_never_passed():
    assert tau_ceiling([3] * 8) == math.sqrt(252 / 276)
    assert tau_ceiling([1] * 5) == 1.0
    for repeats in ([3] * 8, [10] * 9, [1, 4, 2]):
        x = np.repeat(np.arange(len(repeats)), repeats)
        assert kendall_tau(x, np.arange(len(x))) == pytest.approx(tau_ceiling(repeats), abs=1e-15)
        for seed in range(20):
            y = np.random.default_rng(seed).permutation(len(x))
            assert abs(kendall_tau(x, y)) <= tau_ceiling(repeats) + 1e-15


@pytest.mark.parametrize("repeats", [[], [3], [3, 0]])
def test_ceiling_needs_two_sizes(repeats):
    with pytest.raises(ValueError, match=r"at least two sizes with one run each, found \["):
        tau_ceiling(repeats)


def test_mean_is_that_of_scipy():
    values = np.random.default_rng(1).normal(3, 2, size=20)
    ours = mean_estimate(values)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.value == pytest.approx(values.mean())
    assert ours.se == pytest.approx(stats.sem(values))
    assert (ours.n, ours.exact, ours.method) == (20, False, "t interval over 20 values")


def test_mean_of_two_values_in_closed_form():
    ours = mean_estimate([1.0, 3.0])
    assert (ours.value, ours.se) == (2.0, pytest.approx(1.0))
    assert ours.high == pytest.approx(2 + math.tan(0.95 * math.pi / 2))  # Cauchy's quantile


def test_interval_covers_the_truth_in_about_95_of_100_samples():
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(1000):
        ours = mean_estimate(rng.normal(size=5))
        inside += ours.low <= 0 <= ours.high
    assert abs(inside - 950) < 5 * math.sqrt(1000 * 0.95 * 0.05)


def test_one_value_has_no_interval():
    for ours in (mean_estimate([0.3]), bootstrap_estimate([0.3]), paired_difference([0.4], [0.1])):
        assert ours.value == pytest.approx(0.3)
        assert (ours.low, ours.high, ours.se, ours.n) == (-math.inf, math.inf, math.inf, 1)
        assert ours.method == "one value has no interval"


def test_equal_values_have_no_spread_not_even_of_rounding():
    ours = mean_estimate([0.1] * 45)
    assert (ours.value, ours.low, ours.high, ours.se) == (0.1, 0.1, 0.1, 0.0)
    assert ours.method == "all 45 values are equal"
    drawn = bootstrap_estimate([0.1] * 45)
    assert (drawn.value, drawn.low, drawn.high, drawn.se) == (0.1, 0.1, 0.1, 0.0)
    assert drawn.method == "every draw gives the same number"


def test_what_is_not_a_number_stays_so_and_is_said():
    for ours in (mean_estimate([1.0, math.nan, 2.0]), mean_estimate([1.0, math.inf, 2.0])):
        assert all(math.isnan(x) for x in (ours.value, ours.low, ours.high, ours.se))
        assert (ours.n, ours.method) == (3, "1 of 3 values is not finite")
    both = paired_difference([1.0, math.nan, 0.0], [math.nan, 2.0, 1.0])
    assert both.method == "2 of 3 values are not finite"
    drawn = bootstrap_estimate([1.0, math.nan])
    assert math.isnan(drawn.value)
    assert drawn.method == "the statistic of all data sets is not a number"


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], 3.0])
def test_mean_needs_a_list(values, unchecked):
    with pytest.raises(ValueError, match=r"mean_estimate needs a list of at least one number, fo"):
        mean_estimate(values)


def test_bootstrap_is_that_of_scipy():
    values = np.random.default_rng(3).exponential(size=45)
    ours = bootstrap_estimate(values, seed=5)
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(0)
    )
    assert ours.value == pytest.approx(values.mean())
    assert ours.se == pytest.approx(theirs.standard_error, rel=0.05)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.1 * ours.se)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.1 * ours.se)
    assert (ours.n, ours.method) == (45, "bootstrap over 45 data sets, 2,000 draws")


def test_bootstrap_of_two_values_is_a_coin():
    ours = bootstrap_estimate({"a": 0.0, "b": 1.0}, draws=4000)  # means 0, 1/2, 1/2, 1
    assert (ours.value, ours.low, ours.high) == (0.5, 0.0, 1.0)
    assert ours.se == pytest.approx(math.sqrt(1 / 8), rel=0.05)


def test_bootstrap_draws_whole_data_sets_for_any_statistic():
    entries = {"a": [1.0, 1.0], "b": [5.0], "c": [3.0, 3.0, 3.0]}

    def longest(chosen):
        assert all(entry in entries.values() for entry in chosen)
        assert len(chosen) == 3
        return max(map(len, chosen))

    ours = bootstrap_estimate(entries, longest)
    assert (ours.value, ours.low, ours.high, ours.n) == (3, 1, 3, 3)


def test_bootstrap_is_seeded_and_private():
    values = [0.1, 0.5, 0.9, 0.3]
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert bootstrap_estimate(values) == bootstrap_estimate(values)
    assert bootstrap_estimate(values, seed=1) != bootstrap_estimate(values)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_draws_without_a_number_are_counted_and_too_many_are_no_estimate():
    def spread_over(chosen):
        return 1 / (max(chosen) - min(chosen)) if max(chosen) > min(chosen) else math.nan

    ours = bootstrap_estimate([0.0, 1.0, 2.0], spread_over)  # one draw in nine is constant
    lost = int(ours.method.split(", ")[2].split()[0])
    assert abs(lost - 2000 / 9) < 5 * math.sqrt(2000 * 8) / 9
    assert math.isfinite(ours.low)

    def only_distinct(chosen):
        return 1.0 if len(set(chosen)) == len(chosen) else math.nan

    none = bootstrap_estimate(list(range(8)), only_distinct)
    assert math.isnan(none.low)
    assert none.method.endswith("of 2000 draws have no number")


def test_bootstrap_needs_a_data_set():
    with pytest.raises(ValueError, match="needs at least one data set, found none"):
        bootstrap_estimate({})


def test_paired_difference_is_the_paired_t_test():
    rng = np.random.default_rng(4)
    a = rng.normal(size=12)
    b = a + rng.normal(0.5, 0.1, size=12)
    ours = paired_difference(a, b)
    theirs = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.method == "paired t interval over 12 values"
    assert ours.high < 0 < paired_difference(b, a).low


def test_paired_difference_of_two_lengths():
    with pytest.raises(ValueError, match="one length, found 2 and 3: give the same data sets"):
        paired_difference([1, 2], [1, 2, 3])


def test_an_interval_is_cut_at_the_range_of_its_values():
    right = [1.0, 1.0, 0.9, 1.0]
    whole, cut = mean_estimate(right), mean_estimate(right, within=(0.0, 1.0))
    assert whole.high > 1 == cut.high
    assert (cut.value, cut.low, cut.se, cut.n) == (whole.value, whole.low, whole.se, whole.n)
    assert mean_estimate([0.0, 0.1, 0.0], within=(0.0, 1.0)).low == 0.0


@pytest.mark.parametrize("values", [[0.5], [0.5, math.nan]])
def test_a_range_makes_no_interval_where_there_is_none(values):
    whole, cut = mean_estimate(values), mean_estimate(values, within=(0.0, 1.0))
    assert repr(whole) == repr(cut)
