import math
import sys

import pytest
import torch
from torch import nn

from cases import dense, points
from inscape.similarity import linear_alignment, map_alignment
from oracles.local_maps import coefficients


def test_is_the_mean_alignment_of_the_coefficients_of_each_output():
    f, g, x = dense(3, 8, 2), dense(3, 5, 5, 2, seed=1), points(15, 3)
    sides = [coefficients(net, x) for net in (f, g)]
    expected = [linear_alignment(sides[0][:, j], sides[1][:, j]) for j in range(2)]
    result = map_alignment(f, x, other=g, memory=4096)
    assert result.biased.tolist() == pytest.approx([e.biased for e in expected])
    assert result.debiased.tolist() == pytest.approx([e.debiased for e in expected])
    assert result.summary().value == pytest.approx(sum(e.debiased for e in expected) / 2)


def test_rotated_copy_is_aligned():
    f, x = dense(3, 8, 2), points(12, 3)
    turn = torch.linalg.qr(points(3, 3, seed=5)).Q
    result = map_alignment(f, x, other=lambda z: f(z @ turn.T), other_x=x @ turn)
    assert result.summary().value == pytest.approx(1)


def test_outputs_in_several_passes_give_the_same(monkeypatch):
    f, g, x = dense(3, 8, 3), dense(3, 8, 3, seed=1), points(15, 3)
    whole = map_alignment(f, x, other=g)
    monkeypatch.setattr(sys.modules["inscape.similarity.map_alignment"], "SUMS", 1)
    assert torch.equal(map_alignment(f, x, other=g).debiased, whole.debiased)


def test_linear_network_has_no_centred_alignment_where_the_formula_prints_noise():
    linear, f, x = nn.Linear(3, 1).double().eval(), dense(3, 8, 1), points(15, 3)
    first, second = coefficients(linear, x)[:, 0], coefficients(f, x)[:, 0]
    a, b = first - first.mean(0), second - second.mean(0)
    printed = float((b.T @ a).norm() ** 2 / ((a.T @ a).norm() * (b.T @ b).norm()))
    assert math.isnan(printed) or 0 < printed <= 1 + 1e-12  # of rounding alone
    status = map_alignment(linear, x, other=f).status
    assert "(it is linear there), so that the alignment of centred maps is 0 / 0" in status
    uncentred = map_alignment(linear, x, other=f, centred=False).summary().value
    plain = (second.T @ first).norm() ** 2 / ((first.T @ first).norm() * (second.T @ second).norm())
    assert uncentred == pytest.approx(float(plain))


def test_few_examples_do_not_apply():
    f = dense(3, 8, 1)
    assert "at least 4 examples, found 3" in map_alignment(f, points(3, 3), other=f).status
