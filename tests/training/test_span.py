"""Training in the span of the data against training outside."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.errors import UnsupportedModelError
from inscape.models import mlp
from inscape.training import fit, l2_norm
from inscape.training.span import (
    fit_in_span,
    in_span,
    orthonormal_basis,
    out_of_span,
    reason_not_in_span,
)

N, D = 12, 40


def data(n=N, c=2, dtype=torch.float64):
    """Points with inputs that are zero at all of them, and a point twice."""
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(n, D, generator=rng, dtype=dtype)
    x[:, 5:12] = 0
    x[1] = x[0]
    return x, torch.randn(n, c, generator=rng, dtype=dtype)


def network(seed=0, dtype=torch.float64):
    return mlp(D, 9, 7, 2, activation="tanh", seed=seed, dtype=dtype)


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.1},
        {"lr": 0.05, "momentum": 0.9, "batch": 5},
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "batch": 4, "stop_on": "evaluated"},
    ],
)
def test_it_is_the_training_outside(options):
    x, y = data()
    ours, theirs = network(), network()
    run = fit_in_span(ours, x, y, epochs=40, seed=5, **options)
    plain = fit(theirs, x, y, epochs=40, seed=5, **options)
    assert run.model is ours
    assert_close(run.losses, plain.losses)
    assert (run.steps, run.settings) == (plain.steps, plain.settings)
    for name, weight in plain.model.state_dict().items():
        assert_close(ours.state_dict()[name], weight, msg=lambda m, n=name: f"{n}: {m}")
    elsewhere = torch.randn(6, D, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    assert_close(ours(elsewhere), theirs(elsewhere))
    assert not ours.training


def test_weights_of_dead_inputs_stay_to_the_bit():
    x, y = data()
    model = network()
    before = model[0].weight.detach().clone()
    fit_in_span(model, x, y, epochs=3, lr=0.1)
    assert torch.equal(model[0].weight[:, 5:12], before[:, 5:12])
    assert not torch.equal(model[0].weight[:, :5], before[:, :5])


def test_without_training_nothing_changes():
    x, _ = data(dtype=torch.float32)
    model = network(dtype=torch.float32).train()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    span = in_span(model, x)
    assert_close(span.model(span.x), model(x))
    assert out_of_span(span) is model
    assert model.training
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())


def test_images_are_flattened_and_biases_may_be_missing():
    x, y = data()

    def build():
        return nn.Sequential(
            nn.Flatten(), nn.Identity(), *mlp(D, 6, 2, bias=False, seed=2, dtype=x.dtype)
        )

    ours, theirs = build(), build()
    images = x.reshape(N, 5, 8)
    fit_in_span(ours, images, y, epochs=10, lr=0.1)
    fit(theirs, images, y, epochs=10, lr=0.1)
    assert_close(ours[2].weight, theirs[2].weight)
    assert_close(ours(images), theirs(images))


def test_a_frozen_first_layer_stays():
    x, y = data()
    model = network()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    fit_in_span(model, x, y, epochs=3, lr=0.1)
    assert torch.equal(model[0].weight, before)
    assert not model[0].weight.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_basis_is_orthonormal_and_spans_the_points(dtype):
    x, _ = data(dtype=dtype)
    basis = orthonormal_basis(x)
    assert basis.shape == (N - 1, D)  # one point was there twice
    assert_close(basis @ basis.T, torch.eye(N - 1, dtype=torch.float64))
    assert_close(x.double() @ basis.T @ basis, x.double())
    assert not basis[:, 5:12].any()


def test_many_points_need_the_axes_themselves():
    x, _ = data(n=50)
    axes = torch.eye(D, dtype=torch.float64)
    assert torch.equal(orthonormal_basis(x), torch.cat([axes[:5], axes[12:]]))
    span = in_span(network(), x)
    assert torch.equal(span.x, torch.cat([x[:, :5], x[:, 12:]], dim=1))


def test_points_at_zero_take_one_idle_coordinate():
    x, y = torch.zeros(3, D, dtype=torch.float64), torch.ones(3, 2, dtype=torch.float64)
    ours, theirs = network(), network()
    fit_in_span(ours, x, y, epochs=5)
    fit(theirs, x, y, epochs=5)
    assert_close(ours(x + 1), theirs(x + 1))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"optimizer": "adam"}, r"the steps of 'adam' depend on the axes, found no 'sgd': use fit"),
        ({"optimizer": torch.optim.SGD}, r"the steps of 'own:SGD' depend on the axes"),
        ({"weight_decay": 0.1}, r"weight decay \(0\.1\) also moves weights outside of the span"),
        ({"penalties": [(1.0, l2_norm)]}, r"the penalty l2_norm may look outside of the span"),
        ({"record": 5}, r"the recorded trajectory would be that of the smaller network: use fit"),
    ],
)
def test_trainings_that_would_not_be_the_same(options, text):
    x, y = data()
    with pytest.raises(ValueError, match=r"must equal one outside, but " + text):
        fit_in_span(network(), x, y, **options)


def test_plain_descent_has_nothing_against_it():
    assert reason_not_in_span() is None


class Other(nn.Module):
    def forward(self, x):
        return x


linear = nn.Linear(D, D, dtype=torch.float64)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Other(), r"needs an nn\.Sequential that begins with a linear layer, found Other: use"),
        (nn.Sequential(nn.Dropout(), linear), r"a linear layer first, .* found Dropout at 0: use"),
        (nn.Sequential(nn.Flatten(2), linear), r"found Flatten at 0"),
        (nn.Sequential(nn.Flatten()), r"needs a linear layer, found none in the model: use fit"),
        (nn.Sequential(linear, nn.Tanh(), linear), r"must stand alone, found its weights in use"),
        (mlp(D + 1, 2, dtype=torch.float64), r"must read points of 40 numbers, found one for 41"),
    ],
)
def test_models_that_cannot(model, text):
    with pytest.raises(UnsupportedModelError, match=text):
        in_span(model, data()[0])
