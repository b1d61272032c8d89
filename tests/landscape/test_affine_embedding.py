import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError, UnsupportedModelError
from inscape.landscape import (
    affine_embedding,
    dead_network,
    deepened,
    reduced_rank_regression,
    softmax_regression,
)


@pytest.mark.parametrize("widths", [(4, 6, 3), (4, 6, 5, 3), (4, 3, 3, 3, 3)])
def test_any_affine_map_is_exact_on_the_data(widths):
    x, weight, bias = points(20, 4), points(3, 4, seed=2), points(3, seed=3)
    network, result = affine_embedding(dense(*widths), x, weight, bias, margin=0.5)
    assert_close(network(x), x @ weight.T + bias)
    assert result.deviation < 1e-13
    assert result.rank == 3
    assert float(result.least.min()) >= 0.5 - 1e-12  # at least the margin, as G1 corrects


def test_rank_up_to_the_smallest_width_fits_and_more_does_not():
    x = points(20, 4)
    low = points(3, 2, seed=2) @ points(2, 4, seed=3)
    network, result = affine_embedding(dense(4, 5, 2, 3), x, low, points(3))
    assert_close(network(x), x @ low.T + points(3))
    assert result.rank == 2
    with pytest.raises(ValueError, match="a rank up to the smallest hidden width, 2, found 3: pas"):
        affine_embedding(dense(4, 5, 2, 3), x, points(3, 4), points(3))


def test_constant_map_has_rank_zero():
    network, result = affine_embedding(
        dense(4, 5, 3), points(9, 4), torch.zeros(3, 4).double(), points(3)
    )
    assert result.rank == 0
    assert_close(network(points(9, 4)), points(3).expand(9, 3))


def test_dead_network_is_constant_and_keeps_the_original():
    model, x = dense(3, 5, 4, 2), points(12, 3)
    before = model[0].bias.clone()
    network = dead_network(model, x, torch.tensor([1.0, 2.0]).double())
    assert_close(network(x), torch.tensor([[1.0, 2.0]]).double().expand(12, 2))
    assert bool((network[0](x) < 0).all())
    assert torch.equal(before, model[0].bias)


def test_deeper_network_has_the_same_function():
    model, x = dense(3, 5, 2), points(12, 3)
    assert torch.equal(deepened(model, 3)(x), model(x))
    with pytest.raises(UnsupportedModelError, match="after a ReLU, found others: build"):
        deepened(nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1)))


def test_reduced_rank_regression_beats_all_other_choices():
    x, y = points(40, 5), points(40, 4, seed=2)

    def error(weight, bias):
        return float((x @ weight.T + bias - y).square().mean())

    best = error(*reduced_rank_regression(x, y, rank=2))
    for choice in ([0, 2], [1, 2], [1, 3]):
        assert error(*reduced_rank_regression(x, y, rank=2, choice=choice)) > best
    full = error(*reduced_rank_regression(x, y, rank=4))
    design = torch.cat([x, torch.ones(40, 1).double()], 1)
    plain = torch.linalg.lstsq(design, y).solution
    assert full == pytest.approx(float((design @ plain - y).square().mean()))
    weight, bias = reduced_rank_regression(x, y, rank=2)
    assert int(torch.linalg.matrix_rank(weight)) == 2
    for seed in range(20):  # no map of that rank nearby is better
        left, _, right = torch.linalg.svd(weight, full_matrices=False)
        moved = (left[:, :2] + 0.02 * points(4, 2, seed=seed)) @ torch.diag(
            torch.linalg.svdvals(weight)[:2]
        ) @ (right[:2] + 0.02 * points(2, 5, seed=seed + 100))  # fmt: skip
        assert error(moved, bias) > best


def test_softmax_regression_reaches_its_gradient():
    x, y = points(50, 3), (points(50, 1, seed=7)[:, 0] > 0).long()
    weight, bias = softmax_regression(x, y)
    weight.requires_grad_()
    bias.requires_grad_()
    loss = nn.functional.cross_entropy(x @ weight.T + bias, y)
    gradients = torch.autograd.grad(loss, [weight, bias])
    assert float(torch.cat([g.flatten() for g in gradients]).norm()) <= 1e-9


def test_separable_classes_have_no_minimum_without_smoothing():
    x = points(12, 2)
    y = (x[:, 0] > 0).long()
    with pytest.raises(BudgetError, match="separable classes have no minimum; use label smoothing"):
        softmax_regression(x, y, gradient=1e-200)
    smooth = 0.8 * nn.functional.one_hot(y).double() + 0.1
    weight, _ = softmax_regression(x, smooth)
    assert bool(weight.isfinite().all())


def test_separable_classes_have_a_minimum_with_weight_decay(unchecked):
    x = points(12, 2)
    y = (x[:, 0] > 0).long()
    both = [part.requires_grad_() for part in softmax_regression(x, y, weight_decay=0.01)]
    loss = nn.functional.cross_entropy(x @ both[0].T + both[1], y)
    loss = loss + 0.005 * sum(part.square().sum() for part in both)
    gradients = torch.autograd.grad(loss, both)
    assert float(torch.cat([g.flatten() for g in gradients]).norm()) <= 1e-9
    with pytest.raises(ValueError, match=r"weight_decay must be at least 0, found -1"):
        softmax_regression(x, y, weight_decay=-1.0)


def test_bad_input_is_named(unchecked):
    x = points(5, 4)
    with pytest.raises(ValueError, match="margin must be above 0, found 0"):
        affine_embedding(dense(4, 5, 3), x, points(3, 4), points(3), margin=0)
    with pytest.raises(ValueError, match=r"shapes \(3, 4\) and \(3,\), found \(2, 4\) and \(2,\)"):
        affine_embedding(dense(4, 5, 3), x, points(2, 4), points(2))
    with pytest.raises(ValueError, match=r"x must have 4 numbers per point, found 3: reshape it"):
        affine_embedding(dense(4, 5, 3), points(5, 3), points(3, 4), points(3))
    with pytest.raises(UnsupportedModelError, match=r"with biases and ReLUs between .* found Tanh"):
        affine_embedding(dense(4, 5, 3, act=nn.Tanh), x, points(3, 4), points(3))
    with pytest.raises(UnsupportedModelError, match="needs a hidden layer, found 1 linear layers"):
        affine_embedding(nn.Sequential(nn.Linear(4, 3)), x, points(3, 4), points(3))
