"""Errata that an independent run found: each is shown on a network small enough to be exact."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from inscape.lab.published import printed
from inscape.landscape import (
    affine_embedding,
    hessian_extremes,
    local_minimum,
    softmax_regression,
    stationarity,
)
from inscape.models import mlp

#: The largest eigenvalue that remark 2.2 prints.
PRINTED = 113_598.85
LR, MOMENTUM = 0.01, 0.9


def problem(n=60):
    """Return points of three classes that no plane separates."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=rng, dtype=torch.float64)
    return x, (x[:, 0] + 2 * torch.randn(n, generator=rng).double() > 0).long() + (x[:, 1] > 1)


def lemma_1(gradient=1e-9):
    """Return data, and a network with padded units at the linear minimum, all units active."""
    x, y = problem()
    weight, bias = softmax_regression(x, y, gradient=gradient)
    net = mlp(3, 6, 6, 3, seed=0).double()
    return x, y, *affine_embedding(net, x, weight, bias)


def hessian(net, x, y):
    """Return the Hessian of the cross-entropy by differentiating twice."""
    names, parameters = zip(*net.named_parameters(), strict=True)
    sizes = [p.numel() for p in parameters]

    def loss(flat):
        parts = torch.split(flat, sizes)
        given = {k: v.reshape(p.shape) for k, v, p in zip(names, parts, parameters, strict=True)}
        return nn.functional.cross_entropy(torch.func.functional_call(net, given, (x,)), y)

    flat = torch.cat([p.detach().flatten() for p in parameters])
    return torch.autograd.functional.hessian(loss, flat), names, sizes


def test_g1_pre_activations_are_positive_but_not_at_least_c():
    _, _, net, report = lemma_1()
    largest = max(float(m.bias.detach().max()) for m in net if isinstance(m, nn.Linear))
    assert 1 - 1e-9 <= float(report.least.min()) < 0.9 * largest


def test_g5_weight_decay_moves_the_point():
    x, y, net, _ = lemma_1()
    found = stationarity(net, x, y, weight_decay=5e-4)
    assert found.without_regulariser < 1e-8
    assert found.total > 1e-3


def test_g8_biases_of_padded_units_have_no_curvature():
    x, y, net, _ = lemma_1()
    matrix, names, sizes = hessian(net, x, y)
    last_hidden = sum(sizes[: names.index([n for n in names if n.endswith("bias")][1])])
    padded = slice(last_hidden + 3, last_hidden + 6)  # three of six units carry the map
    assert bool((matrix[padded, padded] == 0).all())
    ends = torch.linalg.eigvalsh(matrix)
    assert abs(float(ends[0])) < 1e-9 * float(ends[-1])
    assert local_minimum(net, x, y).is_proved


def test_g8_the_printed_curvatures_are_the_rounding_of_float32():
    row = next(row for row in printed("goldblum", "table-1") if row["init"] == "Lemma 1")
    place = float(np.spacing(np.float32(PRINTED)))
    assert row["min_ev_init"] == 4 * place
    assert row["min_ev_final"] == pytest.approx(2 * place, abs=5e-5)  # printed with four digits


def test_g9_a_shifted_power_iteration_ends_above_the_smallest_eigenvalue():
    x, y, net, _ = lemma_1(gradient=1e-3)
    matrix, _, _ = hessian(net, x, y)
    ends = torch.linalg.eigvalsh(matrix)
    shifted = matrix - ends[-1] * torch.eye(len(matrix), dtype=torch.float64)
    v = torch.randn(len(matrix), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for _ in range(500):
        v = shifted @ (v / v.norm())
    v = v / v.norm()
    rayleigh = float(v @ matrix @ v)
    assert rayleigh > 0 > float(ends[0])  # it shows no negative curvature where there is
    assert float((matrix @ v - rayleigh * v).norm()) > abs(float(ends[0]))  # as its residual says
    lanczos = hessian_extremes(net, x, y, dense=0, products=80, double=True)
    assert lanczos.smallest == pytest.approx(float(ends[0]), abs=1e-3 * float(ends[-1]))


def test_g10_a_linear_fit_that_stops_early_has_negative_curvature():
    x, y, net, _ = lemma_1(gradient=4e-3)
    found = hessian_extremes(net, x, y)
    assert found.negative
    assert found.smallest < 0


def test_g11_the_printed_rate_is_unstable_at_the_printed_curvature():
    def growth(curvature):
        product = LR * curvature
        matrix = np.array([[1 + MOMENTUM - product, -MOMENTUM], [1.0, 0.0]])
        return float(np.abs(np.linalg.eigvals(matrix)).max())

    edge = 2 * (1 + MOMENTUM) / LR
    assert edge == pytest.approx(380)
    assert growth(0.999 * edge) < 1 < growth(1.001 * edge)
    assert pytest.approx(1136, abs=0.5) == LR * PRINTED
    assert growth(PRINTED) > 1000
    assert growth(24.01) < 1  # the curvature after default training
    assert math.isfinite(growth(0.0))
