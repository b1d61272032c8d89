import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import points
from inscape._core import NotApplicable, UnsupportedModelError, draw_pairs
from inscape.functional.jacobians import jacobians
from inscape.models import mlp
from inscape.smoothness import effective_length_scale
from inscape.smoothness._line_moments import directional_derivatives, knot_positions
from inscape.smoothness._line_moments import scale as matched_scale


def quick(f, x, **settings):
    return effective_length_scale(f, x, **{"process": False, "resamples": 50, **settings})


def waves(d, scale, seed, outputs=1, count=400):
    """Return draws of a process with radial basis functions, by random features."""
    rng = torch.Generator().manual_seed(seed)
    w = torch.randn(d, count, generator=rng, dtype=torch.float64) / scale
    b = 2 * math.pi * torch.rand(count, generator=rng, dtype=torch.float64)
    a = torch.randn(count, outputs, generator=rng, dtype=torch.float64) * math.sqrt(2 / count)
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
    assert found.summary().basis.endswith("as good as straight")
    low, high = found.source.tolist()  # draws of much shorter scales may be straight
    assert 0.01 * found.longest < low < 0.2 * found.longest
    assert high == math.inf


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


@pytest.mark.parametrize("seed", [0, 1])
def test_the_process_of_a_smooth_function_is_not_noise(seed):
    # from one start it ends at a length scale of nothing, where every value is noise
    rng = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(100, 300, generator=rng, dtype=torch.float64) - 1
    found = effective_length_scale(waves(300, 100.0, seed), x, lines=40, knots=8, resamples=2)
    assert found.process == pytest.approx(100, rel=0.4)
    assert found.unexplained < 1e-3


def test_a_process_that_is_not_known_is_none():
    straight = effective_length_scale(lambda x: x.sum(1, True), points(40, 3), resamples=2)
    assert (straight.process, straight.unexplained) == (None, None)
    assert "process" not in straight.summary().basis
    rough = effective_length_scale(waves(3, 0.01, 0), points(40, 3), resamples=2)
    assert rough.process is None


def test_a_draw_that_is_as_good_as_straight_may_come_from_a_short_scale():
    hits = straight = 0
    for seed in range(8):
        x = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]
        found = quick(waves(1, 2.0, seed, count=100), x, lines=30, knots=8, seed=seed, resamples=2)
        hits += bool(found.source[0] <= 2 <= found.source[1])
        straight += found.straight
    assert straight >= 2
    assert hits >= 7  # 7.6 expected


def test_expected_deviations_are_those_of_whole_covariance_matrices():
    x = points(30, 2)
    found = quick(waves(2, 0.5, 0), x, lines=5, knots=7)
    t = torch.arange(7, dtype=torch.float64) / 7
    for scale in (0.2, 1.0):
        for i, length in enumerate(found.lengths.tolist()):
            correlation = (-((length * (t[:, None] - t)) ** 2) / (2 * scale**2)).exp()
            variance = 1 - float(correlation.mean())
            per_slope = variance / (length / scale) ** 2
            wanted = (per_slope * float(found.slopes[i].sum())) ** 0.5
            assert float(found.expected(scale)[i]) == pytest.approx(wanted)
    assert torch.equal(found.expected(), found.expected(found.value))


def test_it_falls_as_the_weights_grow():
    values = []
    for sigma in (1.0, 3.0, 8.0):
        net = mlp(2, 128, 16, activation="tanh", dtype=torch.float64)
        rng = torch.Generator().manual_seed(0)
        for p, size in zip(net.parameters(), (sigma / 2**0.5, sigma, 1, 0), strict=True):
            p.data = size * torch.randn(p.shape, generator=rng, dtype=torch.float64)
        values.append(quick(net, points(50, 2) / 2, lines=60).value)
    assert values == sorted(values, reverse=True)
    assert 2 < values[0] / values[-1] < 16


