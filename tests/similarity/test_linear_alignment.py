import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from cases import points
from inscape.similarity import LinearMoments, kernel_alignment, linear_alignment


def unbiased(k, other):
    """Return the unbiased HSIC as averages over tuples of different examples."""
    n = range(len(k))
    two = [float(k[i, j] * other[i, j]) for i, j in itertools.permutations(n, 2)]
    three = [float(k[i, j] * other[i, q]) for i, j, q in itertools.permutations(n, 3)]
    four = [float(k[i, j] * other[q, r]) for i, j, q, r in itertools.permutations(n, 4)]
    return sum(two) / len(two) + sum(four) / len(four) - 2 * sum(three) / len(three)


def test_biased_is_the_formula_of_the_papers():
    x, y = points(12, 5), points(12, 3, seed=2)
    a, b = x - x.mean(0), y - y.mean(0)
    expected = (b.T @ a).norm() ** 2 / ((a.T @ a).norm() * (b.T @ b).norm())
    assert linear_alignment(x, y).biased == pytest.approx(float(expected), rel=1e-12)
    plain = (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())
    assert linear_alignment(x, y).uncentred == pytest.approx(float(plain), rel=1e-12)


def test_debiased_is_the_average_over_different_examples():
    x, y = points(7, 4), points(7, 3, seed=2)
    k, other = x @ x.T, y @ y.T
    expected = unbiased(k, other) / math.sqrt(unbiased(k, k) * unbiased(other, other))
    assert linear_alignment(x, y).debiased == pytest.approx(expected, rel=1e-10)
    assert kernel_alignment(k, other)[1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "p"), [(5, 3), (300, 300)])
def test_orthogonal_examples_have_no_debiased_alignment(n, p):
    """No two of them are alike: the unbiased estimate is 0 / 0, and what is left is rounding."""
    x = torch.eye(n, p, dtype=torch.float64)
    assert math.isnan(linear_alignment(x, -2 * x).debiased)
    assert math.isnan(kernel_alignment(x @ x.T, 4 * x @ x.T)[1])
    assert linear_alignment(x, -2 * x).biased == pytest.approx(1.0, rel=1e-12)


def test_kernels_give_the_same_as_features():
    x, y = points(20, 6), points(20, 4, seed=2) + 3
    by_kernel = kernel_alignment(x @ x.T, y @ y.T)
    by_features = linear_alignment(x, y)
    assert_close(torch.tensor(by_kernel), torch.tensor([by_features.biased, by_features.debiased]))


def test_batches_give_the_same_as_all_at_once_far_from_zero():
    x, y = points(30, 4) + 1e6, points(30, 5, seed=2) - 1e6
    moments = LinearMoments()
    for part in (slice(0, 7), slice(7, 8), slice(8, 30)):
        moments.add(x[part], y[part])
    whole = linear_alignment(x - 1e6, y + 1e6)
    assert moments.alignment().biased == pytest.approx(whole.biased, rel=1e-9)
    assert moments.alignment().debiased == pytest.approx(whole.debiased, rel=1e-9)


INDEPENDENT = [(500, 500, 0.501), (1000, 250, 0.201), (200, 800, 0.801)]


@pytest.mark.parametrize(("n", "p", "biased"), INDEPENDENT)
def test_independent_features_look_alike_only_to_the_biased_form(n, p, biased):
    result = linear_alignment(points(n, p, seed=3), points(n, p, seed=4))
    assert result.biased == pytest.approx(biased, abs=0.006)
    assert result.debiased == pytest.approx(0, abs=0.02)


def test_rotation_scale_and_shift_change_nothing():
    x = points(15, 4)
    turn = torch.linalg.qr(points(4, 4, seed=5)).Q
    result = linear_alignment(x, -3 * x @ turn + 2)
    assert (result.biased, result.debiased) == (pytest.approx(1), pytest.approx(1))


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e8])
def test_constant_features_have_no_alignment(shift):
    constant = torch.full((9, 3), 0.1, dtype=torch.float64) + shift
    result = linear_alignment(points(9, 2), constant)
    assert math.isnan(result.biased)
    assert math.isnan(result.debiased)


def test_three_examples_have_no_debiased_form():
    assert math.isnan(linear_alignment(points(3, 2), points(3, 2, seed=2)).debiased)
