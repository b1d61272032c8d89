"""The interval of the error farthest from the data holds the truth as often as it says."""

import math

import pytest
import torch

from inscape.extrapolation._tail import tail_summary

RUNS = 2000
#: By name, the mean error at a distance between 0 and 1.
MEANS = {
    "level": lambda d: torch.ones_like(d),
    "rising": lambda d: 0.1 + d,
    "steep": lambda d: (3 * d).exp(),
}
NOISE = {
    "square of a normal": lambda shape, rng: torch.randn(shape, generator=rng).square(),
    "exponential": lambda shape, rng: torch.rand(shape, generator=rng).log().neg(),
    "log-normal": lambda shape, rng: (0.7 * torch.randn(shape, generator=rng) - 0.245).exp(),
}


def held(errors, truth, *, classes):
    """Return how often intervals of the last quarter hold the truth."""
    quarter = errors.shape[1] // 4
    found = [tail_summary(row, quarter, "", classes=classes) for row in errors]
    # samples that are all alike (no interval) hold nothing
    return sum(one.low is not None and one.low <= truth <= one.high for one in found) / len(found)


def distances(m):
    """Return sorted distances for each run, and the last quarter of them all."""
    rng = torch.Generator().manual_seed(m)
    drawn = torch.rand(RUNS, m, generator=rng, dtype=torch.float64).sort(1).values
    return drawn, torch.linspace(0.75, 1, 10001, dtype=torch.float64), rng


@pytest.mark.parametrize("m", [12, 40, 200])
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("mean", MEANS)
def test_intervals_of_real_errors(mean, noise, m):
    drawn, last, rng = distances(m)
    errors = MEANS[mean](drawn) * NOISE[noise](drawn.shape, rng).double()
    assert 0.90 < held(errors, float(MEANS[mean](last).mean()), classes=False) < 0.99


@pytest.mark.parametrize("m", [12, 40, 200])
@pytest.mark.parametrize("ends", [(0.1, 0.1), (0.0, 0.6), (0.3, 0.9)])
def test_intervals_of_shares(ends, m):
    low, high = ends
    drawn, last, rng = distances(m)
    wrong = torch.rand(drawn.shape, generator=rng) < low + (high - low) * drawn
    truth = float((low + (high - low) * last).mean())
    assert held(wrong.double(), truth, classes=True) > 0.90


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e200, 1.7e308])
def test_errors_of_any_size_have_a_finite_interval(size):
    errors = size * torch.tensor([1.0, 1e-9, 0.9, 1e-12, 1e-12], dtype=torch.float64)
    found = tail_summary(errors, 2, "", classes=False)
    assert 0 <= found.low <= found.value <= found.high < math.inf