def wide_erf(x, sigma, bias, lines=60, knots=16):
    """Return the mean variances and squared slopes on lines of infinitely wide erf networks.

    Units are erf(w x + b) with w of variance sigma^2 / d and b of variance bias^2; the covariance
    of the network is 2 / pi arcsin(2 k / sqrt((1 + 2 s) (1 + 2 s'))) with k that of a unit's input
    and s its variance.
    """
    a, b = draw_pairs(x, lines, seed=0)
    starts = torch.rand(lines, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    way = (b - a)[:, None]
    at = a[:, None] + knot_positions(starts, knots)[..., None] * way
    weight = sigma**2 / x.shape[1]
    k = weight * at @ at.mT + bias**2
    s = k.diagonal(dim1=1, dim2=2)
    covariance = torch.asin(2 * k / ((1 + 2 * s)[:, :, None] * (1 + 2 * s)[:, None]).sqrt())
    covariance = covariance * 2 / math.pi
    variances = covariance.diagonal(dim1=1, dim2=2).mean(1) - covariance.mean((1, 2))
    # E[erf'(u)^2 u'^2] of Gaussian u, u': u' is c / s u and a rest that is independent of u
    c = weight * (at * way).sum(2)
    rest = weight * way.square().sum(2) - c.square() / s
    slopes = 4 / math.pi * (rest / (1 + 4 * s).sqrt() + c.square() / s / (1 + 4 * s) ** 1.5)
    return (b - a).norm(dim=1), variances, slopes.mean(1)


def wide_scale(x, sigma, bias):
    lengths, variances, slopes = wide_erf(x, sigma, bias, knots=64)
    return matched_scale(lengths, variances[:, None], slopes[:, None], 64, 1e3)


def exponent(x, one, two, bias=None):
    """Return how the scale of wide networks goes with sigma; biases grow with it by default."""
    scales = [wide_scale(x, sigma, sigma if bias is None else bias) for sigma in (one, two)]
    return math.log(scales[1] / scales[0]) / math.log(two / one)


@pytest.mark.parametrize(("sigma", "bias"), [(1.5, 1.5), (6.0, 1.0)])
def test_wide_random_networks_have_the_moments_of_their_kernel(sigma, bias):
    # Random output weights add up the moments of the units, so that these are measured themselves;
    # they are spread evenly over their law, where random ones would need to be many.
    even = torch.quasirandom.SobolEngine(3, scramble=True, seed=0).draw(128, dtype=torch.float64)
    w, x = torch.special.ndtri(even).T * torch.tensor([[sigma / 2**0.5]] * 2 + [[bias]]), disc(60)
    found = quick(lambda x: torch.erf(x @ w[:2] + w[2]), x, lines=60)
    _, variances, slopes = wide_erf(x, sigma, bias)
    assert float(found.variances.mean(1).sum()) == pytest.approx(float(variances.sum()), rel=0.03)
    assert float(found.slopes.mean(1).sum()) == pytest.approx(float(slopes.sum()), rel=0.03)
    assert found.value == pytest.approx(wide_scale(x, sigma, bias), rel=0.05)


def disc(n):
    x = points(n, 2)
    return x / x.norm(dim=1, keepdim=True) * torch.linspace(0.1, 1, n, dtype=torch.float64)[:, None]


def test_where_the_scale_of_wide_networks_is_one_over_sigma():
    x = disc(60)
    # Biases with a spread of their own, ridges wider than the data: the law.
    assert exponent(x, 0.1, 0.3, bias=3.0) == pytest.approx(-1, abs=0.05)
    # Biases that grow with sigma: straight below, and the law is only passed through.
    assert wide_scale(x, 0.3, 0.3) == pytest.approx(1e3)
    assert exponent(x, 1.0, 1.5) < -1.2
    assert -0.9 < exponent(x, 4.0, 6.0) < -0.6
    # Ridges much narrower than the data, whatever the biases: the root.
    for bias in (None, 3.0):
        assert exponent(x, 100.0, 400.0, bias=bias) == pytest.approx(-0.5, abs=0.06)


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
    y, dy = directional_derivatives(Once.apply, x, torch.ones_like(x))
    assert_close(y, x**3)
    assert_close(dy, 3 * x**2)


@pytest.mark.parametrize(
    ("f", "x", "reason"),
    [
        (lambda x: 0 * x, points(9, 1), "constant along all lines"),
        (lambda x: x, torch.ones(9, 1), "all points are the same"),
        (lambda x: (4 * x).round() + 1e-6 * x, points(9, 1), "has jumps that its derivatives miss"),
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


def test_slopes_are_right_where_second_derivatives_underflow():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.GroupNorm(1, 3), nn.Tanh(), nn.Linear(3, 3)).eval()
    x, way = 1e17 * points(9, 4).float(), 1e17 * points(9, 4, seed=2).float()
    slope = directional_derivatives(net, x, way)[1].double()
    jacobian = jacobians(net.double(), x.double())
    assert_close(slope, torch.einsum("mcd,md->mc", jacobian, way.double()), rtol=1e-3, atol=1e-4)
