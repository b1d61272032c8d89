"""Intervals of 95%: they hold the truth as often as they say, and nothing that cannot be."""

import math

import pytest
import torch

from inscape._core.result import Summary, mean_summary, positive_summary, share_summary, wilson
from repeated import repeated

DRAWS = 4000
#: By name, draws of a shape, and their mean.
SKEWED = {
    "exponential": (lambda *n, rng: torch.rand(*n, generator=rng).neg().log1p().neg(), 1.0),
    "square of a normal": (lambda *n, rng: torch.randn(*n, generator=rng).square(), 1.0),
    "log-normal": (
        lambda *n, rng: (0.7 * torch.randn(*n, generator=rng)).exp(),
        math.exp(0.245),
    ),
    "uniform": (lambda *n, rng: torch.rand(*n, generator=rng), 0.5),
}


@pytest.mark.parametrize("n", [2, 3, 5, 10, 30, 200])
@pytest.mark.parametrize("name", SKEWED)
def test_intervals_of_non_negative_means_hold_the_truth_as_often_as_they_say(name, n):
    draw, truth = SKEWED[name]
    samples = draw(DRAWS, n, rng=torch.Generator().manual_seed(n)).double()
    found = [mean_summary(row, kind="estimate", basis="") for row in repeated(samples)]
    held = sum(one.low <= truth <= one.high for one in found) / DRAWS
    # Skewed samples of ten hide their tail: 91% there, where the plain interval has 83%.
    assert 0.90 < held < 0.985
    assert all(0 < one.low < one.value < one.high for one in found)


def test_many_samples_have_the_usual_interval():
    samples = 10 + torch.randn(10000, generator=torch.Generator().manual_seed(0)).double()
    found = mean_summary(samples, kind="estimate", basis="")
    half = 1.96 * float(samples.std()) / 100
    assert found.low == pytest.approx(found.value - half, rel=1e-4)
    assert found.high == pytest.approx(found.value + half, rel=1e-4)


@pytest.mark.parametrize(
    "samples",
    [[0.0, 0.97], [0.0] * 9 + [3.0], [1e-300, 1e300], [1e308, 1.2e308, 1.1e308]],
)
def test_intervals_do_not_leave_the_range_of_a_norm(samples):
    found = mean_summary(torch.tensor(samples, dtype=torch.float64), kind="estimate", basis="")
    assert 0 <= found.low <= found.value <= found.high < math.inf


@pytest.mark.parametrize("mean", [1e-300, 1.0, 1e300])
def test_an_interval_without_an_upper_end_ends_at_the_largest_number(mean):
    found = positive_summary(mean, 1e4 * mean, 2, kind="estimate", basis="")
    assert 0 <= found.low < mean < found.high < math.inf
    assert found.high > 1e6 * mean


@pytest.mark.parametrize(
    "samples", [[0.0, 0.0], [1.0, 1.0], [0.1] * 7, [0.1, 0.1 + 1e-9], [5e-324, 0]]
)
def test_a_mean_of_samples_that_are_all_alike_says_that_its_interval_is_not_known(samples):
    found = mean_summary(torch.tensor(samples, dtype=torch.float64), kind="estimate", basis="few")
    assert (found.low, found.high) == (None, None)
    assert found.basis == "few; all alike: no interval"


@pytest.mark.parametrize("truth", [0.005, 0.02, 0.1, 0.98])
@pytest.mark.parametrize("n", [5, 20, 60])
def test_the_interval_of_a_rare_event_that_was_not_seen_can_be_right(truth, n):
    draws = torch.rand(2000, n, generator=torch.Generator().manual_seed(n)) < truth
    alike = draws[(draws == draws[:, :1]).all(1)]
    for samples in alike.unique(dim=0):
        found = share_summary(samples, kind="estimate", basis="")
        assert found.high > found.low
    counts, times = draws.sum(1).unique(return_counts=True)
    intervals = [wilson(count.double() / n, n) for count in counts]
    held = torch.tensor([bool(low <= truth <= high) for low, high in intervals])
    assert times[held].sum() / len(draws) > 0.9


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 49, 1000])
def test_intervals_do_not_leave_the_range_of_a_proportion(n):
    for right in range(n + 1):
        samples = torch.arange(n) < right
        found = share_summary(samples, kind="estimate", basis="")
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_wilson_holds_its_proportion_whatever_the_rounding():
    shares = torch.linspace(0, 1, 1001, dtype=torch.float64)
    for n in range(1, 200):
        low, high = wilson(shares, n).unbind(-1)
        assert bool((low <= shares).all() and (shares <= high).all())


@pytest.mark.parametrize(("low", "high"), [(2.0, 3.0), (0.0, 0.5), (math.nan, 2.0)])
def test_an_interval_without_its_value_is_refused(low, high):
    with pytest.raises(ValueError, match=r"must be a number in its interval, found 1 \["):
        Summary(value=1.0, kind="estimate", basis="", low=low, high=high)
