import math

import pytest
import torch
from torch.testing import assert_close

from inscape.data import ball_versus_sphere, circle_versus_annulus, half_plane, xor_circles

F64 = torch.float64
ALL = [ball_versus_sphere, half_plane, circle_versus_annulus, xor_circles]


def _looks_uniform(u):
    """Compare three moments with those of U(0, 1) within five standard errors."""
    for power in (1, 2, 3):
        mean, variance = 1 / (power + 1), 1 / (2 * power + 1) - 1 / (power + 1) ** 2
        assert abs((u**power).mean() - mean) < 5 * math.sqrt(variance / len(u))


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_ball_and_sphere(dimension):
    data = ball_versus_sphere(n=4001, dimension=dimension, dtype=F64)
    radius = data.x.norm(dim=1)
    sphere, ball = (data.y[:, 0] == 1), (data.y[:, 0] == -1)
    assert (int(sphere.sum()), int(ball.sum())) == (2001, 2000)
    assert_close(radius[sphere], torch.ones(2001, dtype=F64))
    assert radius[ball].max() <= 0.5
    _looks_uniform((2 * radius[ball]) ** dimension)
    centre = data.x[sphere].mean(0)  # each coordinate has variance 1 / dimension
    assert (centre.abs() < 5 / math.sqrt(2001 * dimension)).all()


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_half_plane_labels_are_sides(dimension, dtype):
    data = half_plane(dimension=dimension, dtype=dtype)
    a = torch.ones(dimension, dtype=F64)
    assert torch.equal(data.y[:, 0] > 0, data.x.double() @ a >= 0)
    assert set(data.y[:, 0].tolist()) == {-1.0, 1.0}
    _looks_uniform((data.x.double().flatten() + 1) / 2)


@pytest.mark.parametrize("dimension", [2, 3, 8])
def test_circle_and_annulus(dimension):
    data = circle_versus_annulus(n=4000, dimension=dimension, dtype=F64)
    radius = data.x.norm(dim=1)
    circle, annulus = radius[data.y == 1], radius[data.y == 0]
    low, high = 0.5 * math.sqrt(dimension), 0.5 * dimension
    assert (len(circle), len(annulus)) == (2000, 2000)
    assert circle.max() <= 0.5
    assert low <= annulus.min()
    assert annulus.max() <= high
    _looks_uniform((2 * circle) ** dimension)
    _looks_uniform((annulus**dimension - low**dimension) / (high**dimension - low**dimension))
    assert data.class_names[1] == "circle"


def test_radii_in_the_plane_are_those_of_the_thesis():
    radius = circle_versus_annulus(n=100_000, n_test=0, dtype=F64)
    inner, outer = (radius.x[radius.y == k].norm(dim=1) for k in (1, 0))
    result = torch.stack((inner.max(), outer.min(), outer.max()))
    r1 = 0.5
    expected = torch.tensor([r1, math.sqrt(2) * r1, 2 * r1], dtype=F64)
    assert_close(result, expected, atol=1e-4, rtol=0)  # extremes of 50,000 draws


def test_a_very_high_dimension_stays_finite():
    assert circle_versus_annulus(n=10, n_test=0, dimension=784).x.isfinite().all()


def test_shell_may_be_thinner_than_by_default():
    data = circle_versus_annulus(n=4000, dimension=5, outer=1.1, dtype=F64)
    radius = data.x[data.y == 0].norm(dim=1)
    second = 0.5 * 5**0.5
    assert second <= radius.min() < 1.01 * second
    assert 1.09 * second < radius.max() <= 1.1 * second


@pytest.mark.parametrize("make", [circle_versus_annulus, xor_circles])
def test_normalised_inputs_have_standard_deviation_one(make):
    plain, scaled = make(dtype=F64), make(normalise=True, dtype=F64)
    assert_close(scaled.x.std(correction=0), torch.tensor(1.0, dtype=F64))
    scale = plain.x.std(correction=0)
    assert_close(scaled.x * scale, plain.x)
    assert_close(scaled.x_test * scale, plain.x_test)
    assert torch.equal(scaled.y, plain.y)


def test_xor_swaps_the_classes_in_two_quadrants():
    data, plain = xor_circles(), circle_versus_annulus()
    assert torch.equal(data.x, plain.x)
    swapped = data.x[:, 0] * data.x[:, 1] < 0
    assert 400 < int(swapped.sum()) < 600
    assert torch.equal(data.y[swapped], 1 - plain.y[swapped])
    assert torch.equal(data.y[~swapped], plain.y[~swapped])


@pytest.mark.parametrize("make", ALL)
def test_labels_may_be_signs_or_classes(make):
    signs, classes = make(labels="regression"), make(labels="classes")
    assert signs.task == "regression"
    assert signs.y.shape == (len(signs.x), 1)
    assert classes.task == "classes"
    assert classes.classes == 2
    assert classes.y.dtype == torch.int64
    assert torch.equal(signs.x, classes.x)
    assert torch.equal(signs.y[:, 0], 2.0 * classes.y - 1)
    assert torch.equal(signs.y_test[:, 0], 2.0 * classes.y_test - 1)


@pytest.mark.parametrize("make", ALL)
def test_a_seed_names_the_data_in_both_precisions(make):
    assert make(seed=1).hash == make(seed=1).hash
    assert make(seed=1).hash != make(seed=2).hash
    assert torch.equal(make(dtype=F64).x.float(), make().x)


@pytest.mark.parametrize("make", ALL)
def test_test_points_stand_apart(make):
    assert torch.equal(make(n=10).x_test, make(n=20).x_test)
    assert not torch.equal(make(seed=1).x_test, make(seed=2).x_test)
    train = {tuple(row) for row in make().x.tolist()}
    assert not train & {tuple(row) for row in make().x_test.tolist()}
    assert make(n_test=0).x_test is None


@pytest.mark.parametrize("make", [ball_versus_sphere, circle_versus_annulus])
def test_classes_come_in_mixed_order(make):
    y = make(labels="classes").y
    assert 10 < int(y[:50].sum()) < 40
    changes = int((y[1:] != y[:-1]).sum())
    assert abs(changes - len(y) / 2) < 5 * math.sqrt(len(y) / 4)
    assert not torch.equal(y, make(labels="classes", seed=1).y)


@pytest.mark.parametrize(
    ("make", "settings", "text"),
    [
        (ball_versus_sphere, {"n": 0}, "n must be at least 1, found 0"),
        (ball_versus_sphere, {"dimension": 0}, "dimension must be at least 1, found 0"),
        (half_plane, {"dimension": 0}, "dimension must be at least 1, found 0"),
        (half_plane, {"n_test": -1}, "n_test must be at least 0, found -1"),
        (circle_versus_annulus, {"dimension": 1}, "dimension must be at least 2, found 1"),
        (circle_versus_annulus, {"radius": 0.0}, "radius must be positive, found 0.0"),
        (circle_versus_annulus, {"outer": 0.5}, "outer must be at least 1, found 0.5"),
        (xor_circles, {"radius": -1.0}, "radius must be positive, found -1.0"),
        (xor_circles, {"seed": -1}, "seed must be at least 0, found -1"),
    ],
)
def test_wrong_settings_are_refused(make, settings, text):
    with pytest.raises(ValueError, match=text):
        make(**settings)
