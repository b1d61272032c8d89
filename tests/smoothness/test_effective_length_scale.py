import math

import pytest
import torch
from torch.testing import assert_close

from cases import points
from inscape._core import NotApplicable, UnsupportedModelError, draw_pairs
from inscape.models import mlp
from inscape.smoothness import effective_length_scale
from inscape.smoothness._line_moments import with_slopes


def quick(f, x, **settings):
    return effective_length_scale(f, x, **{"process": False, "resamples": 50, **settings})


def waves(d, scale, seed, outputs=1, count=400):
    """Return draws of a process with radial basis functions, by random features."""
    dice = torch.Generator().manual_seed(seed)
    w = torch.randn(d, count, generator=dice, dtype=torch.float64) / scale
    b = 2 * math.pi * torch.rand(count, generator=dice, dtype=torch.float64)
    a = torch.randn(count, outputs, generator=dice, dtype=torch.float64) * math.sqrt(2 / count)
    return lambda x: torch.cos(x @ w + b) @ a


def expected_ratio(scale, lengths, knots):
    """Return variance over squared slope of a process, from whole covariance matrices."""
    t = torch.arange(knots, dtype=torch.float64) / knots
    above = below = 0.0
    for length in lengths.tolist():
        r = length * (t[:, None] - t[None])
        above += 1 - float((-r.square() / (2 * scale**2)).exp().mean())
        below += length**2 / scale**2
    return above / below


def test_value_has_the_moments_of_a_process_of_that_scale():
    x = points(30, 2)
    found = quick(lambda x: torch.sin(3 * x[:, :1]) * x[:, 1:], x, lines=12, knots=16)
    ratio = float(found.variances.sum() / found.slopes.sum())
    assert_close(expected_ratio(found.value, found.lengths, 16), ratio)


