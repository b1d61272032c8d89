import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape.similarity import mutual_neighbours
from oracles.layers import hidden_layers, permuted_copy


def neighbours(features, k, count):
    distances = [float((row - features[k]).norm()) for row in features]
    others = sorted((d, i) for i, d in enumerate(distances) if i != k)
    return {i for _, i in others[:count]}


def test_shared_neighbours_are_counted_example_by_example():
    f, g, x = dense(3, 6, 2), dense(3, 5, 2, seed=1), points(20, 3)
    result = mutual_neighbours(f, x, other=g, count=4, memory=2000)
    for i, left in enumerate(hidden_layers(f, x)):
        for j, right in enumerate(hidden_layers(g, x)):
            fractions = [len(neighbours(left, k, 4) & neighbours(right, k, 4)) / 4
                         for k in range(20)]  # fmt: skip
            assert float(result.values[i, j]) == pytest.approx(sum(fractions) / 20)
            if (i, j) == (0, 0):
                assert result.per_sample().tolist() == fractions
    assert result.summary().value == float(result.values[0, 0])


def test_rotation_scale_shift_and_the_order_of_units_change_nothing():
    x, turn = points(20, 3), torch.linalg.qr(points(3, 3, seed=5)).Q
    turned = mutual_neighbours(lambda z: z, x, other=lambda z: -3 * z @ turn + 2, count=3)
    assert turned.summary().value == 1
    lengths = 1 + points(20, 1).abs()
    rays = mutual_neighbours(
        lambda z: z, x, other=lambda z: z, other_x=x * lengths, metric="cosine"
    )
    assert rays.summary().value == 1
    f, g = dense(3, 6, 2), dense(3, 5, 2, seed=1)
    moved = mutual_neighbours(f, x, other=permuted_copy(g))
    assert_close(moved.values, mutual_neighbours(f, x, other=g).values)


def test_baseline_is_what_independent_features_share():
    x, y = points(600, 4), points(600, 4, seed=2)
    result = mutual_neighbours(lambda z: z, x, other=lambda z: z, other_x=y)
    assert float(result.baseline) == 10 / 599
    assert result.summary().value == pytest.approx(10 / 599, abs=0.006)


def test_few_examples_do_not_apply():
    f = dense(3, 4, 1)
    status = mutual_neighbours(f, points(10, 3), other=f).status
    assert "10 neighbours need more than 10 examples, found 10" in status
