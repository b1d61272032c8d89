"""Gaussian processes against scikit-learn, closed forms and points left out one by one."""

import math
import sys

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from torch import nn
from torch.testing import assert_close

import inscape
from cases import dense, points
from inscape.errors import UnsupportedModelError
from inscape.kernels import Rbf, Tangent, WideNetwork, gaussian_process, tangent_features
from inscape.kernels.gaussian_process.covariance import squared_distances
from inscape.kernels.gaussian_process.likelihood import (
    evidence_by_distances,
    evidence_by_eigenvalues,
)

X, ELSEWHERE = points(30, 2), 1.5 * points(9, 2, seed=5)
Y = torch.stack([X.sum(1).sin(), X[:, 0] - X[:, 1].cos()], dim=1) + 0.05 * points(30, 2, seed=7)


def peer(x, y, length_scale, amplitude, noise, bounds="fixed", **settings):
    kernel = ConstantKernel(amplitude, bounds) * RBF(length_scale, bounds)
    return GaussianProcessRegressor(kernel, alpha=noise, **settings).fit(x.numpy(), y.numpy())


@pytest.mark.parametrize("noise", [1e-2, 1e-6])
@pytest.mark.parametrize("y", [Y, Y[:, 0]], ids=["two outputs", "one"])
def test_agrees_with_scikit_learn_at_fixed_settings(y, noise):
    other = peer(X, y, 0.7, 2.0, noise)
    kernel = Rbf(length_scale=0.7)
    found = gaussian_process(X, y, kernel=kernel, amplitude=2.0, noise=noise, fitted=())
    covariance = 2 * kernel.matrix(X) + noise * torch.eye(30)
    assert torch.linalg.cond(covariance) < 1e8
    mean, variance = found.predict(ELSEWHERE)
    expected, deviation = other.predict(ELSEWHERE.numpy(), return_std=True)
    assert_close(mean, torch.from_numpy(expected), rtol=1e-8, atol=1e-8)
    squares = torch.from_numpy(deviation).square()
    squares = squares[:, 0] if squares.ndim > 1 else squares
    assert_close(variance, squares, rtol=1e-8, atol=1e-10)
    assert found.summary().value == pytest.approx(other.log_marginal_likelihood_value_, rel=1e-8)


def test_fitted_settings_are_those_of_scikit_learn_or_better():
    other = peer(X, Y[:, 0], 0.3, 1.0, 1e-2, (1e-5, 1e5), n_restarts_optimizer=3, random_state=0)
    found = gaussian_process(
        X, Y[:, 0], kernel=Rbf(length_scale=0.3), noise=1e-2, restarts=3,
        fitted=("amplitude", "length_scale"),
    )  # fmt: skip
    assert found.log_likelihood >= other.log_marginal_likelihood_value_ - 1e-9
    theirs = np.exp(other.kernel_.theta)  # found to a tolerance of 1e-5 in the gradient
    assert_close([found.amplitude, found.length_scale], theirs.tolist(), rtol=1e-3, atol=0)
    assert found.at_bounds == ()


def test_amplitude_without_noise_has_a_closed_form():
    kernel = Rbf(length_scale=0.3)
    found = gaussian_process(X, Y, kernel=kernel, noise=0.0, restarts=5)
    expected = (Y * torch.linalg.solve(kernel.matrix(X), Y)).sum() / Y.numel()
    assert found.amplitude == pytest.approx(float(expected), rel=1e-6)
    assert found.fitted == ("amplitude",)
    assert found.length_scale == 0.3


def test_noise_is_found_again():
    draw = torch.Generator().manual_seed(3)
    x = torch.rand(300, 1, generator=draw, dtype=torch.float64) * 10
    y = x.sin() + 0.2 * torch.randn(300, 1, generator=draw, dtype=torch.float64)
    found = gaussian_process(x, y, noise=1.0, fitted=("amplitude", "noise"))
    assert found.noise == pytest.approx(0.04, rel=5 * math.sqrt(2 / 300))  # 5 standard errors
    joint = gaussian_process(x, y, noise=1.0, fitted=("amplitude", "noise", "length_scale"))
    assert joint.log_likelihood > found.log_likelihood


