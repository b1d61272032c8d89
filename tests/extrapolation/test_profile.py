import math

import pytest
import torch
from torch.testing import assert_close

from inscape.extrapolation import log_errors, profile


def drawn(n, seed=0):
    rng = torch.Generator().manual_seed(seed)
    r = torch.rand(n, generator=rng, dtype=torch.float64)
    return r, r.square() + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)


def scatter(r, v, h):
    """Return the deviation from the smoothed mean by its matrix, as of any linear smoother."""
    kernel = (-((r[:, None] - r) ** 2) / (2 * h**2)).exp()
    smoother = kernel / kernel.sum(1, keepdim=True)
    left = len(r) - float(smoother.trace())
    return math.sqrt(float((v - smoother @ v).square().sum()) / left)


def test_band_does_not_close_where_a_single_point_is_in_reach():
    hits = []
    for seed in range(60):
        rng = torch.Generator().manual_seed(seed)
        r = torch.randn(200, generator=rng, dtype=torch.float64) ** 2  # few are far away
        found = profile(r, torch.randn(200, generator=rng, dtype=torch.float64))
        hits.append((found.low <= 0) & (found.high >= 0))
    covered = torch.stack(hits).double().mean(0)
    assert covered[:10].mean() > 0.9
    assert covered[-20:].mean() > 0.85  # 0.3 of the points' own scatter
    alone = profile(torch.tensor([0.0, 9.0]), torch.tensor([1.0, 2.0]), bandwidth=0.1)
    assert alone.low.isfinite().all()  # nothing is known of the scatter


def test_equals_the_loop():
    r, v = drawn(30)
    found = profile(r, v, at=torch.tensor([0.2, 0.9]), bandwidth=0.1)
    for k, at in enumerate((0.2, 0.9)):
        w = [math.exp(-((at - float(torch.tensor(a))) ** 2) / 0.02) for a in r.tolist()]
        mean = sum(a * b for a, b in zip(w, v.tolist(), strict=True)) / sum(w)
        square = sum((a * (b - mean)) ** 2 for a, b in zip(w, v.tolist(), strict=True))
        count = sum(w) ** 2 / sum(a * a for a in w)
        half = 1.959964 * max(math.sqrt(square) / sum(w), scatter(r, v, 0.1) / math.sqrt(count))
        assert float(found.mean[k]) == pytest.approx(mean, rel=1e-6)  # places in single precision
        assert float(found.high[k] - found.low[k]) == pytest.approx(2 * half, rel=1e-6)
        assert float(found.weight[k]) == pytest.approx(count, rel=1e-6)


def test_band_covers_the_smoothed_truth_nineteen_times_of_twenty():
    hits = []
    for seed in range(60):
        r, v = drawn(200, seed)
        found = profile(r, v, at=torch.tensor([0.5]), bandwidth=0.05)
        truth = 0.25 + 0.05**2  # the square, smoothed by the kernel on even places
        hits.append(bool(found.low <= truth <= found.high))
    assert sum(hits) >= 52  # 57 expected


def test_default_places_and_bandwidth():
    r, v = drawn(500)
    found = profile(r, v)
    assert_close(found.at[[0, -1]], torch.stack([r.min(), r.max()]))
    assert 0.9 * 0.25 * 500**-0.2 < found.bandwidth < 0.9 * 0.3 * 500**-0.2
    assert profile(torch.ones(3), torch.ones(3)).bandwidth == 1.0
    assert profile(torch.ones(1), torch.ones(1)).mean.tolist() == [1.0] * 60
    assert len(list(found.rows())) == 60
    summary = found.summary()
    assert summary.low < summary.value < summary.high
    assert summary.value == pytest.approx(1, abs=0.2)


def test_zeros_take_the_least_error_that_is_not_zero():
    errors = torch.tensor([0.0, 1e-9, 1.0])
    assert_close(log_errors(errors).exp(), torch.tensor([1e-9, 1e-9, 1.0]).double())
    assert log_errors(torch.zeros(2)).isfinite().all()


def test_zeros_among_large_errors_are_not_taken_for_them():
    assert_close(log_errors(torch.tensor([0.0, 4.0])).exp(), torch.tensor([4e-8, 4.0]).double())
    alone = torch.tensor([1.0, 4.0])
    assert_close(log_errors(alone), alone.double().log(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("r", "v", "settings", "text"),
    [
        ([1.0], [1.0, 2.0], {}, "as many, found 1 and 2"),
        ([], [], {}, "as many, found 0 and 0"),
        ([1.0, math.nan], [1.0, 2.0], {}, "distances and values must be finite"),
        ([1.0, 2.0], [1.0, 2.0], {"bandwidth": 0.0}, "bandwidth must be positive, found 0.0"),
    ],
)
def test_bad_input_is_refused(unchecked, r, v, settings, text):
    with pytest.raises(ValueError, match=text):
        profile(torch.tensor(r), torch.tensor(v), **settings)
