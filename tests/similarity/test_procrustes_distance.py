import math

import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape.similarity import procrustes_distance
from oracles.layers import hidden_layers, permuted_copy


def normalised(x):
    moved = x - x.mean(0)
    return moved / moved.norm()


def of(x, y):
    return procrustes_distance(lambda z: z, x, other=lambda z: z, other_x=y).summary().value


def test_is_the_formula_with_the_nuclear_norm_in_every_pair_of_layers():
    f, g, x = dense(3, 8, 5, 2), dense(3, 6, 2, seed=1), points(15, 3)
    result = procrustes_distance(f, x, other=g)
    for i, left in enumerate(hidden_layers(f, x)):
        for j, right in enumerate(hidden_layers(g, x)):
            nuclear = torch.linalg.matrix_norm(normalised(left).T @ normalised(right), "nuc")
            expected = math.sqrt(2 - 2 * float(nuclear))
            assert float(result.values[i, j]) == pytest.approx(expected, rel=1e-10)
    assert_close(result.squares, result.values**2)


def test_no_rotation_in_the_plane_comes_nearer():
    x, y = (normalised(points(9, 2, seed=seed)) for seed in (1, 2))
    angles = torch.linspace(0, 2 * math.pi, 20_001, dtype=torch.float64)
    turns = torch.stack([angles.cos(), angles.sin(), -angles.sin(), angles.cos()], 1).view(-1, 2, 2)
    turns = torch.cat([turns, turns * torch.tensor([1.0, -1.0])])
    nearest = float((x @ turns - y).flatten(1).norm(dim=1).min())
    assert of(x, y) == pytest.approx(nearest, abs=1e-6)
    assert of(x, y) <= nearest


def test_is_a_metric():
    a, b, c = (points(12, p, seed=p) for p in (2, 5, 30))  # fewer and more features than examples
    assert of(a, b) == pytest.approx(of(b, a), rel=1e-12)
    assert of(a, c) <= of(a, b) + of(b, c)
    assert of(b, c) <= of(b, a) + of(a, c)
    squares = [of(*pair) ** 2 for pair in ((a, b), (b, c), (a, c))]
    assert max(squares) <= 2


def test_is_zero_under_rotation_shift_and_scale_to_the_last_digit():
    for p in (4, 30):
        x, turn = points(12, p), torch.linalg.qr(points(p, p, seed=5)).Q
        assert of(x, -3 * x @ turn + 2) < 1e-13
    wide = torch.cat([points(12, 4), torch.zeros(12, 3)], 1)
    assert of(points(12, 4), wide) < 1e-13


def test_square_form_is_no_metric():
    ends = torch.tensor([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]], dtype=torch.float64)
    a, c = (end[:, None] / end.norm() for end in ends)  # at a right angle, b in the middle
    squares = [of(*pair) ** 2 for pair in ((a, a + c), (a + c, c), (a, c))]
    assert squares == pytest.approx([2 - math.sqrt(2), 2 - math.sqrt(2), 2])
    assert squares[2] > squares[0] + squares[1]


def test_permuted_units_change_nothing_and_permuted_examples_are_far():
    f, g, x = dense(3, 8, 2), dense(3, 6, 2, seed=1), points(40, 3)
    plain, moved = (procrustes_distance(f, x, other=net) for net in (g, permuted_copy(g)))
    assert_close(moved.values, plain.values)
    own = procrustes_distance(f, x, other=f)
    assert own.summary().value < 1e-13
    assert float(own.baseline[0, 0]) > 0.5
    again = procrustes_distance(f, x, other=f, seed=1)
    assert float(again.baseline[0, 0]) != float(own.baseline[0, 0])


def test_constant_features_have_no_scale():
    status = procrustes_distance(dense(3, 4, 1), points(9, 3), other=lambda z: 0 * z + 1).status
    assert "equal for all examples, so that they have no scale" in status
