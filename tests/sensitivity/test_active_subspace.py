import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError
from inscape.functional.jacobians import jacobians
from inscape.sensitivity import active_subspace


def sampled(result, x):
    """Return the points whose gradients a result has, in the order of its draw."""
    draw = torch.Generator().manual_seed(result.seed)
    numbers = torch.randperm(len(x), generator=draw)[: len(result.held_out)]
    return x[numbers][~result.held_out]


def covariances(f, x):
    gradients = jacobians(f, x)
    return torch.einsum("ncd,nce->cde", gradients, gradients) / len(x)


@pytest.mark.parametrize("n", [60, 6])  # more points than inputs, and fewer
def test_directions_are_the_eigenvectors_of_the_mean_outer_product(n):
    f, x = dense(8, 12, 3), points(n, 8)
    result = active_subspace(f, x, count=3)
    for j, matrix in enumerate(covariances(f, sampled(result, x))):
        values, vectors = torch.linalg.eigh(matrix)
        assert_close(result.eigenvalues[j], values.flip(0)[:3])
        assert_close(result.energies[j], matrix.trace())
        assert_close((result.directions[j] @ vectors.flip(1)[:, :3]).abs(), torch.eye(3).double())
    assert result.exact
    assert result.summary().value == pytest.approx(float(result.fractions[:, 0].mean()))


