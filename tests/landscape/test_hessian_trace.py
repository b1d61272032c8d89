import pytest
import torch
from torch import nn

from cases import dense, points
from inscape.landscape import hessian_density, hessian_trace
from oracles.curvature import gauss_newton, hessian

ORACLES = {"hessian": hessian, "gauss_newton": gauss_newton}


def case(seed=0):
    model, x = dense(3, 8, 6, 2, act=nn.Tanh, seed=seed), points(12, 3)
    return model, x, points(12, 2, seed=5)


@pytest.mark.parametrize("matrix", ORACLES)
def test_trace_is_exact_for_few_parameters(matrix):
    model, x, y = case()
    expected = float(ORACLES[matrix](model, x, y, "mse").trace())
    result = hessian_trace(model, x, y, matrix=matrix, products=200)
    assert result.summary().kind == "exact"
    assert result.summary().value == pytest.approx(expected)


def test_interval_covers_the_trace_about_as_often_as_it_says():
    model, x, y = case()
    expected = float(hessian(model, x, y, "mse").trace())
    covered = 0
    for seed in range(24):
        summary = hessian_trace(model, x, y, products=12, seed=seed).summary()
        covered += summary.low <= expected <= summary.high
    assert covered >= 19  # 95% of 24 are 23; fewer than 19 twice in 1000 such tests


def test_sketch_catches_all_of_a_matrix_of_low_rank():
    model, x, y = case()
    result = hessian_trace(model, x[:2], y[:2], matrix="gauss_newton", products=30)  # rank four
    expected = float(gauss_newton(model, x[:2], y[:2], "mse").trace())
    assert result.exact == pytest.approx(expected)
    assert float(result.samples.abs().max()) < 1e-12


def test_a_rank_of_two_on_two_coordinates_is_caught_with_every_seed():
    # data of zeros: two biases alone have curvature, and random signs are alike on two coordinates
    model, x, y = nn.Linear(4, 2).double().eval(), torch.zeros(6, 4).double(), points(6, 2)
    for seed in range(12):
        summary = hessian_trace(model, x, y, matrix="gauss_newton", products=9, seed=seed).summary()
        assert summary.value == pytest.approx(2.0), seed


def test_weight_decay_adds_its_multiple_of_the_number_of_parameters():
    model, x, y = case()
    bare, decayed = (hessian_trace(model, x, y, products=200, weight_decay=w) for w in (0, 0.5))
    assert decayed.exact == pytest.approx(bare.exact + 0.5 * bare.parameters)


@pytest.mark.parametrize("matrix", ORACLES)
def test_moments_of_the_density_are_those_of_the_matrix(matrix):
    model, x, y = case()
    dense_matrix = ORACLES[matrix](model, x, y, "mse")
    result = hessian_density(model, x, y, matrix=matrix, probes=2, steps=4, seed=3)
    draw = torch.Generator().manual_seed(3)
    for probe in range(2):
        start = torch.randn(len(dense_matrix), generator=draw, dtype=torch.float64)
        start = start / start.norm()
        for power in range(1, 7):  # quadrature with four nodes is exact up to the seventh
            expected = start @ torch.linalg.matrix_power(dense_matrix, power) @ start
            moment = (result.weights[probe] * result.nodes[probe] ** power).sum()
            torch.testing.assert_close(moment, expected)


def test_density_counts_eigenvalues_within_its_interval():
    model, x, y = case()
    values = torch.linalg.eigvalsh(hessian(model, x, y, "mse"))
    limit = 0.01 * float(values.abs().max())
    expected = float((values.abs() > limit).double().mean())
    summary = hessian_density(model, x, y, probes=12, steps=20).summary()
    width = summary.high - summary.low
    assert abs(summary.value - expected) < 1.5 * width  # six standard errors
    assert summary.kind == "estimate"


def test_density_of_a_multiple_of_the_identity_is_one_node():
    class Bowl(nn.Module):
        def __init__(self):
            super().__init__()
            self.at = nn.Parameter(points(7))

        def forward(self, x):
            return x * self.at.sum()

    result = hessian_density(
        Bowl().eval(), points(3, 1), module_loss=lambda model: 1.5 * model.at.square().sum()
    )
    torch.testing.assert_close(result.nodes[:, 0], torch.full((5,), 3.0).double())
    torch.testing.assert_close(result.weights.sum(1), torch.ones(5).double())
    assert result.summary().value == 1.0
    assert result.fraction(2.9, 3.1).tolist() == pytest.approx([1.0] * 5)


def test_bad_settings_are_named(unchecked):
    model, x, y = case()
    with pytest.raises(ValueError, match="products must be at least 6, found 5"):
        hessian_trace(model, x, y, products=5)
    with pytest.raises(ValueError, match="steps must be at least 2, found 1"):
        hessian_density(model, x, y, steps=1)
    with pytest.raises(ValueError, match="matrix must be one of 'hessian', 'gauss_newton'"):
        hessian_density(model, x, y, matrix="fisher")
