"""A replayed step against the same step of a training that was watched as it ran."""

import functools

import pytest
import torch
from torch import nn

from inscape.models import mlp
from inscape.training import cosine, fit, l2_norm, replay, walk
from inscape.training.recorder import _smallest

N = 13


def data():
    rng = torch.Generator().manual_seed(2)
    return torch.randn(N, 3, generator=rng), torch.randn(N, 2, generator=rng)


def plain():
    return mlp(3, 6, 2, seed=1)


def with_dropout():
    model = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3))
    model.append(nn.Linear(6, 2))
    for number, parameter in enumerate(model.parameters()):
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(number))
    return model.eval()


def watched(model, seen):
    """A penalty of zero that copies the state before each step."""

    def watch(_, x):
        seen.append({name: t.detach().clone() for name, t in model.state_dict().items()})
        return torch.zeros(())

    return [(0.0, watch)]


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


RUNS = {
    "sgd": {},
    "full batch": {"batch": None},
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "adam": {"optimizer": "adam"},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1},
    "schedule": {"optimizer": "adam", "schedule": cosine(20)},
}


@pytest.mark.parametrize("build", [plain, with_dropout])
@pytest.mark.parametrize("record", [1, 4, 7, 100])
@pytest.mark.parametrize("name", RUNS)
def test_every_step_comes_back_bit_for_bit(name, record, build):
    settings = {"batch": 5, "epochs": 4, "lr": 0.03, "seed": 6} | RUNS[name]
    x, y = data()
    seen = []
    model = build()
    run = fit(model, x, y, record=record, penalties=watched(model, seen), **settings)
    way, watch = run.trajectory, watched(model, [])
    # The watch looked at each step in the middle of training mode, after batch norm had moved.
    names = [name for name in seen[0] if "running" not in name and "num_batches" not in name]
    truth = [*seen, run.model.state_dict()]
    assert way.steps == run.steps == len(seen)
    other = build()
    for step in range(way.steps + 1):
        state = replay(way, other, x, y, step, penalties=watch)
        assert same({n: state[n] for n in names}, {n: truth[step][n] for n in names})
    assert same(state, run.model.state_dict())
    assert same(replay(way, other, x, y, 0, penalties=watch), build().state_dict())
    assert same(other.state_dict(), build().state_dict())


def test_buffers_come_back_too():
    x, y = data()
    settings = {"batch": 5, "lr": 0.03, "record": 1000}
    way = fit(with_dropout(), x, y, epochs=4, **settings).trajectory
    for epochs in (1, 2, 3):
        shorter = fit(with_dropout(), x, y, epochs=epochs, **settings)
        state = replay(way, with_dropout(), x, y, shorter.steps)
        assert same(state, shorter.model.state_dict())
        assert state["1.num_batches_tracked"] == shorter.steps


def test_walk_yields_the_steps_in_order():
    x, y = data()
    way = fit(plain(), x, y, batch=5, epochs=3, record=4, momentum=0.5).trajectory
    states = list(walk(way, plain(), x, y))
    assert len(states) == way.steps + 1 == 10
    assert all(same(s, replay(way, plain(), x, y, i)) for i, s in enumerate(states))
    some = list(walk(way, plain(), x, y, 3, 6))
    assert all(same(a, b) for a, b in zip(some, states[3:7], strict=True))


def test_each_step_is_gradient_descent_on_its_batch():
    """What a path kernel needs: weights, rows and rate of each step give the next weights."""
    x, y = data()
    way = fit(plain(), x, y, batch=5, epochs=2, record=3, schedule=cosine(6)).trajectory
    states = list(walk(way, plain(), x, y))
    for step in range(way.steps):
        rows = way.rows(step)
        weights = {name: t.clone().requires_grad_() for name, t in states[step].items()}
        prediction = torch.func.functional_call(plain(), weights, x[rows])
        gradients = torch.autograd.grad((prediction - y[rows]).square().mean(), weights.values())
        for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
            moved = weight - way.rates[step].item() * gradient
            torch.testing.assert_close(states[step + 1][name], moved.detach())


def test_the_world_and_the_model_stay_as_they_are_between_steps():
    x, y = data()
    way = fit(with_dropout(), x, y, batch=5, epochs=2, record=100).trajectory
    model = with_dropout()
    before = torch.get_rng_state()
    for _ in walk(way, model, x, y):
        assert torch.equal(before, torch.get_rng_state())
        assert not model.training
    assert same(model.state_dict(), with_dropout().state_dict())
    assert all(p.grad is None for p in model.parameters())


def test_a_model_frozen_meanwhile_replays_as_it_was_trained():
    x, y = data()
    model = plain()
    model[0].bias.requires_grad_(False)
    run = fit(model, x, y, batch=5, epochs=2, record=100, momentum=0.9)
    assert run.trajectory.trainable == ("0.weight", "2.weight", "2.bias")
    replayed = replay(run.trajectory, plain().requires_grad_(False), x, y, run.steps - 1)
    full = fit(model := plain(), x, y, batch=5, epochs=2, record=100, momentum=0.9)
    assert torch.equal(replayed["0.bias"], model[0].bias) is False
    assert torch.equal(replayed["0.bias"], plain()[0].bias)
    end = replay(run.trajectory, plain().requires_grad_(False), x, y, run.steps)
    assert same(end, run.model.state_dict())
    assert full.trajectory.trainable == ("0.weight", "0.bias", "2.weight", "2.bias")


def huber(prediction, target):
    return nn.functional.huber_loss(prediction, target)


