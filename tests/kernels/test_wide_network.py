"""Kernels of infinite width against quadrature, closed forms and wide random networks."""

import itertools
import math

import pytest
import torch
from scipy.special import roots_hermitenorm
from torch import nn
from torch.testing import assert_close

from cases import points
from inscape.kernels import WideNetwork, tangent_kernel

FUNCTIONS = {"relu": torch.relu, "erf": torch.erf, "tanh": torch.tanh}
X, Z = points(5, 3), points(4, 3, seed=2)


def mean_of_product(f, cross, one, two):
    """Return E[f(u) f(v)] by Gauss-Hermite quadrature in both directions."""
    t, w = (torch.from_numpy(part) for part in roots_hermitenorm(120))
    w = w / w.sum()
    rho = cross / math.sqrt(one * two)
    v = math.sqrt(two) * (rho * t[:, None] + math.sqrt(1 - rho**2) * t)
    return (f(math.sqrt(one) * t) * w) @ (f(v) @ w)


def slope(f):
    return lambda a: torch.func.vmap(torch.func.grad(f))(a.flatten()).reshape(a.shape)


def by_quadrature(f, x, z, hidden, weight, bias):
    """Return both kernels at two points, layer by layer."""
    sigma = {
        pair: bias + weight * float(a @ b) / len(a)
        for pair, a, b in (("xx", x, x), ("xz", x, z), ("zz", z, z))
    }
    theta = sigma["xz"]
    for _ in range(hidden):
        at = (sigma["xz"], sigma["xx"], sigma["zz"])
        slopes = float(mean_of_product(slope(f), *at))
        cross = bias + weight * float(mean_of_product(f, *at))
        for pair in ("xx", "zz"):
            own = sigma[pair]
            t, w = (torch.from_numpy(part) for part in roots_hermitenorm(120))
            sigma[pair] = bias + weight * float(f(math.sqrt(own) * t).square() @ (w / w.sum()))
        sigma["xz"] = cross
        theta = cross + weight * theta * slopes
    return cross, theta


@pytest.mark.parametrize("hidden", [1, 3])
@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_smooth_activations_agree_with_quadrature(activation, hidden):
    settings = {"activation": activation, "hidden": hidden, "weight": 1.4, "bias": 0.3}
    found = [WideNetwork(**settings, form=form).between(X[:1], Z[:1]) for form in ("nngp", "ntk")]
    expected = by_quadrature(FUNCTIONS[activation], X[0], Z[0], hidden, 1.4, 0.3)
    # 120 nodes and the scales of tanh are good to 1e-9 here
    expected = torch.tensor(expected, dtype=torch.float64)
    assert_close(torch.cat(found)[:, 0], expected, rtol=2e-9, atol=0)


def test_tanh_is_accurate_where_it_is_nearly_a_step():
    # the mean of tanh(10 u)^2 over the unit normal, by a fine sum
    t = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    density = torch.exp(-t.square() / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])
    expected = (torch.tanh(10 * t).square() * density).sum()
    wide = WideNetwork(activation="tanh", weight=1.0)
    x = torch.full((1, 2), 10.0, dtype=torch.float64)
    assert_close(wide.diagonal(x)[0], expected, rtol=1e-9, atol=0)


def test_relu_of_orthogonal_and_equal_and_opposite_points():
    x = torch.tensor([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0]], dtype=torch.float64)
    nngp = WideNetwork(weight=1.0).matrix(x)
    ntk = WideNetwork(weight=1.0, form="ntk").matrix(x)
    # variances are 2; the arc-cosine kernels are 1/2, 1/(2 pi), 0 times that
    assert_close(nngp[0], torch.tensor([1.0, 1 / math.pi, 0.0]).double())
    assert_close(ntk[0], torch.tensor([2.0, 1 / math.pi, 0.0]).double())


def test_he_scaling_keeps_the_variance_of_relu_at_any_depth():
    expected = 2 * X.square().mean(1)
    for hidden in (1, 5, 20):
        assert_close(WideNetwork(hidden=hidden).diagonal(X), expected)
        assert_close(WideNetwork(hidden=hidden, form="ntk").diagonal(X), (hidden + 1) * expected)


def test_no_hidden_layer_is_linear_regression():
    for form in ("nngp", "ntk"):
        found = WideNetwork(hidden=0, weight=3.0, bias=0.5, form=form).between(X, Z)
        assert_close(found, X @ Z.T + 0.5)


@pytest.mark.parametrize("form", ["nngp", "ntk"])
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_matrix_between_and_diagonal_agree_and_are_positive(activation, form):
    wide = WideNetwork(activation=activation, hidden=2, bias=0.1, form=form)
    x = torch.cat([X, 3 * Z, torch.zeros(1, 3).double()])
    kernel = wide.matrix(x)
    # the arc cosine of nearly equal points keeps half of the digits
    assert_close(kernel, wide.between(x, x), rtol=1e-7, atol=1e-7)
    assert_close(kernel.diagonal(), wide.diagonal(x))
    assert torch.equal(kernel, kernel.T)
    assert torch.linalg.eigvalsh(kernel).min() > -1e-12


class Scaled(nn.Module):
    """Weights and biases of the unit normal, scaled in the forward pass."""

    def __init__(self, widths, f, weight, bias, draw):
        super().__init__()
        normal = {"generator": draw, "dtype": torch.float64}
        sizes = list(itertools.pairwise(widths))
        self.weights = nn.ParameterList(torch.randn(c, d, **normal) for d, c in sizes)
        self.biases = nn.ParameterList(torch.randn(c, **normal) for _, c in sizes)
        self.f, self.weight, self.bias = f, weight, bias

    def forward(self, x):
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = self.f(x) if k else x
            x = nn.functional.linear(math.sqrt(self.weight / x.shape[1]) * x, w)
            x = x + math.sqrt(self.bias) * b
        return x


@pytest.mark.parametrize(("activation", "hidden"), [("relu", 1), ("erf", 2), ("tanh", 2)])
def test_wide_random_networks_have_these_kernels_on_average(activation, hidden):
    draw = torch.Generator().manual_seed(0)
    widths = [3, *[256] * hidden, 16]
    outputs, tangents = [], []
    for _ in range(60):
        net = Scaled(widths, FUNCTIONS[activation], 1.5, 0.2, draw).eval()
        with torch.no_grad():
            y = net(X)
        outputs.append(y @ y.T / 16)
        tangents.append(tangent_kernel(net, X, outputs="trace").kernel / 16)
    for found, form in ((outputs, "nngp"), (tangents, "ntk")):
        samples = torch.stack(found)
        error = samples.std(0) / math.sqrt(len(samples))
        settings = {"activation": activation, "hidden": hidden, "weight": 1.5, "bias": 0.2}
        expected = WideNetwork(**settings, form=form).matrix(X)
        assert ((samples.mean(0) - expected).abs() < 5 * error).all()
        assert (error < 0.1 * expected.diagonal().mean()).all()


def test_refusals(unchecked):
    with pytest.raises(ValueError, match=r"activation must be one of .*, found 'gelu': choose one"):
        WideNetwork(activation="gelu")
    with pytest.raises(ValueError, match=r"form must be one of 'nngp', 'ntk', found 'x': choose"):
        WideNetwork(form="x")
    with pytest.raises(ValueError, match=r"weight must be positive, found 0.0: raise weight"):
        WideNetwork(weight=0.0)
    with pytest.raises(ValueError, match=r"hidden must be at least 0, found -1: raise hidden"):
        WideNetwork(hidden=-1)
