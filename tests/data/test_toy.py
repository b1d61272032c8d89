import math

import pytest
import torch
from torch.testing import assert_close

from inscape.data import annulus, disc, noisy_sine

F64 = torch.float64


def test_disc_is_uniform_in_area():
    x = disc(n=20_000, n_test=0, dtype=F64).x
    radius = x.norm(dim=1)
    assert radius.max() <= 1
    # Under a uniform law |x|^2 is U(0, 1) and the angle U(-pi, pi): compare moments within 5 s.e.
    _looks_uniform(radius**2, 0, 1)
    _looks_uniform(torch.atan2(x[:, 1], x[:, 0]), -math.pi, math.pi)


def test_annulus_is_uniform_in_area():
    x = annulus(n=20_000, n_test=0, dtype=F64).x
    radius = x.norm(dim=1)
    assert radius.min() >= 0.5
    assert radius.max() <= 1
    _looks_uniform(radius**2, 0.25, 1)


def _looks_uniform(u, low, high):
    u = (u - low) / (high - low)
    for power in (1, 2, 3):
        mean, variance = 1 / (power + 1), 1 / (2 * power + 1) - 1 / (power + 1) ** 2
        assert abs((u**power).mean() - mean) < 5 * math.sqrt(variance / len(u))


@pytest.mark.parametrize("make", [disc, annulus])
@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_labels_are_the_answers_of_the_stored_points(make, dtype):
    data = make(dtype=dtype)
    assert data.y.shape == (len(data.x), 1)
    for x, y in ((data.x, data.y), (data.x_test, data.y_test)):
        assert torch.equal(y[:, 0], (x[:, 0].double() + x[:, 1].double()).to(dtype))
    product = make(dtype=dtype, target="multiplication")
    assert torch.equal(product.x, data.x)
    assert_close(product.y[:, 0], data.x[:, 0] * data.x[:, 1])


def test_sizes_are_those_of_the_paper():
    assert disc().x.shape == (128, 2)
    assert disc().x_test.shape == (1280, 2)
    assert annulus().x.shape == (256, 2)


def test_an_annulus_without_a_hole_is_the_disc():
    assert torch.equal(annulus(n=50, inner=0.0).x, disc(n=50).x)


@pytest.mark.parametrize("make", [disc, annulus, noisy_sine])
def test_a_seed_names_the_data(make):
    assert make(seed=1).hash == make(seed=1).hash
    assert make(seed=1).hash != make(seed=2).hash
    assert not torch.equal(make(seed=1).x, make(seed=2).x)


@pytest.mark.parametrize("make", [disc, annulus, noisy_sine])
def test_both_precisions_hold_the_same_points(make):
    assert torch.equal(make(dtype=F64).x.float(), make().x)


@pytest.mark.parametrize("make", [disc, annulus])
def test_test_points_do_not_depend_on_the_number_of_training_points(make):
    assert torch.equal(make(n=10).x_test, make(n=20).x_test)
    assert not torch.equal(make(seed=1).x_test, make(seed=2).x_test)
    train = {tuple(row) for row in make(n=500).x.tolist()}
    assert not train & {tuple(row) for row in make().x_test.tolist()}


@pytest.mark.parametrize("make", [disc, annulus, noisy_sine])
def test_no_test_points_on_request(make):
    assert make(n_test=0).x_test is None
    assert make(n_test=0).y_test is None


@pytest.mark.parametrize("unit", ["variance", "deviation"])
def test_sine_noise_has_the_asked_size(unit):
    data = noisy_sine(n=20_000, noise=0.25, noise_is=unit, dtype=F64)
    residual = data.y - data.x.sin()
    deviation = 0.5 if unit == "variance" else 0.25
    assert abs(residual.std() - deviation) < 5 * deviation / math.sqrt(2 * len(residual))
    assert abs(residual.mean()) < 5 * deviation / math.sqrt(len(residual))


def test_sine_domains():
    data = noisy_sine(n=20_000, dtype=F64)
    _looks_uniform(data.x, -2 * math.pi, 2 * math.pi)
    assert_close(data.x_test[[0, -1], 0], torch.tensor([-3 * math.pi, 3 * math.pi], dtype=F64))
    assert_close(data.x_test.diff(dim=0).std(), torch.tensor(0.0, dtype=F64))
    assert_close(data.y_test, data.x_test.sin())


def test_sine_without_noise():
    data = noisy_sine(noise=0.0, dtype=F64)
    assert torch.equal(data.y, data.x.sin())


@pytest.mark.parametrize(
    ("make", "settings", "text"),
    [
        (disc, {"n": 0}, "n must be at least 1, found 0"),
        (disc, {"n_test": -1}, "n_test must be at least 0, found -1"),
        (disc, {"seed": -1}, "seed must be at least 0, found -1"),
        (noisy_sine, {"n": -5}, "n must be at least 1, found -5"),
        (noisy_sine, {"noise": -0.1}, "noise must be at least 0, found -0.1"),
        (annulus, {"inner": 1.0}, r"inner must lie in \[0, 1\), found 1.0: choose a radius"),
        (annulus, {"inner": -0.5}, r"inner must lie in \[0, 1\), found -0.5"),
    ],
)
def test_wrong_settings_are_refused(make, settings, text):
    with pytest.raises(ValueError, match=text):
        make(**settings)


def test_whole_numbers_are_no_dtype_for_points():
    with pytest.raises(TypeError, match=r"dtype must be a floating-point type, found torch.int32"):
        noisy_sine(dtype=torch.int32)