def test_moments_equal_the_loop():
    x = points(10, 3)
    f = mlp(3, 5, 2, activation="tanh", dtype=torch.float64)
    found = quick(f, x, lines=6, knots=7, seed=4)
    a, b = draw_pairs(x, 6, seed=4)
    starts = torch.rand(6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    for i in range(6):
        t = (torch.arange(7) + starts[i]) / 7
        at = a[i] + t[:, None] * (b[i] - a[i])
        y = f(at).detach()
        assert_close(found.variances[i], (y - y.mean(0)).square().mean(0))
        slopes = torch.stack([torch.func.jacrev(f)(p) @ (b[i] - a[i]) for p in at]).detach()
        assert_close(found.slopes[i], slopes.square().mean(0))
        assert_close(found.lengths[i], (b[i] - a[i]).norm())


@pytest.mark.parametrize("pace", [2.0, 7.0])
def test_sine_on_long_lines_has_its_inverse_pace(pace):
    # Variance 1/2 and mean square slope pace^2 / 2; a process falls short of its variance by
    # sqrt(2 pi) l / L, which is below 5% here.
    x = torch.linspace(-60, 60, 40, dtype=torch.float64)[:, None]
    found = quick(lambda x: torch.sin(pace * x), x, lines=200, knots=32)
    assert found.value * pace == pytest.approx(1, rel=0.05)
    assert found.interval[0] < found.value < found.interval[1]


@pytest.mark.parametrize("d", [1, 3])
def test_straight_function_is_longer_than_the_data(d):
    x = points(30, d)
    found = quick(lambda x: x @ torch.ones(d, 2, dtype=torch.float64) - 3, x)
    assert found.straight
    assert_close(found.longest, 10 * float(found.lengths.square().mean().sqrt()))
    assert found.summary().kind == "lower bound"
    assert found.summary().basis.endswith("straight")
    assert found.source.tolist() == [found.longest] * 2


def test_scaled_shifted_and_turned_it_stays_and_stretched_it_stretches():
    x, f = points(40, 2), mlp(2, 20, 1, activation="tanh", scale=50.0, dtype=torch.float64)
    turn = torch.linalg.qr(points(2, 2, seed=3)).Q
    base = quick(f, x)
    assert not base.straight
    other = quick(lambda x: 100 - 7 * f(x), x)
    turned = quick(lambda x: f(x @ turn.T), x @ turn)
    for name in ("scale", "interval"):
        assert_close(getattr(other, name), getattr(base, name))
        assert_close(getattr(turned, name), getattr(base, name))
    assert_close(other.source, base.source)
    assert_close(quick(lambda x: f(x / 3), 3 * x).value, 3 * base.value)


@pytest.mark.parametrize(("d", "scale"), [(1, 0.5), (4, 2.0)])
def test_draws_of_a_process_have_its_scale_within_the_interval(d, scale):
    hits, values = 0, []
    for seed in range(6):
        x = 3 * scale * points(100, d, seed=seed)
        found = quick(waves(d, scale, seed), x, lines=60, seed=seed)
        hits += bool(found.source[0] <= scale <= found.source[1])
        values.append(math.log(found.value / scale))
    assert hits >= 5  # 5.7 expected
    assert abs(sum(values) / 6) < 0.15


def test_the_process_that_explains_a_draw_best_has_its_scale():
    found = effective_length_scale(waves(2, 1.5, 0), 3 * points(100, 2), resamples=10)
    assert found.process == pytest.approx(1.5, rel=0.15)
    assert found.unexplained < 1e-3
    rough = effective_length_scale(waves(2, 0.05, 0), points(100, 2), resamples=10)
    assert rough.process < 0.2


def test_it_falls_as_the_weights_grow():
    values = []
    for sigma in (1.0, 3.0, 8.0):
        net = mlp(2, 128, 16, activation="tanh", dtype=torch.float64)
        dice = torch.Generator().manual_seed(0)
        for p, size in zip(net.parameters(), (sigma / 2**0.5, sigma, 1, 0), strict=True):
            p.data = size * torch.randn(p.shape, generator=dice, dtype=torch.float64)
        values.append(quick(net, points(50, 2) / 2, lines=60).value)
    assert values == sorted(values, reverse=True)
    assert 2 < values[0] / values[-1] < 16


def test_outputs_are_weighed_by_their_variance():
    x = points(30, 1)

    def f(x):
        return torch.cat([torch.sin(3 * x), torch.sin(30 * x)], dim=1)

    both = quick(f, x)
    alone = [quick(lambda x, k=k: f(x)[:, [k]], x).value for k in (0, 1)]
    assert_close(both.by_output, torch.tensor(alone, dtype=torch.float64))
    assert min(alone) < both.value < max(alone)
    weighed = quick(lambda x: f(x) * torch.tensor([100.0, 0.0]), x).value
    assert_close(weighed, alone[0])
    rows = list(both.rows())
    assert len(rows) == 2 * len(both.lengths)
    assert rows[1]["variance"] == float(both.variances[0, 1])


class Once(torch.autograd.Function):
    """The cube, for those who differentiate once alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return 3 * ctx.saved_tensors[0] ** 2 * gradient


def test_functions_that_differentiate_once_are_measured_too():
    x = points(20, 2)
    plain, other = quick(lambda x: x**3, x), quick(Once.apply, x)
    assert_close(plain.value, other.value)
    assert_close(plain.slopes, other.slopes)
    y, dy = with_slopes(Once.apply, x, torch.ones_like(x))
    assert_close(y, x**3)
    assert_close(dy, 3 * x**2)


@pytest.mark.parametrize(
    ("f", "x", "reason"),
    [
        (lambda x: 0 * x, points(9, 1), "constant along all lines"),
        (lambda x: x, torch.ones(9, 1), "all points are the same"),
        (lambda x: (4 * x).round() + 1e-6 * x, points(9, 1), "moves by steps that its slopes do"),
    ],
)
def test_functions_without_a_length_scale_say_why(f, x, reason):
    found = quick(f, x)
    assert isinstance(found, NotApplicable)
    assert reason in found.status


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="lines must be at least 2, found 1: raise lines"):
        quick(torch.sin, points(9, 1), lines=1)
    with pytest.raises(ValueError, match="resamples must be at least 1, found 0"):
        quick(torch.sin, points(9, 1), resamples=0)
    with pytest.raises(UnsupportedModelError, match="must let gradients reach its input"):
        quick(lambda x: x.detach().sin(), points(9, 1))
