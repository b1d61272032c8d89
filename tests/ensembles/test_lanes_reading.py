"""What lanes do not take, and how they say so; what they compute with."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from inscape.ensembles.lanes import reason_not
from inscape.ensembles.lanes.support import shape_of
from inscape.ensembles.lanes.vectors import (
    alike,
    expm1,
    fma,
    load,
    root,
    store,
    where_positive,
)
from inscape.models import mlp
from inscape.runtime.compilation import compiled
from inscape.training import FitOptions, cosine, l2_norm

PLAIN = FitOptions(lr=0.1, epochs=5)
X = torch.zeros(4, 2)


def reason(model, x=X, **settings):
    return reason_not([model], [x], [x], replace(PLAIN, **settings))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"loss": nn.functional.huber_loss},
            "the losses mse, bce_logits, cross_entropy, found own:huber_loss",
        ),
        (
            {"optimizer": torch.optim.RMSprop, "lr": 0.01},
            "the optimizers sgd, adam, adamw, found own:RMSprop",
        ),
        (
            {"penalties": ((0.1, l2_norm),)},
            "lanes support no penalties, found ((0.1, 'l2_norm'),)",
        ),
        ({"schedule": cosine(5)}, "lanes support no schedule, found Cosine(total=5)"),
    ],
)
def test_settings_that_lanes_do_not_take(settings, text):
    assert reason(mlp(2, 3, 2)) is None
    assert text in reason(mlp(2, 3, 2), **settings)


def frozen():
    model = mlp(2, 3, 2)
    model[0].bias.requires_grad_(False)
    return model


def tied():
    layer = nn.Linear(2, 2)
    return nn.Sequential(layer, nn.ReLU(), layer)


def hooked():
    model = mlp(2, 3, 2)
    model[0].register_forward_hook(lambda *_: None)
    return model


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: nn.Linear(2, 2), "require an nn.Sequential of Linear, ReLU,"),
        (lambda: nn.Linear(2, 2), "Identity, found Linear"),
        (lambda: mlp(2, 3, 2, activation="gelu"), "found GELU at '1'"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout()), "found Dropout at '1'"),
        (lambda: nn.Sequential(weight_norm(nn.Linear(2, 2))), "found ParametrizedLinear at '0'"),
        (lambda: nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), "follows a Linear, found '0' else"),
        (
            lambda: nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Tanh())),
            "an activation follows a Linear, found '1.1' elsewhere",
        ),
        (
            lambda: nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU(-0.1)),
            "slopes above 0, found -0.1 at '1'",
        ),
        (hooked, "lanes call no hooks, found a module that has some"),
        (nn.Sequential, "lanes train weights, found a network without any"),
        (tied, "every weight has one place, found one that is used twice"),
        (frozen, "lanes train all weights, found '0.bias' frozen"),
        (lambda: mlp(2, 128, 128, 2), "up to 16384 weights, found 17154"),
    ],
)
def test_networks_that_lanes_do_not_take(build, text):
    assert text in reason(build())


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (torch.zeros(4, 1, 2), "points that are vectors, found shape (4, 1, 2)"),
        (X.half(), "on the CPU in float32 or float64, found torch.float16 on cpu"),
        (X.to("meta"), "on the CPU in float32 or float64, found torch.float32 on meta"),
        (torch.zeros(4000, 2), "up to 16384 activations in all, found 20000"),
    ],
)
def test_data_that_lanes_do_not_take(x, text):
    assert text in reason(mlp(2, 3, 2), x)


def test_batches_count_where_data_are_many():
    many = torch.zeros(4000, 2)
    assert reason(mlp(2, 3, 2), many, batch=100) is None
    assert "found 20000" in reason(mlp(2, 3, 2), many, batch=100, stop_on="evaluated")
    assert reason(mlp(1, 3, 1), torch.zeros(9000, 1)) is None  # keeps nothing for each unit
    assert "found 36000" in reason(mlp(1, 3, 1), torch.zeros(9000, 1), momentum=0.9)


def test_lanes_hold_one_kind():
    text = "lanes hold networks of one shape and one dtype, found several"
    two = [mlp(2, 3, 2), mlp(2, 4, 2)]
    assert reason_not(two, [X, X], [X, X], PLAIN) == text
    slopes = [nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU(slope)) for slope in (0.1, 0.2)]
    assert reason_not(slopes, [X, X], [X, X], PLAIN) == text
    dtypes = [mlp(2, 3, 2), mlp(2, 3, 2, dtype=torch.float64)]
    assert reason_not(dtypes, [X, X.double()], [X, X], PLAIN) == text
    assert reason_not([mlp(2, 3, 2)] * 2, [X, X[:3]], [X, X[:3]], PLAIN) is None


def test_a_network_is_read_layer_by_layer():
    model = nn.Sequential(
        nn.Linear(2, 3),
        nn.Sequential(nn.Identity(), nn.LeakyReLU(0.3)),
        nn.Linear(3, 1, bias=False),
    )
    shape = shape_of(model)
    assert shape.layers.tolist() == [[2, 3, 0, 6, 2], [3, 1, 9, -1, 0]]
    assert shape.slopes.tolist() == [0.3, 0.0]
    assert shape.parameters == sum(p.numel() for p in model.parameters())


@compiled(reorder=False)
def table(x, out):
    """Compute a few functions of the first row."""
    z = load(x, 0)
    store(out, 0, expm1(z))
    store(out, 1, fma(z, alike(z, 2.0), alike(z, 1.0)))
    store(out, 2, root(z * z))
    store(out, 3, where_positive(z, z, alike(z, 0.0)))


@pytest.mark.parametrize(("dtype", "lanes"), [(np.float32, 16), (np.float64, 8)])
def test_numbers_of_many_lanes(dtype, lanes):
    rounding = np.finfo(dtype).eps
    points = np.concatenate([np.linspace(-40, 40, 401), np.logspace(-15, 1, 99), [0.0] * 12])
    for row in points[: len(points) // lanes * lanes].reshape(-1, lanes).astype(dtype):
        out = np.zeros((4, lanes), dtype)
        table(row[None].copy(), out)
        exact = np.expm1(row.astype(np.float64))
        assert np.all(abs(out[0] - exact) <= 4 * rounding * abs(exact))
        assert np.array_equal(out[1], 2 * row + 1)
        np.testing.assert_allclose(out[2], abs(row), rtol=2 * rounding)
        assert np.array_equal(out[3], row.clip(0))


def test_the_exponential_at_its_ends():
    out = np.zeros((4, 8))
    table(np.array([[math.inf, -math.inf, math.nan, 1e9, -1e9, -0.0, 700.0, -700.0]]), out)
    assert out[0, 0] == out[0, 3] > 1e300
    assert out[0, 1] == out[0, 4] == out[0, 7] == -1.0
    assert math.isnan(out[0, 2])
    assert out[0, 5] == 0.0
    assert math.isclose(out[0, 6], math.expm1(700.0), rel_tol=1e-14)
    assert math.isnan(out[3, 2])  # or a lost member would look like one at its goal
    assert out[3, [0, 1, 3, 4, 5]].tolist() == [math.inf, 0.0, 1e9, 0.0, 0.0]
