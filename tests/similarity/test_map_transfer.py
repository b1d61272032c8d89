import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.similarity import map_transfer
from oracles.local_maps import coefficients


def test_least_squares_output_by_output():
    f, g = dense(2, 12, 3), dense(2, 12, 3, seed=1)
    train, test = points(60, 2), points(20, 2, seed=3)
    own, target = coefficients(f, train), coefficients(g, train)
    asked = coefficients(f, test)
    inputs = torch.cat([test, torch.ones(20, 1, dtype=torch.float64)], 1)
    columns = []
    for j in range(3):
        transfer = torch.linalg.pinv(own[:, j]) @ target[:, j]
        columns.append(((asked[:, j] @ transfer) * inputs).sum(1))
    result = map_transfer(f, test, other=g, fit_on=train)
    assert result.transferred.tolist() == torch.stack(columns, 1).argmax(1).tolist()
    assert result.own.tolist() == f(test).argmax(1).tolist()
    assert result.target.tolist() == g(test).argmax(1).tolist()
    assert result.determined
    assert result.fitted_on == 60


def test_of_a_network_to_itself_is_exact():
    f, x = dense(2, 12, 3), points(80, 2)
    result = map_transfer(f, x, other=f)
    assert result.summary().value == 1
    assert float(result.residuals.max()) < 1e-12


def test_from_a_linear_network_every_map_is_the_mean_map():
    linear, g = nn.Linear(2, 3).double().eval(), dense(2, 12, 3)
    train, test = points(60, 2), points(20, 2, seed=3)
    mean = coefficients(g, train).mean(0)
    inputs = torch.cat([test, torch.ones(20, 1, dtype=torch.float64)], 1)
    result = map_transfer(linear, test, other=g, fit_on=train)
    assert result.transferred.tolist() == (inputs @ mean.T).argmax(1).tolist()
    assert not result.determined


def test_ridge_is_the_closed_form():
    f, g, train = dense(2, 12, 1), dense(2, 12, 1, seed=1), points(30, 2)
    own, target = coefficients(f, train)[:, 0], coefficients(g, train)[:, 0]
    weight = 30 * 0.1 * torch.eye(3, dtype=torch.float64)
    transfer = torch.linalg.solve(own.T @ own + weight, own.T @ target)
    result = map_transfer(f, train, other=g, fit_on=train, ridge=0.1)
    expected = (own @ transfer - target).norm() / target.norm()
    assert_close(result.residuals[0], expected)


def test_labels_are_what_accuracy_is_measured_against():
    f, g, x = dense(2, 12, 3), dense(2, 12, 3, seed=1), points(40, 2)
    y = g(x).argmax(1)
    y[:10] = (y[:10] + 1) % 3
    with_labels, without = map_transfer(f, x, y, other=g), map_transfer(f, x, other=g)
    assert torch.equal(with_labels.transferred, without.transferred)
    assert with_labels.summary().value == float((with_labels.transferred == y).double().mean())
    assert "the second network: 0.75" in with_labels.summary().basis


def test_three_examples_have_no_halves():
    f = dense(2, 4, 2)
    assert map_transfer(f, points(3, 2), other=f).status.endswith("found 3: pass fit_on")
    with pytest.raises(ValueError, match="ridge must be at least"):
        map_transfer(f, points(9, 2), other=f, ridge=-1.0)
    with pytest.raises(ValueError, match="ridge must be finite, found inf"):
        map_transfer(f, points(9, 2), other=f, ridge=math.inf)
