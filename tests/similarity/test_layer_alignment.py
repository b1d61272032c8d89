import itertools
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.similarity import kernel_alignment, layer_alignment, linear_alignment
from oracles.layers import hidden_layers, permuted_copy


def test_linear_is_the_alignment_of_the_features_of_each_pair():
    f, g, x = dense(3, 8, 5, 2), dense(3, 6, 2, seed=1), points(15, 3)
    result = layer_alignment(f, x, other=g)
    assert (result.layers, result.other_layers) == (("1", "3", "output"), ("1", "output"))
    for i, left in enumerate(hidden_layers(f, x)):
        for j, right in enumerate(hidden_layers(g, x)):
            expected = linear_alignment(left, right)
            assert float(result.values[i, j]) == pytest.approx(expected.debiased, rel=1e-10)
            assert float(result.biased[i, j]) == pytest.approx(expected.biased, rel=1e-10)
    assert result.summary().value == float(result.values[1, 0])


def rbf(features, bandwidth):
    distances = torch.cdist(features, features)
    upper = distances[torch.triu(torch.ones_like(distances), 1) > 0]
    return (-(distances / (bandwidth * upper.median())).square() / 2).exp()


def test_rbf_is_the_alignment_of_kernels_with_the_median_distance():
    f, g, x = dense(3, 8, 2), dense(3, 6, 2, seed=1), points(15, 3)
    result = layer_alignment(f, x, other=g, kernel="rbf", bandwidth=0.5)
    sides = [[rbf(features, 0.5) for features in hidden_layers(net, x)] for net in (f, g)]
    for i, left in enumerate(sides[0]):
        for j, right in enumerate(sides[1]):
            biased, debiased = kernel_alignment(left, right)
            assert float(result.biased[i, j]) == pytest.approx(biased, rel=1e-10)
            assert float(result.values[i, j]) == pytest.approx(debiased, rel=1e-10)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_blocks_of_pairs_give_the_value_of_all_examples(kernel):
    f, g, x = dense(3, 8, 2), dense(3, 6, 2, seed=1), points(37, 3) + 100
    whole = layer_alignment(f, x, other=g, kernel=kernel)
    parts = layer_alignment(f, x, other=g, kernel=kernel, memory=9_000)
    assert_close(parts.values, whole.values, rtol=1e-9, atol=0)
    assert_close(parts.biased, whole.biased, rtol=1e-9, atol=0)
    assert_close(parts.baseline, whole.baseline, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("n", "p", "biased"), [(500, 500, 0.501), (1000, 250, 0.201),
                                                (200, 800, 0.801)])  # fmt: skip
def test_independent_features_look_alike_only_to_the_biased_form(n, p, biased):
    y = points(n, p, seed=4)
    result = layer_alignment(lambda z: z, points(n, p, seed=3), other=lambda z: z, other_x=y)
    assert float(result.biased) == pytest.approx(biased, abs=0.006)
    assert float(result.baseline) == pytest.approx(biased, abs=0.006)
    assert float(result.values) == pytest.approx(0, abs=0.02)


def test_baseline_is_the_mean_over_all_permutations():
    x, y = points(5, 3), points(5, 2, seed=2)
    orders = [list(order) for order in itertools.permutations(range(5))]
    every = [linear_alignment(x, y[order]) for order in orders]
    result = layer_alignment(lambda z: z, x, other=lambda z: z, other_x=y)
    assert float(result.baseline) == pytest.approx(sum(e.biased for e in every) / 120, rel=1e-12)
    assert sum(e.debiased for e in every) / 120 == pytest.approx(0, abs=1e-12)


def test_permuted_units_and_rotated_features_change_nothing():
    f, g, x = dense(3, 8, 2), dense(3, 6, 2, seed=1), points(20, 3)
    for kernel in ("linear", "rbf"):
        plain = layer_alignment(f, x, other=g, kernel=kernel)
        moved = layer_alignment(f, x, other=permuted_copy(g), kernel=kernel)
        assert_close(moved.values, plain.values)
    turn = torch.linalg.qr(points(3, 3, seed=5)).Q
    turned = layer_alignment(lambda z: z, x, other=lambda z: -3 * z @ turn + 2, kernel="rbf")
    assert turned.summary().value == pytest.approx(1)


def test_a_network_and_itself_are_aligned_in_every_layer():
    f, x = dense(3, 8, 5, 2), points(20, 3)
    result = layer_alignment(f, x, other=f)
    assert result.values.diagonal().tolist() == pytest.approx([1, 1, 1])
    assert_close(result.values, result.values.T)


def test_layers_are_chosen_by_name_and_in_place_ones_are_seen_before():
    f = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)).double().eval()
    x = points(9, 3)
    result = layer_alignment(f, x, other=lambda z: f[0](z), layers=["0", "1"])
    assert float(result.values[0, 0]) == pytest.approx(1)
    assert float(result.values[1, 0].detach()) < 1 - 1e-6
    with pytest.raises(UnsupportedModelError, match="found 'relu': choose among 0, 1, 2, output"):
        layer_alignment(f, x, other=f, layers=["relu"])
    with pytest.raises(TypeError, match="layers must be a list of names, found 'output'"):
        layer_alignment(f, x, other=f, layers="output")


def test_networks_may_have_other_outputs_and_inputs():
    f, g, x = dense(3, 8, 2), dense(4, 6, 5, seed=1), points(20, 3)
    both = torch.cat([x, x[:, :1]], 1)
    assert layer_alignment(f, x, other=g, other_x=both).summary().value < 1


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_constant_features_are_undefined_and_said(kernel):
    f, x = dense(3, 4, 1), points(9, 3)
    for constant in (0.1, 1e8 + 0.1):
        flat = layer_alignment(f, x, other=lambda z, c=constant: 0 * z + c, kernel=kernel)
        assert "equal for all examples, so that the alignment is 0 / 0" in flat.status
    dead = dense(3, 4, 4, 2)
    torch.nn.init.constant_(dead[2].bias, -100)  # no unit of the second layer is ever active
    result = layer_alignment(f, x, other=dead, kernel=kernel)
    assert result.values.isfinite().tolist() == [[True, False, False]] * 2
    assert result.headline == (1, 0)
    assert math.isfinite(result.summary().value)


def test_few_examples_and_settings_are_refused():
    f = dense(3, 8, 1)
    assert "at least 4 examples, found 3" in layer_alignment(f, points(3, 3), other=f).status
    with pytest.raises(ValueError, match="bandwidth must be above 0, found 0"):
        layer_alignment(f, points(5, 3), other=f, bandwidth=0.0)