@pytest.mark.parametrize("kind", [torch.optim.ASGD, torch.optim.RMSprop, torch.optim.NAdam])
def test_functions_of_ones_own_are_passed_again(kind):
    x, y = (t.double() for t in data())
    model = functools.partial(mlp, 3, 6, 2, dtype=torch.float64)
    make = functools.partial(kind, lr=0.03)
    own = {"loss": huber, "optimizer": make, "penalties": [(0.1, l2_norm)]}
    long = fit(model(), x, y, batch=5, epochs=4, record=5, **own)
    short = fit(model(), x, y, batch=5, epochs=3, **own)
    assert long.settings.optimizer == f"own:{kind.__name__}(lr=0.03)"
    assert same(replay(long.trajectory, model(), x, y, 9, **own), short.model.state_dict())
    text = r"needs the penalties of the training, \[\(0\.1, 'l2_norm'\)\], found \[\]: pass pen"
    with pytest.raises(ValueError, match=text):
        replay(long.trajectory, model(), x, y, 9, **(own | {"penalties": ()}))
    with pytest.raises(ValueError, match=r"found \[\(0\.2, 'l2_norm'\)\]"):
        replay(long.trajectory, model(), x, y, 9, **(own | {"penalties": [(0.2, l2_norm)]}))
    with pytest.raises(
        ValueError, match=r"the loss of .*'own:huber', found none: pass loss=\.\.\."
    ):
        replay(long.trajectory, model(), x, y, 9, **(own | {"loss": None}))
    with pytest.raises(ValueError, match=r"the optimizer of .*, found none: pass optimizer=\.\.\."):
        replay(long.trajectory, model(), x, y, 9, **(own | {"optimizer": None}))


def test_what_does_not_belong_to_the_training_is_refused():
    x, y = data()
    way = fit(plain(), x, y, epochs=3, record=2).trajectory
    with pytest.raises(ValueError, match=r"the very data of the training, .*: pass the x and y"):
        replay(way, plain(), x + 1e-6, y, 2)
    with pytest.raises(ValueError, match=r"the very data of the training"):
        replay(way, plain(), x, y.double(), 2)
    with pytest.raises(ValueError, match=r"'mse', found a function: leave loss out"):
        replay(way, plain(), x, y, 2, loss=huber)
    with pytest.raises(ValueError, match=r"'sgd', found a function: leave optimizer out"):
        replay(way, plain(), x, y, 2, optimizer=torch.optim.Adam)
    text = r"a model of the architecture that was trained, found another: size mismatch for 0\.weig"
    with pytest.raises(ValueError, match=text):
        replay(way, mlp(3, 7, 2), x, y, 2)
    with pytest.raises(ValueError, match=r"found another: Unexpected key\(s\) in state_dict: \"2"):
        replay(way, mlp(3, 6), x, y, 2)
    with pytest.raises(ValueError, match=r"step must lie between 0 and 3, found 4: choose another"):
        replay(way, plain(), x, y, 4)
    with pytest.raises(ValueError, match=r"step must lie between 0 and 3, found 9"):
        walk(way, plain(), x, y, 1, 9)
    with pytest.raises(ValueError, match=r"stop must be at least 2, found 1"):
        walk(way, plain(), x, y, 2, 1)


def test_recording_changes_nothing_and_takes_what_it_says():
    x, y = data()
    settings = {"batch": 5, "epochs": 4, "momentum": 0.9}
    alone = fit(plain(), x, y, **settings)
    run = fit(plain(), x, y, record=5, **settings)
    assert same(run.model.state_dict(), alone.model.state_dict())
    way = run.trajectory
    assert way.checkpoints.tolist() == [0, 5, 10, 12]
    assert way.states["0.weight"].shape == (4, 6, 3)
    assert way.memory["0.momentum_buffer"].shape == (3, 6, 3)
    assert way.order.shape == (4, N)
    assert way.order.sort().values.tolist() == [list(range(N))] * 4
    assert way.order.dtype == torch.uint8
    assert way.rates.tolist() == [0.01] * 12
    assert not fit(plain(), x, y, record=1, epochs=2).trajectory.memory


@pytest.mark.parametrize(
    ("n", "dtype"),
    [
        (256, torch.uint8),
        (257, torch.int16),
        (2**15, torch.int16),
        (2**15 + 1, torch.int32),
        (2**31, torch.int32),
        (2**31 + 1, torch.int64),
    ],
)
def test_indices_take_little_room(n, dtype):
    assert _smallest(n) == dtype
    assert torch.iinfo(dtype).max >= n - 1


def test_what_cannot_be_recorded_is_refused():
    x, y = data()

    def two_groups(parameters):
        first, *rest = parameters
        return torch.optim.SGD([{"params": [first]}, {"params": rest}], lr=0.1)

    class Counting(torch.optim.SGD):
        def step(self):
            super().step()
            self.param_groups[0]["count"] = 1

    class Remembering(torch.optim.SGD):
        def step(self):
            super().step()
            self.state[self.param_groups[0]["params"][0]]["count"] = 1

    with pytest.raises(ValueError, match=r"one learning rate per step, .* 2 parameter groups: use"):
        fit(plain(), x, y, optimizer=two_groups, record=1)
    text = r"found Counting keeping more in its parameter groups: train with record=None"
    with pytest.raises(TypeError, match=text):
        fit(plain(), x, y, optimizer=Counting, record=1)
    with pytest.raises(TypeError, match=r"holds tensors only, found '0\.count' to be a int: train"):
        fit(plain(), x, y, optimizer=Remembering, record=1)
    fit(plain(), x, y, optimizer=Remembering, epochs=1)
