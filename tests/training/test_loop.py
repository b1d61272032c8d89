"""The loop against a plain one written by hand, bit for bit, and against closed forms."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.models import mlp
from inscape.training import DivergedError, decay, fit, l2_norm

N, D = 23, 3


def data(c=2, dtype=torch.float64):
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(N, D, generator=rng, dtype=dtype)
    return x, torch.randn(N, c, generator=rng, dtype=dtype)


def network(c=2, seed=0, dtype=torch.float64):
    return mlp(D, 8, c, activation="tanh", seed=seed, dtype=dtype)


def hand_written(model, x, y, make_optimizer, *, batch, epochs, lr, factor, penalty=None):
    """The loop as anybody would write it."""
    optimizer = make_optimizer(model.parameters())
    rng = torch.Generator().manual_seed(0)
    step, losses = 0, []
    for _ in range(epochs):
        if batch is None:
            parts = [(x, y)]
        else:
            order = torch.randperm(len(x), generator=rng)
            parts = [(x[i], y[i]) for i in (order[k : k + batch] for k in range(0, len(x), batch))]
        mean = 0.0
        for xs, ys in parts:
            optimizer.zero_grad()
            loss = ((model(xs) - ys) ** 2).mean()
            total = loss if penalty is None else loss + penalty * l2_norm(model, xs)
            total.backward()
            optimizer.param_groups[0]["lr"] = lr * factor(step)
            optimizer.step()
            mean += loss.item() * len(xs) / len(x)
            step += 1
        losses.append(mean)
    return torch.tensor(losses, dtype=torch.float64)


OPTIMIZERS = {
    "sgd": ({}, lambda p: torch.optim.SGD(p, 0.05)),
    "sgd, momentum": ({"momentum": 0.9}, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)),
    "sgd, nesterov": (
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.02},
        lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.02),
    ),
    "adam": (
        {"optimizer": "adam", "betas": (0.8, 0.99), "weight_decay": 0.02},
        lambda p: torch.optim.Adam(p, 0.05, (0.8, 0.99), weight_decay=0.02),
    ),
    "adamw": (
        {"optimizer": "adamw", "weight_decay": 0.02},
        lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.02),
    ),
    "own": (
        {"optimizer": lambda p: torch.optim.RMSprop(p, 0.05)},
        lambda p: torch.optim.RMSprop(p, 0.05),
    ),
}


@pytest.mark.parametrize("batch", [None, 5, 23, 64])
@pytest.mark.parametrize("schedule", [None, decay(0.7, every=4), lambda step: 1 / (1 + step)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fit_is_the_hand_written_loop(name, schedule, batch):
    options, make = OPTIMIZERS[name]
    lr = {} if name == "own" else {"lr": 0.05}
    x, y = data()
    theirs = network()
    factor = schedule or (lambda step: 1.0)
    expected = hand_written(theirs, x, y, make, batch=batch, epochs=4, lr=0.05, factor=factor)
    run = fit(network(), x, y, batch=batch, epochs=4, schedule=schedule, **lr, **options)
    for a, b in zip(run.model.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)
    assert_close(run.losses, expected)
    assert (run.epochs, run.steps) == (4, 4 * (1 if batch is None else math.ceil(N / batch)))


def test_penalties_are_added_with_their_coefficients():
    x, y = data()
    theirs = network()
    make = OPTIMIZERS["sgd, momentum"][1]
    options = {"batch": 5, "epochs": 3, "lr": 0.05}
    losses = hand_written(
        theirs, x, y, make, batch=5, epochs=3, lr=0.05, factor=lambda s: 1.0, penalty=0.3
    )
    run = fit(network(), x, y, momentum=0.9, penalties=[(0.3, l2_norm)], **options)
    for a, b in zip(run.model.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)
    assert_close(run.losses, losses)  # without the penalty


def test_penalties_are_averaged_over_the_points_of_an_epoch():
    def size(model, x):
        return x.square().sum() / len(x)

    def one(model, x):
        return torch.ones(()) * model[0].bias.square().sum() * 0 + 1

    x, y = data()
    run = fit(network(), x, y, batch=5, epochs=2, penalties=[(0.0, size), (1e-9, one)])
    assert run.penalties.shape == (2, 2)
    assert_close(run.penalties[:, 0], (x.square().sum() / N).expand(2))
    assert run.penalties[:, 1].tolist() == [1.0, 1.0]
    assert run.settings.penalties == ((0.0, "size"), (1e-9, "one"))
    assert fit(network(), x, y, epochs=2).penalties.shape == (2, 0)


def test_gradient_descent_on_a_linear_model_follows_its_closed_form():
    r"""After t steps of GD on ``|Xw - y|^2 / n``: w_t = w* + (I - 2 lr X'X / n)^t (w_0 - w*)."""
    x, y = data(c=1)
    model = mlp(D, 1, bias=False, dtype=torch.float64, seed=3)
    start = model[0].weight.detach().clone().T
    best = torch.linalg.lstsq(x, y).solution
    shrink = torch.eye(D, dtype=torch.float64) - 2 * 0.1 * x.T @ x / N
    run = fit(model, x, y, lr=0.1, epochs=17)
    expected = best + torch.linalg.matrix_power(shrink, 17) @ (start - best)
    assert_close(run.model[0].weight.T, expected)
    assert_close(run.losses[0], (x @ start - y).square().mean())
    long = fit(model, x, y, lr=0.3, epochs=400)
    assert_close(long.model[0].weight.T, best)
    assert_close(long.losses[-1], (x @ best - y).square().mean())


def test_it_trains_a_classifier_with_cross_entropy():
    x, _ = data()
    y = (x[:, 0] > 0).long()
    run = fit(network(), x, y, loss="cross_entropy", optimizer="adam", lr=0.1, epochs=60)
    assert run.loss < 0.05
    assert torch.equal(run.model(x).argmax(1), y)


def test_it_stops_on_the_running_mean_of_the_epoch():
    x, y = data()
    whole = fit(network(), x, y, lr=0.05, batch=5, epochs=20)
    target = whole.losses[9].item()
    run = fit(network(), x, y, lr=0.05, batch=5, epochs=20, stop_loss=target)
    assert (run.epochs, run.stopped, run.steps) == (10, "loss", 50)
    assert torch.equal(run.losses, whole.losses[:10])
    assert whole.stopped == "epochs"


def test_it_stops_on_the_loss_after_the_epoch():
    x, y = data()
    values, net = [], network()
    for epochs in range(1, 6):
        net = fit(network(), x, y, lr=0.05, batch=5, epochs=epochs).model
        values.append(((net(x) - y) ** 2).mean().item())
    assert values == sorted(values, reverse=True)
    options = {"lr": 0.05, "batch": 5, "epochs": 20, "stop_on": "evaluated"}
    run = fit(network(), x, y, stop_loss=values[3] * (1 + 1e-12), **options)
    assert (run.epochs, run.stopped) == (4, "loss")
    assert_close(run.losses, torch.tensor(values[:4], dtype=torch.float64))
    running = fit(network(), x, y, lr=0.05, batch=5, epochs=4)
    assert not torch.allclose(running.losses, run.losses)


def test_evaluation_takes_the_data_in_parts(monkeypatch):
    x, y = data()
    whole = fit(network(), x, y, epochs=2, stop_on="evaluated")
    monkeypatch.setattr("inscape.training.loop.CHUNK", 4)
    assert_close(fit(network(), x, y, epochs=2, stop_on="evaluated").losses, whole.losses)


def dropout_network():
    model = nn.Sequential(nn.Linear(D, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 2))
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    return model.double()


class Noisy(nn.Linear):
    """Draws in eval mode as well."""

    def forward(self, x):
        return super().forward(x) + torch.randn(len(x), self.out_features, dtype=x.dtype)


def noisy_network():
    model = Noisy(D, 2, dtype=torch.float64)
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    return model


@pytest.mark.parametrize("build", [network, dropout_network, noisy_network])
def test_same_seed_same_bits_and_the_global_generators_untouched(build):
    x, y = data()
    states = []
    for seed, world in [(3, 0), (3, 1), (4, 0)]:
        model = build()
        torch.manual_seed(world)
        before = torch.get_rng_state()
        run = fit(model, x, y, batch=5, epochs=3, seed=seed, stop_on="evaluated")
        assert torch.equal(before, torch.get_rng_state())
        states.append(torch.cat([p.detach().flatten() for p in run.model.parameters()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_dropout_is_on_while_training_and_differs_from_step_to_step():
    masks = []

    def watch(model, x):
        masks.append(model[1](torch.ones(1, 32)).clone())
        return torch.zeros(())

    x, y = data()
    model = dropout_network()
    fit(model, x, y, epochs=4, penalties=[(1.0, watch)])
    assert all((mask == 0).any() for mask in masks)
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) == 4


def test_the_evaluated_loss_uses_no_dropout():
    x, y = data()
    run = fit(dropout_network(), x, y, batch=5, epochs=2, stop_on="evaluated")
    assert_close(run.losses[-1], (run.model(x) - y).square().mean())


def test_the_model_comes_back_in_eval_mode_without_gradients():
    x, y = data()
    model = dropout_network().train()
    run = fit(model, x.requires_grad_(), y, epochs=2)
    assert run.model is model
    assert not any(part.training for part in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert x.grad is None


def test_frozen_parameters_stay():
    x, y = data()
    model = network()
    model[0].requires_grad_(False)
    before = [p.detach().clone() for p in model.parameters()]
    fit(model, x, y, epochs=2)
    moved = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert moved == [False, False, True, True]


def test_it_trains_under_no_grad():
    x, y = data()
    with torch.no_grad():
        run = fit(network(), x, y, epochs=5)
    assert run.losses[-1] < run.losses[0]


def test_it_takes_images_and_any_loss():
    def huber(prediction, target):
        return nn.functional.huber_loss(prediction, target)

    x = torch.randn(6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 1))
    run = fit(model, x, x.mean((1, 2, 3))[:, None], loss=huber, epochs=30, lr=0.1)
    assert run.losses[-1] < run.losses[0]
    assert run.settings.loss == "own:huber"


def test_groups_keep_their_own_rates():
    x, y = data()

    def make(parameters):
        first, *rest = parameters
        return torch.optim.SGD([{"params": [first], "lr": 0.0}, {"params": rest, "lr": 0.1}])

    model = network()
    before = [p.detach().clone() for p in model.parameters()]
    fit(model, x, y, optimizer=make, schedule=decay(0.5, every=1), epochs=2)
    moved = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert moved == [False, True, True, True]


def test_what_was_asked_is_written_down():
    x, y = data()
    run = fit(network(), x, y, epochs=2, schedule=decay(0.9, every=500), seed=7)
    assert run.settings.schedule == "Decay(factor=0.9, every=500)"
    assert (run.settings.optimizer, run.settings.lr, run.settings.seed) == ("sgd", 0.01, 7)
    assert fit(network(), x, y, epochs=1, schedule=abs).settings.schedule == "own:abs"
    assert run.trajectory is None
    assert repr(run) == f"Fit(loss {run.loss:.3g} after 2 epochs, 2 steps: all epochs)"
    assert run.loss == run.losses[-1]
    easy = fit(network(), x, y, epochs=2, stop_loss=1e9)
    assert repr(easy).endswith("1 epochs, 1 steps: reached stop_loss)")


def test_a_diverging_loss_is_an_error_that_says_where():
    x, y = data()
    model = mlp(D, 2, dtype=torch.float64)
    text = r"must stay finite, found loss (inf|nan) in epoch (\d+) at step (\d+) \(counted from 0\)"
    with pytest.raises(DivergedError, match=text + ": use a smaller lr.$") as caught:
        fit(model, x, y, batch=12, lr=1e4, epochs=200)
    epoch, step = (int(word) for word in str(caught.value).split() if word.isdigit())
    assert epoch == step // 2 > 10
    assert not model.training


def test_a_diverging_penalty_is_named():
    def bad(model, x):
        return model[0].weight.sum() / 0

    x, y = data()
    text = r"found loss [\d.]+, penalty bad -?inf in epoch 0 at step 0 .*or smaller coefficients"
    with pytest.raises(DivergedError, match=text):
        fit(network(), x, y, penalties=[(1.0, bad)])


def test_weights_that_blow_up_in_the_last_step_are_an_error():
    x, y = data()
    with pytest.raises(DivergedError, match=r"NaN or Inf in '0\.weight' in epoch 0 at step 0"):
        fit(mlp(D, 2, dtype=torch.float64), x, y, epochs=1, lr=1e308, schedule=lambda s: 100.0)


def test_an_interrupt_passes_and_leaves_the_model_in_eval_mode():
    def interrupt(model, x):
        raise KeyboardInterrupt

    x, y = data()
    model = network()
    before = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        fit(model, x, y, penalties=[(1.0, interrupt)])
    assert not model.training
    assert torch.equal(before, torch.get_rng_state())


def test_progress_is_shown_when_asked_for(monkeypatch, capsys):
    monkeypatch.setattr("inscape.runtime.progress.PATIENCE", 0.0)
    monkeypatch.setenv("INSCAPE_QUIET", "1")
    x, y = data()
    fit(network(), x, y, epochs=2)
    assert capsys.readouterr().err == ""
    run = fit(network(), x, y, epochs=2, batch=12, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("training 1/4 (25%), 0:00 left")
    assert lines[-1] == f"training 4/4 (100%) in 0:00, loss {run.losses[0]:.1e}"
    monkeypatch.delenv("INSCAPE_QUIET")
    fit(network(), x, y, epochs=2, progress=False)
    assert capsys.readouterr().err == ""


def test_a_model_that_writes_over_its_input_leaves_the_data_alone():
    model = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(2, 1))
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    before = x.clone()
    fit(model, x, x[:, :1].clone(), epochs=2, stop_on="evaluated", progress=False)
    assert torch.equal(x, before)
