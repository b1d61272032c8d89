import math

import pytest
import torch
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape.smoothness import gradient_norm, gradient_norm_penalty
from oracles.smoothness import difference_jacobian, jacobian


@pytest.mark.parametrize("case", CASES)
def test_each_norm_equals_plain_autograd_point_by_point(case):
    f, x, _ = CASES[case]()
    expected = torch.stack([jacobian(f, point).norm() for point in x])
    assert_close(gradient_norm(f, x).norms, expected)


def test_each_norm_equals_central_differences():
    f, x, _ = CASES["tanh"]()
    expected = torch.stack([difference_jacobian(f, point).norm() for point in x])
    # Central differences with step 1e-6 are good to about 1e-9.
    assert_close(gradient_norm(f, x).norms, expected, rtol=1e-7, atol=1e-8)


def test_affine_map_has_the_norm_of_its_matrix_everywhere():
    f = torch.nn.Linear(3, 2, dtype=torch.float64).eval()
    norms = gradient_norm(f, points(5, 3)).norms
    assert_close(norms, f.weight.detach().norm().expand(5))


def test_relu_has_derivative_zero_at_zero():
    assert gradient_norm(torch.relu, torch.zeros(1, 1)).norms.item() == 0.0


def test_summary_is_mean_and_students_interval_of_its_logarithm():
    result = gradient_norm(torch.sin, torch.linspace(0, 1, 50, dtype=torch.float64)[:, None])
    norms, summary = result.norms, result.summary()
    half = 2.0095752371 * (norms.std() / 50**0.5 / norms.mean()).item()  # t of 49 degrees
    assert summary.value == pytest.approx(norms.mean().item())
    assert (summary.low, summary.high) == pytest.approx(
        (summary.value * math.exp(-half), summary.value * math.exp(half))
    )
    assert summary.kind == "estimate"
    assert summary.basis == "50 points"


def test_interval_holds_the_truth_about_as_often_as_it_says():
    truth = 2 / torch.pi  # the mean of |cos| over a period
    draw = torch.Generator().manual_seed(0)
    held = 0
    for _ in range(200):
        x = 2 * torch.pi * torch.rand(100, 1, generator=draw, dtype=torch.float64)
        summary = gradient_norm(torch.sin, x).summary()
        held += summary.low <= truth <= summary.high
    # Binomial(200, 0.95) has standard deviation 3.1: five of them.
    assert abs(held - 190) <= 15


def test_memory_changes_the_chunks_and_not_the_numbers():
    f, x, _ = CASES["two-layer, three outputs"]()
    assert_close(gradient_norm(f, x, memory=1).norms, gradient_norm(f, x).norms)


def test_fewer_points_are_a_seeded_draw_without_replacement():
    x = torch.arange(20.0)[:, None]
    norms = gradient_norm(lambda x: x**2 / 2, x, points=8, seed=3).norms
    assert len(norms.unique()) == 8
    assert_close(norms, gradient_norm(lambda x: x**2 / 2, x, points=8, seed=3).norms)
    assert not torch.equal(norms, gradient_norm(lambda x: x**2 / 2, x, points=8, seed=4).norms)


def test_image_inputs_are_measured_in_their_own_shape():
    f = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 1))
    f = f.double().eval()
    x = points(4, 1, 4, 4)
    expected = torch.stack([jacobian(f, image).norm() for image in x])
    assert_close(gradient_norm(f, x).norms, expected)


def test_constant_function_has_none():
    assert gradient_norm(lambda x: torch.ones(len(x), 1), torch.rand(3, 2)).summary().value == 0.0


def test_penalty_is_the_batch_mean_and_differentiates():
    f, x, _ = CASES["two-layer"]()
    penalty = gradient_norm_penalty(f, x)
    assert_close(penalty.detach(), gradient_norm(f, x).norms.mean())
    (g,) = torch.autograd.grad(penalty, f[2].weight)
    step = torch.zeros_like(g)
    step[0, 2] = 1e-6
    with torch.no_grad():
        f[2].weight += step
        up = gradient_norm_penalty(f, x)
        f[2].weight -= 2 * step
        down = gradient_norm_penalty(f, x)
    # Central differences with step 1e-6 are good to about 1e-9.
    assert_close(g[0, 2], ((up - down) / 2e-6).detach(), rtol=1e-6, atol=1e-8)


def test_zero_points_are_refused():
    with pytest.raises(ValueError, match="points must be at least 1, found 0: raise points"):
        gradient_norm(torch.sin, torch.rand(3, 1), points=0)


def test_wide_and_deep_agree_with_float32():
    f, x = dense(4, 16, 16, 2), points(6, 4)
    ours = gradient_norm(f.float(), x.float()).norms
    assert ours.dtype == torch.float32
    assert_close(ours, torch.stack([jacobian(f, point).norm() for point in x.float()]))
