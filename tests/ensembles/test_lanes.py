"""Lanes against the plain loop, number by number, and against a closed form."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.ensembles import LostMembersError, fit_many
from inscape.models import mlp, two_layer
from inscape.training import DivergedError, fit

N, D, C = 11, 3, 2


def data(n=N, d=D, c=C, dtype=torch.float64, seed=1):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=rng, dtype=dtype)
    return x, torch.randn(n, c, generator=rng, dtype=dtype)


def trained(models, x, y, **options):
    members = fit_many(models, x, y, backend="lanes", progress=False, **options)
    return sorted(members, key=lambda member: member.index)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def compare(models, xs, ys, *, atol=1e-12, **options):
    """Train copies by ``fit`` and compare everything."""
    copies = copy.deepcopy(models)
    members = trained(models, xs, ys, **options)
    assert [member.index for member in members] == list(range(len(models)))
    for index, (member, plain) in enumerate(zip(members, copies, strict=True)):
        x = xs if isinstance(xs, torch.Tensor) else xs[index]
        y = ys if isinstance(ys, torch.Tensor) else ys[index]
        run = fit(plain, x, y, seed=index, progress=False, **options)
        assert member.model is models[index]
        assert (member.epochs, member.steps, member.stopped) == (run.epochs, run.steps, run.stopped)
        assert abs(member.loss - run.loss) <= atol
        assert_close(weights(member.model), weights(plain), rtol=0, atol=atol)
    return members


NETWORKS = {
    "shallow": lambda seed: two_layer(1, 9, seed=seed, dtype=torch.float64),
    "relu": lambda seed: mlp(D, 8, 5, C, seed=seed, dtype=torch.float64),
    "tanh": lambda seed: mlp(D, 8, 5, C, activation="tanh", seed=seed, dtype=torch.float64),
    "leaky": lambda seed: mlp(D, 6, C, activation="leaky_relu", seed=seed, dtype=torch.float64),
    "no bias": lambda seed: mlp(D, 6, C, bias=False, seed=seed, dtype=torch.float64),
    "linear": lambda seed: mlp(D, C, seed=seed, dtype=torch.float64),
    "mixed": lambda seed: nn.Sequential(
        *mlp(D, 7, 4, activation="tanh", seed=seed, dtype=torch.float64),
        nn.Identity(),
        nn.Sequential(nn.Sigmoid(), mlp(4, C, bias=False, seed=seed, dtype=torch.float64)),
        nn.LeakyReLU(0.2),
    ),
}


@pytest.mark.parametrize("batch", [None, 4, 100])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_member_is_what_fit_gives(name, batch):
    d, c = (1, 1) if name == "shallow" else (D, C)
    x, y = data(d=d, c=c)
    epochs = 300 if batch is None else 25
    compare([NETWORKS[name](seed) for seed in range(2)], x, y, lr=0.1, epochs=epochs, batch=batch)


OPTIMIZERS = {
    "momentum": {"momentum": 0.9},
    "nesterov, decay": {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    "decay": {"weight_decay": 0.1},
    "adam": {"optimizer": "adam"},
    "adam, betas, decay": {"optimizer": "adam", "betas": (0.5, 0.9), "weight_decay": 0.1},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1},
}


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_those_of_torch(name, batch):
    """Adam divides a gradient by its own size, so that the rounding of a small one counts."""
    options = {"lr": 0.02, "epochs": 30, "batch": batch, **OPTIMIZERS[name]}
    options["atol"] = 1e-10 if "optimizer" in options else 1e-12
    compare([NETWORKS["tanh"](seed) for seed in range(2)], *data(), **options)
    compare([NETWORKS["shallow"](seed) for seed in range(2)], *data(d=1, c=1), **options)


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("loss", ["bce_logits", "classes", "chances"])
def test_losses_are_those_of_torch(loss, batch):
    x, y = data()
    if loss == "bce_logits":
        y = y.sigmoid()
    elif loss == "classes":
        loss, y = "cross_entropy", y.argmax(1)
    else:
        loss, y = "cross_entropy", 3 * y.softmax(1)  # rows that do not add up to one, as well
    models = [NETWORKS["tanh"](seed) for seed in range(2)]
    compare(models, x, y, loss=loss, lr=0.1, epochs=30, batch=batch)


def test_a_shallow_network_classifies():
    x, y = data(d=1, c=1)
    models = [NETWORKS["shallow"](seed) for seed in range(2)]
    compare(models, x, (y > 0).double(), loss="bce_logits", lr=0.1, epochs=60)


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("name", ["shallow", "tanh"])
@pytest.mark.parametrize("stop_on", ["running", "evaluated"])
def test_members_stop_when_fit_stops(name, stop_on, batch):
    d, c = (1, 1) if name == "shallow" else (D, C)
    x, y = data(d=d, c=c)
    options = {"lr": 0.05, "batch": batch, "stop_on": stop_on}
    losses = fit(NETWORKS[name](0), x, y, epochs=40, seed=0, **options).losses
    target = losses.min().item() * (1 + 1e-9)
    models = [NETWORKS[name](seed) for seed in range(6)]
    members = compare(models, x, y, epochs=45, stop_loss=target, **options)
    assert {member.stopped for member in members} == {"loss", "epochs"}
    assert (members[0].epochs, members[0].stopped) == (losses.argmin() + 1, "loss")
    assert all(not member.model.training for member in members)
    assert all(p.grad is None for member in members for p in member.model.parameters())


def test_members_have_their_own_data_of_any_size():
    sizes = [2, 5, 3, 2, 7, 5, 5, 2, 3, 2, 2, 2] * 2
    pairs = [data(n, 1, 1, seed=seed) for seed, n in enumerate(sizes)]
    models = [NETWORKS["shallow"](seed) for seed in range(len(sizes))]
    compare(models, *map(list, zip(*pairs, strict=True)), lr=0.1, epochs=70, stop_loss=0.05)


def test_single_precision_agrees_up_to_its_rounding():
    """Two hundred steps of numbers of order one, each rounded to 6e-8 of its size.

    A unit whose kink passes a point may be a step early or late, which moves a weight by less than
    lr times the error of that point times the rounding; no such step is larger than the others.
    """
    x, y = data(10, 1, 1, dtype=torch.float32)
    models = [two_layer(1, 256, init="glorot", scale=0.01, seed=seed) for seed in range(3)]
    compare(models, x, y, lr=0.1, epochs=200, atol=1e-5)
    deep = [mlp(D, 16, 16, C, activation="tanh", seed=seed) for seed in range(3)]
    compare(deep, *data(dtype=torch.float32), lr=0.1, epochs=200, batch=4, atol=1e-5)


def test_gradient_descent_on_a_linear_model_follows_its_closed_form():
    r"""After t steps of GD on ``|Xw - y|^2 / n``: w_t = w* + (I - 2 lr X'X / n)^t (w_0 - w*)."""
    x, y = data(c=1)
    models = [mlp(D, 1, bias=False, dtype=torch.float64, seed=seed) for seed in range(3)]
    starts = [model[0].weight.detach().clone().T for model in models]
    best = torch.linalg.lstsq(x, y).solution
    shrink = torch.eye(D, dtype=torch.float64) - 2 * 0.1 * x.T @ x / N
    for member, start in zip(trained(models, x, y, lr=0.1, epochs=17), starts, strict=True):
        expected = best + torch.linalg.matrix_power(shrink, 17) @ (start - best)
        assert_close(member.model[0].weight.T, expected)


@pytest.mark.parametrize("name", ["shallow", "leaky"])
def test_a_member_that_diverges_harms_no_other_and_says_where(name):
    d, c = (1, 1) if name == "shallow" else (D, C)
    x, y = data(d=d, c=c)
    bad = 100 * x
    options = {"lr": 0.01, "epochs": 60, "batch": None if name == "shallow" else 4}
    alone = trained([NETWORKS[name](seed) for seed in (0, 2)], x, y, seeds=[0, 2], **options)
    models = [NETWORKS[name](seed) for seed in range(3)]
    members = []
    with pytest.raises(LostMembersError) as caught:
        members.extend(fit_many(models, [x, bad, x], y, backend="lanes", **options))
    assert sorted(member.index for member in members) == [0, 2]
    for member in members:
        want = alone[member.index // 2].model
        assert torch.equal(weights(member.model), weights(want))
    with pytest.raises(DivergedError) as expected:
        fit(NETWORKS[name](1), bad, y, seed=1, **options)
    assert str(caught.value.errors[1]) == str(expected.value)
    assert "use a smaller lr" in str(expected.value)
    assert torch.equal(weights(models[1]), weights(NETWORKS[name](1)))
    assert not models[1].training


def test_weights_that_blow_up_in_the_last_step_are_an_error():
    x, y = data()
    options = {"epochs": 1, "lr": 1e308}
    with pytest.raises(LostMembersError) as caught:
        trained([NETWORKS["linear"](0)], 1e3 * x, y, **options)
    with pytest.raises(DivergedError, match=r"NaN or Inf in '0\.weight' in epoch 0") as expected:
        fit(NETWORKS["linear"](0), 1e3 * x, y, **options)
    assert str(caught.value.errors[0]) == str(expected.value)
