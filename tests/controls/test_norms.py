"""Norms are held exactly, gradients included, and zero weights are refused."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import points
from inscape.controls import lipschitz, release, row_scale, spectral_scale
from inscape.controls.norms import RowScale, SpectralScale
from inscape.models import mlp
from inscape.training import fit


@pytest.mark.parametrize("layer", [nn.Linear(3, 7), nn.Linear(7, 3), nn.Conv1d(2, 5, 3)])
def test_largest_singular_value_is_held(layer):
    spectral_scale(layer.double(), 1.7)
    found = torch.linalg.matrix_norm(layer.weight.detach().flatten(1), 2)
    assert_close(found, torch.tensor(1.7, dtype=torch.float64))


def test_rows_have_one_length():
    layer = row_scale(nn.Conv2d(2, 5, 3, dtype=torch.float64), 0.6)
    assert_close(layer.weight.flatten(1).norm(dim=1), torch.full((5,), 0.6, dtype=torch.float64))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("shape", [(4, 3), (2, 2, 2), (1, 3)], ids=str)
@pytest.mark.parametrize("held", [SpectralScale(1.3), RowScale(1.3)])
def test_gradients_and_their_gradients(held, shape):
    w = points(*shape).requires_grad_()
    assert torch.autograd.gradcheck(held, w, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(held, w, check_fwd_over_rev=True)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("shape", [(4, 3), (3, 4)], ids=str)
def test_hessians_and_third_derivatives_are_those_of_a_decomposition(shape):
    w = points(*shape)
    held = SpectralScale(2.0)

    def ours(w):
        return (held(w) ** 3).sum()

    def theirs(w):
        return ((2 * w / torch.linalg.svdvals(w)[0]) ** 3).sum()

    expected = torch.autograd.functional.hessian(theirs, w)
    assert_close(torch.autograd.functional.hessian(ours, w), expected)
    assert_close(torch.func.hessian(ours)(w), expected)

    def steepness(f):
        return lambda w: torch.func.grad(f)(w).square().sum()

    third = [torch.func.grad(steepness(steepness(f)))(w) for f in (ours, theirs)]
    assert_close(*third)
    many = points(5, *shape)
    slope = torch.func.grad(ours)
    assert_close(torch.vmap(slope)(many), torch.stack([slope(one) for one in many]))


def test_norms_survive_training_and_bound_the_function():
    x = points(12, 2)
    model = spectral_scale(mlp(2, 6, 6, 1, dtype=torch.float64), (2.0, 1.0, 0.5))
    fit(model, x, 3 * x.sum(1, keepdim=True), optimizer="adam", lr=0.01, epochs=20)
    assert lipschitz(model, x).upper <= 1.0 + 1e-9
    after = model(x)
    assert_close(release(model)(x), after)


def test_settings_are_shown():
    assert "SpectralScale(target=2)" in repr(spectral_scale(nn.Linear(3, 2), 2.0))
    assert "RowScale(target=2)" in repr(row_scale(nn.Linear(3, 2), 2.0))


@pytest.mark.parametrize("control", [spectral_scale, row_scale])
def test_bad_input(control):
    for wrong in (-1.0, float("inf")):
        with pytest.raises(ValueError, match=r"norm must be a finite number above 0, found .*: pa"):
            control(nn.Linear(3, 2), wrong)
    layer = nn.Linear(3, 2)
    nn.init.constant_(layer.weight, float("nan"))
    with pytest.raises(ValueError, match="weights of the layer must be finite, found NaN or Inf"):
        control(layer, 1.0)
    nn.init.zeros_(layer.weight)
    with pytest.raises(ValueError, match=r"weights of the layer must not be zero, found .*: draw"):
        control(layer, 1.0)
