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


@pytest.mark.parametrize("held", [SpectralScale(1.3), RowScale(1.3)])
def test_gradients(held):
    w = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(held, w.requires_grad_())


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
    with pytest.raises(
        ValueError, match=r"norm must be a finite number above 0, found -1.0: raise"
    ):
        control(nn.Linear(3, 2), -1.0)
    layer = nn.Linear(3, 2)
    nn.init.constant_(layer.weight, float("nan"))
    with pytest.raises(ValueError, match="weights of the layer must be finite, found NaN or Inf"):
        control(layer, 1.0)
    nn.init.zeros_(layer.weight)
    with pytest.raises(ValueError, match=r"weights of the layer must not be zero, found .*: draw"):
        control(layer, 1.0)
