import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape import models
from inscape.errors import UnsupportedModelError
from inscape.models import mlp
from inscape.models.initialisation import fans

LAWS = ("glorot_uniform", "he_normal", "he_uniform", "pytorch_default")


def weight(law, n_in=300, n_out=500, **settings):
    layer = nn.Linear(n_in, n_out, dtype=torch.float64)
    getattr(models, law)(layer, **settings)
    return layer.weight.detach(), layer.bias.detach()


@pytest.mark.parametrize("alpha", [1.0, 0.01])
@pytest.mark.parametrize(
    ("law", "limit"),
    [
        ("glorot_uniform", lambda alpha: math.sqrt(6 * alpha / 800)),
        ("he_uniform", lambda alpha: math.sqrt(6 * alpha / 300)),
        ("pytorch_default", lambda alpha: math.sqrt(alpha / 300)),
    ],
)
def test_uniform_laws_fill_their_limits_evenly(law, limit, alpha):
    weights, _ = weight(law, scale=alpha)
    bound = limit(alpha)
    count = weights.numel()
    assert weights.abs().max() <= bound
    assert weights.max() > bound * (1 - 1e-3)
    assert weights.min() < -bound * (1 - 1e-3)
    # Five standard errors of the mean square of a uniform law: its fourth moment is l^4 / 5.
    error = bound**2 * math.sqrt((1 / 5 - 1 / 9) / count)
    assert abs(weights.square().mean() - bound**2 / 3) < 5 * error
    assert abs(weights.mean()) < 5 * bound / math.sqrt(3 * count)


@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_he_normal_has_its_variance_and_its_tails(alpha):
    weights, _ = weight("he_normal", scale=alpha)
    variance, count = 2 * alpha / 300, weights.numel()
    assert abs(weights.var() - variance) < 5 * variance * math.sqrt(2 / count)
    assert abs(weights.mean()) < 5 * math.sqrt(variance / count)
    beyond = (weights.abs() > 2 * math.sqrt(variance)).double().mean()
    assert abs(beyond - 0.0455) < 5 * math.sqrt(0.0455 / count)  # a truncated law has none


@pytest.mark.parametrize("law", LAWS)
def test_scale_multiplies_the_variance(law):
    (one, bias), (four, bias_four) = weight(law), weight(law, scale=4.0)
    assert_close(four, 2 * one)
    assert_close(bias_four, 2 * bias)
    assert not weight(law, scale=0.0)[0].any()


@pytest.mark.parametrize("law", LAWS[:3])
def test_biases_are_zero(law):
    assert not weight(law)[1].any()


def test_glorot_at_alpha_one_is_torchs():
    ours, _ = weight("glorot_uniform", seed=3)
    theirs = torch.empty_like(ours)
    rng = torch.Generator().manual_seed(3)
    assert torch.equal(ours, nn.init.xavier_uniform_(theirs, generator=rng))


@pytest.mark.parametrize(("law", "torchs"), [("he_normal", "normal"), ("he_uniform", "uniform")])
def test_he_at_scale_one_is_torchs(law, torchs):
    ours, _ = weight(law, seed=3)
    draw = getattr(nn.init, f"kaiming_{torchs}_")
    theirs = draw(
        torch.empty_like(ours), nonlinearity="relu", generator=torch.Generator().manual_seed(3)
    )
    assert_close(ours, theirs)


def test_pytorch_default_is_what_pytorch_would_draw():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        theirs = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3), nn.Conv2d(2, 4, 3))
    ours = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3), nn.Conv2d(2, 4, 3))
    models.pytorch_default(ours, seed=11)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)


def test_fans_of_a_convolution_count_its_receptive_field():
    kernel = nn.Conv2d(3, 8, (5, 2)).weight
    assert fans(kernel) == (30, 80)
    assert fans(kernel) == nn.init._calculate_fan_in_and_fan_out(kernel)
    assert fans(nn.Linear(4, 6).weight) == (4, 6)


@pytest.mark.parametrize("law", LAWS)
def test_normalisation_is_reset_and_the_rest_of_the_world_stays(law):
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))
    model(torch.randn(8, 1, 6, generator=torch.Generator().manual_seed(0)))
    with torch.no_grad():
        model[1].weight.fill_(3.0)
    before, modes = torch.get_rng_state(), [m.training for m in model.modules()]
    getattr(models, law)(model, seed=2)
    assert torch.equal(before, torch.get_rng_state())
    assert [m.training for m in model.modules()] == modes
    assert_close(model[1].weight, torch.ones(4), check_stride=False, msg="weight")
    assert not model[1].running_mean.any()
    assert all(p.requires_grad for p in model.parameters())


def test_mlp_passes_the_law_the_scale_and_the_seed():
    ours = mlp(20, 30, 1, init="glorot", scale=0.01, seed=5)
    other = mlp(20, 30, 1)
    models.glorot_uniform(other, scale=0.01, seed=5)
    assert all(
        torch.equal(a, b) for a, b in zip(ours.parameters(), other.parameters(), strict=True)
    )
    assert ours[0].weight.abs().max() <= math.sqrt(0.06 / 50)


@pytest.mark.parametrize("scale", [-1.0, math.inf, math.nan])
def test_a_bad_scale_is_refused(scale):
    with pytest.raises(
        ValueError, match=r"scale must be a finite factor .* found .*: use 1\.0 for"
    ):
        mlp(2, 3, 1, scale=scale)


def test_an_unknown_layer_is_named_and_nothing_is_drawn():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Embedding(3, 2)))
    before = model[0].weight.clone()
    with pytest.raises(UnsupportedModelError, match=r"'1\.0' is a Embedding with parameters"):
        models.he_normal(model)
    assert torch.equal(before, model[0].weight)
    with pytest.raises(UnsupportedModelError, match=r"'the module itself' is a GRU"):
        models.he_normal(nn.GRU(2, 2))
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    with pytest.raises(UnsupportedModelError, match="those of 'the module itself' are made"):
        models.he_normal(normed)


def test_transposed_convolution_counts_its_own_inputs():
    layer = torch.nn.ConvTranspose1d(64, 2, 1)
    models.he_normal(layer, seed=0)
    # 128 draws of standard deviation sqrt(2/64): five standard errors.
    assert abs(layer.weight.std().item() / (2 / 64) ** 0.5 - 1) < 5 / (2 * 128) ** 0.5


def test_weights_made_of_others_are_refused():
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
    with pytest.raises(UnsupportedModelError, match="those of '0' are made of others"):
        models.glorot_uniform(torch.nn.Sequential(layer))
