"""What fit refuses before its first step; each text says what to do."""

import math

import pytest
import torch
from torch import nn

from inscape.errors import UnsupportedModelError
from inscape.models import mlp
from inscape.training import fit, l2_norm

X = torch.linspace(-1, 1, 6)[:, None]


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"epochs": 0}, r"epochs must be at least 1, found 0"),
        ({"batch": 0}, r"batch must be at least 1, found 0"),
        ({"batch": -3}, r"batch must be at least 1, found -3"),
        ({"record": 0}, r"record must be at least 1, found 0"),
        ({"stop_on": "test"}, r"stop_on must be one of 'running', 'evaluated', found 'test'"),
        ({"stop_loss": math.nan}, r"stop_loss must be a finite number, found nan: use None to tr"),
        ({"loss": "hinge"}, r"loss must be one of 'mse', 'cross_entropy', 'bce_logits', found"),
        (
            {"penalties": [(math.inf, l2_norm)]},
            r"coefficient of a penalty must be finite, found inf for l2_norm: choose another",
        ),
    ],
)
def test_settings_that_cannot_be(settings, text):
    with pytest.raises(ValueError, match=text):
        fit(mlp(1, 3, 1), X, X, **settings)


@pytest.mark.parametrize("name", ["epochs", "batch", "record"])
def test_counts_are_whole(name, unchecked):
    with pytest.raises(ValueError, match=rf"{name} must be a whole number, found 2\.5: use int"):
        fit(mlp(1, 3, 1), X, X, **{name: 2.5})


@pytest.mark.parametrize(
    ("x", "y", "error", "text"),
    [
        (X[:0], X[:0], ValueError, r"x must hold at least one point"),
        (X[:, 0], X, ValueError, r"x must be a batch of shape \(n, \.\.\.\), found shape \(6,\)"),
        (X.long(), X, TypeError, r"x must hold floating-point numbers, found torch\.int64"),
        (X / 0, X, ValueError, r"x must be finite, found NaN or Inf in 6 of 6 points"),
        (X, X / 0, ValueError, r"y must be finite, found NaN or Inf"),
        (X, X[:5], ValueError, r"y must hold one label for each of the 6 points, found shape \(5"),
        (X, X[:, 0], ValueError, r"found predictions \(n, 1\) and targets \(n,\): reshape y to"),
        (X, X.double(), TypeError, r"torch\.float32 and torch\.float64: use y\.to\(torch\.float3"),
        (X.double(), X.double(), TypeError, r"model and data must have one dtype, found '0\.weig"),
        (
            X,
            X.to("meta").long(),
            ValueError,
            r"y must hold values, found a tensor on the meta device, which has none: load the data",
        ),
        (X.expand(6, 2), X, UnsupportedModelError, r"must accept a batch of shape \(2, 2\), but"),
    ],
)
def test_data_that_do_not_fit(x, y, error, text):
    with pytest.raises(error, match=text):
        fit(mlp(1, 3, 1), x, y)


def test_class_numbers_are_looked_at_as_a_whole():
    y = torch.tensor([0, 1, 0, 1, 0, 5])
    with pytest.raises(ValueError, match=r"between 0 and 1, found 0 to 5"):
        fit(mlp(1, 3, 2), X, y, loss="cross_entropy")


def test_models_that_do_not_fit():
    with pytest.raises(UnsupportedModelError, match=r"must return one tensor, found tuple"):
        fit(Pair(), X, X)
    broken = mlp(1, 3, 1)
    with torch.no_grad():
        broken[0].weight.fill_(math.nan)
    with pytest.raises(
        ValueError, match=r"weights must be finite, found NaN or Inf in '0\.weight'"
    ):
        fit(broken, X, X)


@pytest.mark.parametrize(
    ("loss", "found"), [(lambda p, t: (p - t) ** 2, r"shape \(2, 1\)"), (lambda p, t: 0.0, "float")]
)
def test_a_loss_must_be_a_scalar(loss, found):
    with pytest.raises(
        TypeError, match=rf"a loss must return a scalar tensor, found {found}: take"
    ):
        fit(mlp(1, 3, 1), X, X, loss=loss)


@pytest.mark.parametrize("training", [True, False])
def test_a_refused_model_is_left_as_it_was(training):
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(1), nn.Linear(1, 1)).train(training)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    rng = torch.get_rng_state()
    with pytest.raises(ValueError, match="reshape y"):
        fit(model, X, X[:, 0])
    assert model.training is training
    assert torch.equal(rng, torch.get_rng_state())
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
