import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.data import gaussian_process, spread_order
from inscape.data.gp import _draw, _pinned_covariance

F64 = torch.float64


def kernel(a, b, length_scale=0.5):
    return torch.exp(-((a - b.T) ** 2) / (2 * length_scale**2))


def test_the_points_are_those_of_the_thesis():
    data = gaussian_process(dtype=F64)
    assert_close(data.x_test[:, 0], torch.linspace(-1, 1, 100, dtype=F64))
    used = [0, 99, 49, 74, 24, 36, 61, 86, 12, 42]
    assert torch.equal(data.x, data.x_test[used])
    assert torch.equal(data.y, data.y_test[used])


def test_subsets_are_the_training_sets_of_the_thesis():
    ten = gaussian_process(seed=4)
    for size in range(2, 10):
        small = gaussian_process(n=size, seed=4)
        assert torch.equal(ten.subset(size).x, small.x)
        assert torch.equal(ten.subset(size).y, small.y)


def _farthest_first(points: int) -> list[int]:
    """Do what the text says, slowly: take the lowest of the points farthest from all used ones."""
    used = [0, points - 1]
    while len(used) < points:
        rest = [i for i in range(points) if i not in used]
        used.append(max(rest, key=lambda i: (min(abs(i - j) for j in used), -i)))
    return used


@pytest.mark.parametrize("points", [2, 3, 4, 5, 9, 10, 17, 64, 100])
def test_distance_order_agrees_with_brute_force(points):
    assert spread_order(points, rule="distance") == _farthest_first(points)


@pytest.mark.parametrize("points", [2, 3, 10, 33, 100])
def test_gap_order_splits_a_longest_gap_each_time(points):
    order = spread_order(points)
    assert sorted(order) == list(range(points))
    assert order[:2] == [0, points - 1]
    for k in range(2, points):
        used = sorted(order[:k])
        gaps = [right - left for left, right in pairwise(used)]
        left = max(i for i in used if i < order[k])
        right = min(i for i in used if i > order[k])
        assert right - left == max(gaps)
        assert left == used[gaps.index(max(gaps))], "the lowest of several"
        assert order[k] == (left + right) // 2


def test_f_is_zero_at_zero():
    data = gaussian_process(n_test=101, dtype=F64)
    assert abs(data.x_test[50]) < 1e-15
    assert abs(data.y_test[50]) < 1e-7  # the root of rounding errors of order 1e-16


def test_draws_have_the_pinned_covariance():
    x = torch.tensor([[-1.0], [-0.3], [0.0], [0.4], [1.0]], dtype=F64)
    draws = torch.cat([_draw(_pinned_covariance(x, 0.5, 1.0), seed) for seed in range(2000)], 1)
    zero = torch.zeros(1, 1, dtype=F64)
    expected = kernel(x, x) - kernel(x, zero) @ kernel(zero, x)
    result = draws @ draws.T / draws.shape[1]
    # The product of two normals has variance at most 2 v^2: five standard errors.
    assert (result - expected).abs().max() < 5 * math.sqrt(2 / draws.shape[1])


def test_covariance_agrees_with_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    x = torch.linspace(-1, 1, 20, dtype=F64)[:, None]
    sure = GaussianProcessRegressor(
        ConstantKernel(2.5) * RBF(0.3), alpha=1e-12, optimizer=None
    ).fit(np.zeros((1, 1)), np.zeros(1))
    _, expected = sure.predict(x.numpy(), return_cov=True)
    assert_close(_pinned_covariance(x, 0.3, 2.5), torch.from_numpy(expected))


def test_a_draw_is_smooth_to_the_last_digit():
    """Jitter on the diagonal would show as noise in the third differences."""
    f = gaussian_process(dtype=F64).y_test[:, 0]
    step = 2 / 99
    third = f.diff(n=3) / step**3
    assert third.abs().max() < 1e3
    assert third.diff().abs().max() < 0.1 * third.abs().max() + 10


def test_scale_and_variance_act_as_they_say():
    near = gaussian_process(seed=2, dtype=F64)
    loud = gaussian_process(seed=2, variance=4.0, dtype=F64)
    assert_close(loud.y_test, 2 * near.y_test, atol=1e-6, rtol=1e-6)  # rounding under the root
    long = gaussian_process(seed=2, length_scale=5.0, dtype=F64)
    assert long.y_test.diff(dim=0).abs().max() < near.y_test.diff(dim=0).abs().max()


def test_the_thesis_draws_are_repeated():
    """Its polynomials through two points publish |f(1) - f(-1)| / 2 (there as weights product).

    Those runs had a noise variance of 0.001, which moves the values by up to 0.05; a wrong draw
    would be off by about 1 at most seeds.
    """
    published = [0.841531, 1.23195, 1.067371, 0.4018779, 1.229117, 0.361798, 0.9233887, 0.9791513]
    for seed, slope in enumerate(published, start=1):
        f = gaussian_process(n=2, seed=seed, draw="thesis", dtype=F64).y[:, 0]
        assert abs((f[1] - f[0]).abs() / 2 - slope) < 0.05


def test_a_seed_names_the_function():
    assert gaussian_process(seed=1).hash == gaussian_process(seed=1).hash
    assert gaussian_process(seed=1).hash != gaussian_process(seed=2).hash
    old = gaussian_process(seed=1, draw="thesis")
    assert old.hash == gaussian_process(seed=1, draw="thesis").hash
    assert old.hash != gaussian_process(seed=1).hash


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"n": 1}, "n must be at least 2, found 1"),
        ({"n": 11, "n_test": 10}, "n must be at most n_test, found 11 training and 10 test points"),
        ({"length_scale": 0.0}, "length_scale must be positive, found 0.0"),
        ({"variance": -1.0}, "variance must be positive, found -1.0"),
        ({"seed": -1}, "seed must be at least 0, found -1"),
        ({"seed": -1, "draw": "thesis"}, "seed must be at least 0, found -1"),
    ],
)
def test_wrong_settings_are_refused(settings, text):
    with pytest.raises(ValueError, match=text):
        gaussian_process(**settings)


def test_too_few_points_have_no_order():
    with pytest.raises(ValueError, match="points must be at least 2, found 1"):
        spread_order(1)