@pytest.mark.parametrize("how", ["eigenvalues", "distances"])
def test_derivatives_of_the_likelihood_are_those_of_differences(how):
    squares = squared_distances(X, X)
    at = {"amplitude": 1.7, "length_scale": 0.6, "noise": 0.02}
    kernel = Rbf(length_scale=0.6).matrix(X)
    evidence = (
        evidence_by_eigenvalues(kernel, Y)
        if how == "eigenvalues"
        else evidence_by_distances(squares, Y)
    )
    value, by = evidence(at)
    process = gaussian_process(
        X, Y, kernel=Rbf(length_scale=0.6), amplitude=1.7, noise=0.02, fitted=()
    )
    assert value == pytest.approx(process.log_likelihood, rel=1e-12)
    for name, slope in by.items():
        ends = [evidence({**at, name: at[name] * math.exp(h)})[0] for h in (1e-4, -1e-4)]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6)


def test_left_out_labels_are_what_the_others_predict():
    settings = {"kernel": Rbf(length_scale=0.8), "noise": 0.01, "fitted": ()}
    mean, variance = gaussian_process(X, Y, **settings).leave_one_out()
    for k in (0, 7, 29):
        rest = torch.arange(30) != k
        other, uncertain = gaussian_process(X[rest], Y[rest], **settings).predict(X[k : k + 1])
        assert_close(mean[k], other[0])
        assert_close(variance[k], uncertain[0] + 0.01)


def test_passes_through_the_data_and_forgets_them_far_away():
    found = gaussian_process(X, Y, kernel=Rbf(length_scale=0.3))
    mean, variance = found.predict(X)
    assert_close(mean, Y, rtol=1e-6, atol=1e-6)
    assert variance.max() < 1e-8
    mean, variance = found.predict(X + 100)
    assert_close(mean, torch.zeros_like(mean))
    assert_close(variance, torch.full_like(variance, found.amplitude))


def test_the_order_of_points_does_not_matter():
    turned = torch.arange(29, -1, -1)
    one = gaussian_process(X, Y, noise=1e-3, fitted=("amplitude", "length_scale"))
    two = gaussian_process(X[turned], Y[turned], noise=1e-3, fitted=("amplitude", "length_scale"))
    assert two.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-9)


def test_tangent_kernel_is_ridge_regression_on_the_features():
    model = dense(2, 6, 1)
    found = gaussian_process(X, Y, kernel=Tangent(model), noise=0.1, fitted=())
    phi, psi = tangent_features(model, X), tangent_features(model, ELSEWHERE)
    ridge = torch.linalg.solve(phi.T @ phi + 0.1 * torch.eye(phi.shape[1]), phi.T @ Y)
    mean, variance = found.predict(ELSEWHERE)
    assert_close(mean, psi @ ridge)
    inverse = torch.linalg.inv(phi.T @ phi / 0.1 + torch.eye(phi.shape[1]))
    assert_close(variance, ((psi @ inverse) * psi).sum(1))


def test_float32_models_are_taken_in_float64():
    model = dense(2, 6, 1).float()
    found = gaussian_process(X.float(), Y.float(), kernel=Tangent(model), noise=0.1, fitted=())
    assert found.factor.dtype == torch.float64
    assert model[0].weight.dtype == torch.float32


def test_images_and_wide_networks():
    x = points(12, 1, 4, 4)
    kernel = WideNetwork(hidden=2, bias=0.1, form="ntk")
    found = gaussian_process(x, x.flatten(1)[:, 0], kernel=kernel, noise=1e-6)
    flat = gaussian_process(x.flatten(1), x.flatten(1)[:, 0], kernel=kernel, noise=1e-6)
    assert_close(found.predict(x + 0.1), flat.predict(x.flatten(1) + 0.1))
    assert found.settings == flat.settings == (
        ("activation", "relu"), ("hidden", 2), ("weight", 2.0), ("bias", 0.1), ("form", "ntk")
    )  # fmt: skip


@pytest.mark.parametrize("kernel", [Rbf(length_scale=0.5), WideNetwork(activation="erf")])
def test_save_and_load_predict_the_same(tmp_path, kernel):
    found = gaussian_process(X, Y, kernel=kernel, noise=1e-3)
    again = inscape.load(found.save(tmp_path / "process.json"))
    assert_close(again.predict(ELSEWHERE), found.predict(ELSEWHERE), rtol=0, atol=0)
    assert repr(again) == repr(found)
    rows = list(found.rows())
    assert len(rows) == 60
    assert rows[3] == {
        "point": 1, "output": 1, "y": float(Y[1, 1]),
        "leave_one_out_mean": float(found.leave_one_out()[0][1, 1]),
        "leave_one_out_std": float(found.leave_one_out()[1][1].sqrt()),
    }  # fmt: skip


def test_many_points_are_predicted_in_blocks(monkeypatch):
    found = gaussian_process(X, Y, noise=1e-3)
    whole = found.predict(ELSEWHERE)
    home = sys.modules[type(found).__module__]
    monkeypatch.setattr(home, "BLOCK", 60)
    assert_close(found.predict(ELSEWHERE), whole)


