"""Penalties: closed forms, and that all of them stand beside the other controls."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape import controls, smoothness
from inscape.controls import jacobian_penalty, weight_decay
from inscape.training import fit


def test_weight_decay_is_half_the_square_of_weights_alone():
    model = dense(3, 4, 1)
    expected = (model[0].weight.square().sum() + model[2].weight.square().sum()) / 2
    assert_close(weight_decay(model, points(2, 3)), expected)
    with pytest.raises(ValueError, match="needs trainable weights of two dimensions or more"):
        weight_decay(nn.Tanh(), points(2, 3))


def test_slopes_of_a_linear_map():
    line = dense(2, 3)
    size = torch.linalg.matrix_norm(line[0].weight.detach())
    assert_close(jacobian_penalty(line, points(5, 2)), size**2)
    assert_close(jacobian_penalty(line, points(5, 2), free=float(size) - 0.5).item(), 0.25)
    assert jacobian_penalty(line, points(5, 2), free=float(size) + 0.1).item() == 0.0


def test_the_jacobian_is_pulled_back_in_training():
    x = points(20, 2)
    model = dense(2, 8, 1, act=nn.Tanh)
    held = partial(jacobian_penalty, free=0.5)
    fit(model, x, 2 * x.sum(1, keepdim=True), lr=0.05, epochs=60, penalties=[(10.0, held)])
    slopes = torch.func.vmap(torch.func.jacrev(lambda one: model(one[None])[0]))(x)
    assert slopes.flatten(1).norm(dim=1).mean() < 0.8


@pytest.mark.parametrize("free", [-1, float("inf"), float("nan")])
def test_an_allowance_that_is_none_is_refused(free):
    with pytest.raises(ValueError, match=r"free must be a finite number of at least 0, found .*:"):
        jacobian_penalty(dense(2, 1), points(2, 2), free=free)


def test_penalties_of_smoothness_stand_here_too():
    for name in smoothness.__all__:
        if name.endswith("_penalty"):
            assert getattr(controls, name) is getattr(smoothness, name)
