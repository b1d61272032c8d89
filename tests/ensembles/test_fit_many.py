"""Many networks by every back end: the same members, the same errors, nothing else touched."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.ensembles import LostMembersError, even_sizes, fit_many, program, stacks
from inscape.models import mlp
from inscape.training import DivergedError, fit

BACKENDS = ["lanes", "stacks", "loop"]
D = 3


def data(sizes=(11, 11, 17, 11, 17)):
    rng = torch.Generator().manual_seed(1)
    xs = [torch.randn(n, D, generator=rng, dtype=torch.float64) for n in sizes]
    return xs, [x.sin().sum(1, keepdim=True) for x in xs]


def network(seed, width=8):
    return mlp(D, width, 1, seed=seed, dtype=torch.float64)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setattr(program, "WIDTHS", (4, 2))  # quicker to try than 32 and 8
    monkeypatch.setattr(even_sizes, "TURN", 8)


@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
@pytest.mark.parametrize("batch", [None, 5])
def test_every_back_end_gives_what_fit_gives(backend, batch):
    xs, ys = data()
    widths, seeds = [8, 8, 8, 6, 8], [3, 3, 1, 0, 9]
    options = {"batch": batch, "lr": 0.1, "momentum": 0.5, "epochs": 12, "stop_loss": 0.7}
    models = [network(k, width) for k, width in enumerate(widths)]
    run = fit_many(models, xs, ys, seeds=seeds, backend=backend, **options)
    kinds = [choice.members for choice in run.choices]
    assert sorted(kinds) == [(0, 1), (2, 4), (3,)]
    if backend != "auto":
        assert {choice.backend for choice in run.choices} == {backend}
    told = list(run)
    assert sorted(member.index for member in told) == [0, 1, 2, 3, 4]
    for member in told:
        k = member.index
        plain = fit(network(k, widths[k]), xs[k], ys[k], seed=seeds[k], **options)
        assert member.model is models[k]
        assert not member.model.training
        assert_close(weights(member.model), weights(plain.model))
        assert_close(member.loss, plain.loss)
        told_of_it = member.epochs, member.steps, member.stopped
        assert told_of_it == (plain.epochs, plain.steps, plain.stopped)
    assert len({member.epochs for member in told}) > 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_seeds_count_from_zero_and_data_may_be_shared(backend):
    xs, ys = data()
    models = [network(4) for _ in range(3)]
    list(
        fit_many(models, xs[0].requires_grad_(), ys[0].detach(), batch=4, epochs=3, backend=backend)
    )
    for seed, model in enumerate(models):
        plain = fit(network(4), xs[0], ys[0].detach(), batch=4, epochs=3, seed=seed)
        assert_close(weights(model), weights(plain.model))
    assert xs[0].grad is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_lost_member_does_not_disturb_the_others(backend):
    xs, ys = data((11,) * 5)
    good, bad = (xs, ys), ([*xs], [*ys])
    for k in (1, 3):
        bad[0][k], bad[1][k] = xs[k] * 1e9, ys[k] * 1e9
    options = {"epochs": 40, "lr": 0.1, "batch": 6, "backend": backend}
    models, undisturbed = ([network(k) for k in range(5)] for _ in range(2))
    list(fit_many(undisturbed, *good, **options))
    run, told = fit_many(models, *bad, **options), []
    with pytest.raises(LostMembersError) as caught:
        told.extend(run)
    assert sorted(member.index for member in told) == [0, 2, 4]
    assert all(torch.equal(weights(models[k]), weights(undisturbed[k])) for k in (0, 2, 4))
    assert isinstance(caught.value, DivergedError)
    assert sorted(caught.value.errors) == [1, 3]
    with pytest.raises(DivergedError) as plain:
        fit(network(1), bad[0][1], bad[1][1], seed=1, epochs=40, lr=0.1, batch=6)
    where = str(plain.value).split(" in epoch ")[1]  # the loss itself is rounded in other ways
    text = str(caught.value)
    assert text.startswith("member 1 diverged (so did the members 3): a training must stay finite")
    assert text.endswith(f" in epoch {where}")
    assert not any(model.training for model in models)


@pytest.mark.parametrize("backend", ["stacks", "loop"])
def test_weights_lost_in_the_last_step(backend):
    xs, ys = data((11, 11))
    options = {"epochs": 1, "lr": 1e308, "schedule": lambda step: 100.0, "backend": backend}
    text = r"member 0 diverged .*: .* NaN or Inf in '0\.weight' in epoch 0 at step 0"
    with pytest.raises(LostMembersError, match=text):
        list(fit_many([network(0), network(1)], xs, ys, **options))


@pytest.mark.parametrize("backend", BACKENDS)
def test_dice_and_the_models_of_those_who_wait_are_left_alone(backend):
    xs, ys = data((11,) * 6)
    models = [network(k).train() for k in range(6)]
    before = [weights(model).clone() for model in models]
    torch.manual_seed(5)
    rng = torch.get_rng_state()
    run = fit_many(models, xs, ys, epochs=3, batch=4, backend=backend)
    assert all(torch.equal(weights(m), b) for m, b in zip(models, before, strict=True))
    first = next(run)
    assert not torch.equal(weights(first.model), before[first.index])
    assert torch.equal(weights(models[5]), before[5])
    del run
    assert models[5].training
    assert torch.equal(rng, torch.get_rng_state())


def test_auto_says_what_it_chose_and_why():
    xs, ys = data((11, 11, 11))
    noisy = nn.Sequential(nn.Dropout(), network(2))
    normed = nn.Sequential(nn.Linear(D, 4), nn.LayerNorm(4), nn.Linear(4, 1)).double()
    run = fit_many([network(0), noisy, normed], xs, ys, epochs=2)
    assert [choice.backend for choice in run.choices] == ["lanes", "loop", "stacks"]
    assert [sorted(choice.refused) for choice in run.choices] == [
        [],
        ["lanes", "stacks"],
        ["lanes"],
    ]
    assert "vmap" in run.choices[1].refused["stacks"]
    assert len(list(run)) == 3


def test_auto_takes_the_loop_where_a_stack_is_slower(monkeypatch):
    xs, ys = data((11,))
    normed = nn.Sequential(nn.Linear(D, 4), nn.LayerNorm(4), nn.Linear(4, 1)).double()
    monkeypatch.setattr(stacks, "MANY_ELEMENTS", 100)
    (choice,) = fit_many([normed], xs, ys).choices
    assert choice.backend == "loop"
    assert "elements, and above 100 a stack no longer fits the caches" in choice.refused["stacks"]
    (choice,) = fit_many([normed], xs, ys, backend="stacks").choices
    assert choice.backend == "stacks"


def test_the_choice_does_not_depend_on_the_number_of_members(monkeypatch):
    monkeypatch.undo()  # an exponential at the end of a short loop may be refused, and warned of
    xs, ys = data((11,))
    for make in (network, lambda seed: nn.Sequential(network(seed), nn.Softplus())):
        chosen = {
            fit_many([make(k) for k in range(count)], xs[0], ys[0]).choices[0].backend
            for count in (1, 2, 9)
        }
        assert len(chosen) == 1


def test_models_that_look_alike_but_compute_otherwise_are_kept_apart():
    class Scaled(nn.Linear):
        def __init__(self, scale):
            super().__init__(D, 1, dtype=torch.float64)
            self.scale = scale
            nn.init.constant_(self.weight, 0.1)
            nn.init.zeros_(self.bias)

        def forward(self, x):
            return super().forward(x) * self.scale[0]

    xs, ys = data((11,))
    scales = [[2.0], [3.0], [2.0], {0: 2.0}]
    models, same = ([Scaled(scale) for scale in scales] for _ in range(2))
    run = fit_many(models, xs[0], ys[0], epochs=3, backend="stacks")
    assert [choice.members for choice in run.choices] == [(0, 2), (1,), (3,)]
    list(run)
    for model, plain in zip(models, same, strict=True):
        assert_close(weights(model), weights(fit(plain, xs[0], ys[0], epochs=3).model))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"models": []}, ValueError, r"needs at least one model, found none: pass some"),
        ({"x": data((11,))[0]}, ValueError, r"x must hold one entry for each of the 2 models, fo"),
        ({"seeds": [1]}, ValueError, r"seeds must hold one entry .* found 1: pass one tensor"),
        ({"backend": "gpu"}, ValueError, r"backend must be one of 'auto', 'lanes', 'stacks', 'lo"),
        ({"epochs": 0}, ValueError, r"epochs must be at least 1, found 0"),
        ({"stop_loss": math.nan}, ValueError, r"stop_loss must be a finite number"),
        ({"momentum": 2.0}, ValueError, r"momentum and betas must lie in \[0, 1\), found 2\.0"),
        ({"optimizer": "adam", "momentum": 0.5}, ValueError, r"momentum is an option of sgd, fou"),
        ({"y": data((11,))[1][0][:, 0]}, ValueError, r"found predictions \(n, 1\) and targets \("),
    ],
)
def test_what_is_refused_before_the_first_step(change, error, text):
    xs, ys = data((11,))
    given = {"models": [network(0), network(1)], "x": xs[0], "y": ys[0]} | change
    with pytest.raises(error, match=text):
        fit_many(given.pop("models"), given.pop("x"), given.pop("y"), **given)


def test_one_model_twice_is_refused():
    xs, ys = data((11,))
    model = network(0)
    with pytest.raises(ValueError, match=r"different objects, found one of them twice: use copy"):
        fit_many([model, model], xs[0], ys[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_progress_is_shown_with_the_time_left(backend, monkeypatch, capsys):
    monkeypatch.setattr("inscape.runtime.progress.PATIENCE", 0.0)
    xs, ys = data((11, 11))
    models = [network(0), network(1)]
    list(fit_many(models, xs, ys, epochs=3, backend=backend, progress=True))
    assert "(100%) in 0:0" in capsys.readouterr().err.splitlines()[-1]
    list(fit_many(models, xs, ys, epochs=3, backend=backend, progress=False))
    assert capsys.readouterr().err == ""