def test_a_setting_at_its_bound_is_named():
    found = gaussian_process(X, Y, kernel=Rbf(length_scale=0.3), bounds=(1e-5, 0.01))
    assert found.at_bounds == ("amplitude",)
    assert found.amplitude == pytest.approx(0.01)
    assert found.summary().basis.endswith("length scale 0.3, amplitude at the bound of its fit")
    free = gaussian_process(X, Y, kernel=Rbf(length_scale=0.3))
    assert "bound" not in free.summary().basis


@pytest.mark.parametrize(("n", "d", "noise"), [(50, 1, 0.01), (120, 3, 0.1), (120, 2, 1e-3)])
def test_a_fit_of_all_settings_starts_well_by_default(n, d, noise):
    draw = torch.Generator().manual_seed(0)
    x = 4 * torch.rand(n, d, generator=draw, dtype=torch.float64) - 2
    y = x.sum(1).sin() + noise**0.5 * torch.randn(n, generator=draw, dtype=torch.float64)
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)
    other = GaussianProcessRegressor(kernel, alpha=0.0).fit(x.numpy(), y.numpy())
    for noise in (1e-10, 1e-5):  # at the lower bound the start leads to a far lower summit
        found = gaussian_process(x, y, noise=noise, fitted=("amplitude", "length_scale", "noise"))
        assert found.log_likelihood >= other.log_marginal_likelihood_value_ - 1e-6
        theirs = other.kernel_
        assert found.length_scale == pytest.approx(theirs.k1.k2.length_scale, rel=1e-2)
        assert found.noise == pytest.approx(theirs.k2.noise_level, rel=1e-2)
        assert found.at_bounds == ()


def test_starts_suit_data_of_any_size_and_hold_what_is_not_fitted():
    every = ("amplitude", "length_scale", "noise")
    one = gaussian_process(X, Y, fitted=every)
    large = gaussian_process(1e3 * X, 10 * Y, fitted=every)
    assert large.length_scale == pytest.approx(1e3 * one.length_scale, rel=1e-3)
    assert large.noise == pytest.approx(100 * one.noise, rel=1e-3)
    held = gaussian_process(X, 10 * Y, amplitude=3.0, fitted=("length_scale", "noise"))
    tried = [
        gaussian_process(
            X, 10 * Y, kernel=Rbf(length_scale=scale), amplitude=3.0, noise=noise, fitted=()
        ).log_likelihood
        for scale in np.geomspace(0.01, 100, 13).tolist()
        for noise in np.geomspace(1e-4, 1e3, 13).tolist()
    ]
    assert held.amplitude == 3.0
    assert held.log_likelihood >= max(tried)
    nothing = gaussian_process(X, 0 * Y, noise=0.1, fitted=("amplitude", "noise"))
    assert nothing.at_bounds == ("amplitude", "noise")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"amplitude": 0.0}, r"amplitude must be positive, found 0.0: raise amplitude"),
        ({"noise": -1.0}, r"noise must be at least 0, found -1.0: raise noise"),
        ({"fitted": ("slope",)}, r"fitted must be one of 'amplitude', .*, found 'slope'"),
        ({"bounds": (1.0, 0.1)}, r"bounds must be positive and rise, found \(1.0, 0.1\): swap"),
        (
            {"kernel": WideNetwork(), "fitted": ("length_scale",)},
            r'is fitted for Rbf, found WideNetwork: leave "length_scale" out of fitted',
        ),
    ],
)
def test_refusals(settings, says):
    with pytest.raises(ValueError, match=says):
        gaussian_process(X, Y, **settings)


def test_refuses_a_singular_covariance_and_other_shapes(unchecked):
    twice = torch.cat([X, X])
    with pytest.raises(ValueError, match=r"singular to rounding with noise=0: raise noise, to .*,"):
        gaussian_process(twice, torch.cat([Y, Y]), noise=0.0, fitted=())
    found = gaussian_process(X, Y, noise=1e-3)
    with pytest.raises(ValueError, match=r"points of shape \(2,\) as the data have, found \(3,\)"):
        found.predict(points(4, 3))
    with pytest.raises(ValueError, match=r"length_scale must be positive, found 0.0: raise length"):
        Rbf(length_scale=0.0)
    frozen = nn.Linear(2, 1).requires_grad_(False).eval()
    with pytest.raises(UnsupportedModelError, match=r"needs trainable parameters, found that the"):
        gaussian_process(X, Y, kernel=Tangent(frozen))