def test_function_of_one_projection_has_one_direction_that_explains_it():
    x = points(120, 5)
    weights = torch.tensor([0.6, 0.0, -0.8, 0.0, 0.0], dtype=torch.float64)
    result = active_subspace(lambda z: torch.sin(2 * z @ weights)[:, None], x)
    assert_close(result.directions[0, 0], -weights)  # the largest entry is positive
    assert_close(result.fractions[0, :2], torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert not result.directions[0, 1:].any()
    assert float(result.explained[0, 0]) > 0.999
    assert float(result.turns[0]) < 1e-6
    assert float(result.gaps[0, 0]) == 1


def test_function_of_two_projections_needs_two():
    x = points(300, 4)
    result = active_subspace(lambda z: z[:, :1] ** 2 + z[:, 1:2] ** 2, x)
    one, two, _ = result.explained[0].tolist()
    assert one < 0.7 < 0.99 < two
    low, high = result.explained_ends[0, 0].tolist()
    assert low < one < high


def test_output_of_noise_has_nothing_to_explain_and_no_gap():
    x, draw = points(400, 6), points(6, 40, seed=3)
    result = active_subspace(lambda z: (torch.sin(9 * z @ draw)).mean(1, keepdim=True), x)
    assert float(result.explained[0, 0]) < 0.5
    assert float(result.turns[0]) > 0.1


def test_linear_network_has_its_weights_as_directions():
    f = nn.Linear(4, 3).double().eval()
    result = active_subspace(f, points(50, 4))
    unit = f.weight.detach() / f.weight.detach().norm(dim=1, keepdim=True)
    assert_close((result.directions[:, 0] * unit).sum(1).abs(), torch.ones(3).double())
    assert_close(result.eigenvalues[:, 0], f.weight.detach().square().sum(1))
    assert result.summary().value == pytest.approx(1)
    assert_close(result.explained[:, 0], torch.ones(3).double(), atol=1e-4, rtol=0)  # a curve


def test_random_subspace_bounds_the_error_of_each_eigenvalue():
    f, x = dense(60, 80, 2), points(300, 60)
    exact = active_subspace(f, x, count=4, resamples=0)
    rough = active_subspace(f, x, count=4, resamples=0, method="randomised")
    assert rough.method == "randomised"
    assert not rough.exact
    assert (rough.missed > 0).all()
    slack = 1e-9 * exact.energies[:, None]
    assert (rough.eigenvalues <= exact.eigenvalues + slack).all()
    assert (exact.eigenvalues <= rough.eigenvalues + rough.missed[:, None] + slack).all()
    assert_close(rough.energies, exact.energies)
    low, high = rough.fraction_ends.tolist()
    assert low <= exact.summary().value <= high


def test_random_subspace_finds_gradients_of_low_rank_exactly():
    f, x = dense(60, 5, 2), points(200, 60)
    exact, rough = (
        active_subspace(f, x, count=4, resamples=0, method=method)
        for method in ("exact", "randomised")
    )
    assert not rough.missed.any()
    assert_close(rough.eigenvalues, exact.eigenvalues)
    assert_close(rough.directions, exact.directions)


def test_gradients_that_do_not_fit_are_computed_twice_with_the_same_numbers():
    f, x = dense(40, 60, 2), points(90, 40)
    stored = active_subspace(f, x, method="randomised", resamples=5)
    again = active_subspace(f, x, method="randomised", resamples=5, room=1, memory=1)
    assert_close(stored.eigenvalues, again.eigenvalues)
    assert_close(stored.ends, again.ends)
    assert active_subspace(f, x, room=1, resamples=0).method == "randomised"


def test_intervals_cover_the_eigenvalue_of_the_distribution():
    # gradients of x -> |x|^2 / 2 are the points: the covariance of the distribution is known
    scale, hits = torch.tensor([3.0, 1.0, 0.5], dtype=torch.float64), 0
    for seed in range(40):
        x = points(300, 3, seed=seed) * scale
        found = active_subspace(
            lambda z: z.square().sum(1, keepdim=True) / 2, x, points=200, resamples=100, seed=seed
        )
        low, high = found.ends[0, 0].tolist()
        hits += low <= 9.0 <= high
        assert float(found.gaps[0, 0]) == pytest.approx(8 / 9, abs=0.1)
    assert 33 <= hits <= 40


def test_rough_images_have_more_variation_than_smooth_ones():
    grid = torch.linspace(0, math.pi, 12, dtype=torch.float64).sin()
    smooth, rough = grid[:, None] * grid, points(12, 12, seed=4)
    kernel = torch.stack([smooth, rough])
    result = active_subspace(lambda z: torch.einsum("nij,cij->nc", z, kernel), points(30, 12, 12))
    variations = result.total_variations[:, 0]
    assert result.images.shape == (2, 10, 12, 12)
    expected = sum(smooth.diff(dim=axis).abs().sum() for axis in (0, 1)) / smooth.sum()
    assert_close(variations[0], expected)
    assert 2.2 < float(variations[1]) < 3.2
    assert active_subspace(dense(3, 5, 1), points(9, 3)).total_variations is None


def test_many_outputs_are_measured_by_the_largest():
    f, x = dense(3, 8, 12), points(40, 3)
    result = active_subspace(f, x)
    assert result.outputs == (-1,)
    at = sampled(result, x)
    gradients = jacobians(f, at)[torch.arange(len(at)), f(at).argmax(1)]
    values = torch.linalg.eigvalsh(gradients.T @ gradients / len(at)).flip(0)
    assert_close(result.eigenvalues[0], values)
    assert active_subspace(f, x, outputs=[11, 0]).outputs == (11, 0)
    only = active_subspace(f, x, outputs=[11, 0]).eigenvalues[1]
    assert_close(only, active_subspace(lambda z: f(z)[:, :1], x).eigenvalues[0])


def test_constant_outputs_have_no_direction():
    result = active_subspace(lambda z: 0 * z[:, :1], points(9, 3))
    assert result.status.startswith("not applicable: no output changes with the input")


def test_fewer_points_than_directions_leave_zero_directions():
    result = active_subspace(dense(9, 20, 1), points(3, 9))
    assert result.held_out.sum() == 1
    assert (result.eigenvalues[0] > 0).tolist() == [True, True] + [False] * 7
    assert not result.directions[0, 2:].any()
    assert next(iter(result.rows()))["explained"] is None


def test_errors_say_what_does_not_fit(unchecked):
    f, x = dense(30, 8, 2), points(9, 30)
    with pytest.raises(ValueError, match=r"some of 0 to 1, or -1 alone for the largest, found \[2"):
        active_subspace(f, x, outputs=[2])
    with pytest.raises(ValueError, match="method must be one of 'auto', 'exact', 'randomised'"):
        active_subspace(f, x, method="svd")
    with pytest.raises(BudgetError, match=r"must fit into room, 9 bytes, but 6 points with 2 outp"):
        active_subspace(f, x, method="exact", room=9)
    with pytest.raises(ValueError, match="x must be finite, found NaN"):
        active_subspace(f, x / 0)
