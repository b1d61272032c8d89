"""Stacks against the plain loop, and the bits of a member in any company."""

import copy
import sys

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape._core import checks
from inscape.ensembles import even_sizes, fit_many, loop, program, stacks
from inscape.ensembles.stack import Stack
from inscape.models import mlp
from inscape.smoothness.gradient_norm import gradient_norm_penalty
from inscape.smoothness.path_length import path_length_penalty
from inscape.training import decay, fit, l2_norm

N, D = 23, 3


def data(members=5, c=2, dtype=torch.float64, shape=(D,)):
    rng = torch.Generator().manual_seed(1)
    xs = [torch.randn(N, *shape, generator=rng, dtype=dtype) for _ in range(members)]
    return xs, [torch.randn(N, c, generator=rng, dtype=dtype) for _ in range(members)]


def network(seed, dtype=torch.float64):
    return mlp(D, 8, 2, activation="tanh", seed=seed, dtype=dtype)


def drawn(model, seed):
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(
                torch.randn(p.shape, generator=rng, dtype=p.dtype) / max(p[0].numel(), 2) ** 0.5
            )
    return model


def conv_net(seed, dtype=torch.float32):
    layers = [nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 2), nn.GELU()]
    return drawn(nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 2)).to(dtype), seed)


def sigmoid_net(seed):
    return drawn(nn.Sequential(nn.Linear(D, 33), nn.Sigmoid(), nn.Linear(33, 2)), seed)


def normed(seed):
    layers = [nn.Linear(D, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2)]
    return drawn(nn.Sequential(*layers).double(), seed)


class Tied(nn.Module):
    """One matrix used twice, one that no output depends on, one that is frozen."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(D, D, dtype=torch.float64)
        self.again = self.first
        self.idle = nn.Linear(2, 2, dtype=torch.float64)
        self.still = nn.Linear(D, D, dtype=torch.float64).requires_grad_(False)
        self.last = nn.Linear(D, 2, dtype=torch.float64)
        self.shift = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, x):
        return self.last(self.still(self.again(self.first(x).tanh()))) + self.shift


def tied(seed):
    model, rng = Tied(), torch.Generator().manual_seed(seed)
    for p in model.parameters():
        nn.init.uniform_(p, -0.5, 0.5, generator=rng)
    return model


def huber(prediction, target):
    return nn.functional.huber_loss(prediction, target)


OPTIONS = {
    "sgd": {"lr": 0.1},
    "momentum": {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.02, "batch": 5},
    "nesterov": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "schedule": decay(0.8, every=3)},
    "adam": {"optimizer": "adam", "betas": (0.8, 0.99), "weight_decay": 0.02, "batch": 8},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1, "schedule": decay(0.9, every=7)},
    "own loss": {"loss": huber, "batch": 7, "lr": 0.1},
    "evaluated": {"stop_on": "evaluated", "batch": 30, "lr": 0.1},
    "penalty": {"penalties": [(0.1, l2_norm)], "batch": 6, "lr": 0.05},
}


def agree(make, xs, ys, *, members, **options):
    """Train in stacks and one by one; compare everything that is told."""
    ours, theirs = ([make(seed) for seed in range(members)] for _ in range(2))
    seeds = [7 * k + 1 for k in range(members)]
    told = list(fit_many(ours, xs, ys, seeds=seeds, backend="stacks", **options))
    assert sorted(m.index for m in told) == list(range(members))
    for member in told:
        k = member.index
        run = fit(theirs[k], xs[k], ys[k], seed=seeds[k], **options)
        assert member.model is ours[k]
        assert (member.epochs, member.steps, member.stopped) == (run.epochs, run.steps, run.stopped)
        assert_close(member.loss, run.loss)
        for name, tensor in run.model.state_dict().items():
            assert_close(member.model.state_dict()[name], tensor, msg=lambda m, n=name: f"{n}: {m}")
    return told


@pytest.mark.parametrize("name", OPTIONS)
def test_a_member_is_what_the_loop_makes_of_it(name, monkeypatch):
    monkeypatch.setattr(program, "WIDTHS", (4, 2))  # so that some wait, and the stack shrinks
    monkeypatch.setattr(even_sizes, "TURN", 8)  # and so that tanh is let through
    xs, ys = data(7)
    options = OPTIONS[name] | {"epochs": 9}
    free = [fit(network(k), xs[k], ys[k], seed=7 * k + 1, **options).losses for k in range(7)]
    stop = torch.stack(free)[:, 3:6].median().item() + 1e-9
    told = agree(network, xs, ys, members=7, stop_loss=stop, **options)
    assert len({member.epochs for member in told}) > 2
    assert {member.stopped for member in told} == {"loss", "epochs"}


@pytest.mark.parametrize("make", [normed, tied])
@pytest.mark.parametrize("stop_on", ["running", "evaluated"])
def test_batch_norm_and_shared_or_idle_weights(make, stop_on):
    xs, ys = data(3)
    options = {"momentum": 0.9, "weight_decay": 0.1, "lr": 0.02}
    agree(make, xs, ys, members=3, batch=9, epochs=3, stop_on=stop_on, **options)


def test_conv_nets_and_class_numbers():
    xs, _ = data(3, shape=(1, 8, 8))
    ys = [(x.mean((1, 2, 3)) > 0).long() for x in xs]
    agree(
        lambda seed: conv_net(seed, torch.float64),
        xs, ys, members=3, batch=9, epochs=3, loss="cross_entropy", optimizer="adam",
    )  # fmt: skip


@pytest.mark.parametrize("penalty", [gradient_norm_penalty, path_length_penalty])
def test_penalties_that_differentiate_by_the_input(penalty, monkeypatch):
    # Reading a number while operations are written down is refused; see checks.all_finite.
    monkeypatch.setattr(checks, "all_finite", lambda tensor: True)
    xs, ys = data(2)
    agree(network, xs, ys, members=2, batch=8, epochs=2, penalties=[(0.1, penalty)])


def test_functions_of_one_name_are_told_apart():
    xs, ys = data(1)
    losses = [lambda p, t: (p - t).square().mean(), lambda p, t: (p - t).abs().mean()]
    runs = [fit_many([network(0)], xs, ys, loss=f, epochs=2, backend="stacks") for f in losses]
    assert runs[0].options != runs[1].options
    for run, loss in zip(runs, losses, strict=True):
        (member,) = run
        assert_close(member.loss, fit(network(0), xs[0], ys[0], loss=loss, epochs=2).loss)


KINDS = {
    "relu": (lambda seed: mlp(D, 9, 7, 2, seed=seed), (D,)),
    "relu, one output after many": (lambda seed: mlp(50, 33, 2, seed=seed), (50,)),
    "gelu": (lambda seed: mlp(D, 33, 31, 2, activation="gelu", seed=seed), (D,)),
    "sigmoid": (sigmoid_net, (D,)),
    "conv": (conv_net, (1, 8, 8)),
}


def weights(model):
    return torch.cat([t.flatten() for t in model.state_dict().values()])


@pytest.fixture
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def written_once(monkeypatch):
    """Write down and try the operations of a kind of network once, not for each training."""
    programs, write = {}, stacks._traced

    def written(model, x, y, options):
        kind = stacks.kind_of(model, x, y)
        if kind not in programs:
            programs[kind] = write(model, x, y, options)
        return programs[kind]

    monkeypatch.setattr(stacks, "_traced", written)


@pytest.mark.parametrize(
    ("threads", "dtype"),
    [
        (1, torch.float32),
        pytest.param(1, torch.float64, marks=pytest.mark.slow),
        pytest.param(2, torch.float32, marks=pytest.mark.slow),
        pytest.param(2, torch.float64, marks=pytest.mark.slow),
    ],
    indirect=["threads"],
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("written_once")
def test_bits_do_not_depend_on_the_company(kind, dtype, threads):
    """Alone, in stacks of 2 to 33, first or last, entering late, leaving early: the same bits."""
    make, shape = KINDS[kind]
    xs, ys = data(34, dtype=dtype, shape=shape)
    options = {"batch": 12, "momentum": 0.9, "lr": 0.05, "epochs": 3, "backend": "stacks"}

    def trained(indices, **more):
        models = [make(k).to(dtype) for k in indices]
        own = [xs[k] for k in indices], [ys[k] for k in indices]
        told = list(fit_many(models, *own, seeds=list(indices), **options, **more))
        return {indices[m.index]: (weights(m.model), m.loss, m.epochs) for m in told}

    losses = sorted(loss for _, loss, _ in trained(range(34)).values())
    everybody = trained(range(33), stop_loss=losses[17])
    assert {epochs for _, _, epochs in everybody.values()} >= {2, 3}
    for company in ([5], [32, 5], [3, 2, 1, 0, 5], [*range(6, 21), 5]):
        found = trained(company, stop_loss=losses[17])
        for k in company:
            assert torch.equal(found[k][0], everybody[k][0]), (company, k)
            assert found[k][1:] == everybody[k][1:]


def test_shared_data_give_the_bits_of_copies():
    xs, ys = data(1)
    for batch in (None, 5):
        results = []
        for x, y in [(xs[0], ys[0]), ([xs[0].clone() for _ in range(3)], [ys[0].clone()] * 3)]:
            models = [network(k) for k in range(3)]
            list(fit_many(models, x, y, batch=batch, epochs=3, backend="stacks"))
            results.append([weights(model) for model in models])
        assert all(map(torch.equal, *results))


def test_a_width_is_refused_whose_slots_differ(monkeypatch):
    """A kernel that rounds the last slot, or a narrow stack, in another way is found out."""
    xs, ys = data(3)
    plain = program.Program.update

    def uneven(self, width, size, *, at=slice(-1, None)):
        def update(*state):
            gradients, buffers, values = plain(self, width, size)(*state)
            gradients[0][at] *= 1 + 2**-50
            return gradients, buffers, values

        return update

    monkeypatch.setattr(program.Program, "update", uneven)
    monkeypatch.setattr(program.Program, "uneven", lambda self, width: [])
    text = r"cannot train member 0: on this .* rounded differently in other slots of a stack; u"
    with pytest.raises(ValueError, match=text):
        fit_many([network(k) for k in range(3)], xs[:3], ys[:3], backend="stacks")
    module = sys.modules["inscape.ensembles.fit_many"]  # its name is that of the function
    monkeypatch.setattr(module, "BACKENDS", {"stacks": stacks, "loop": loop})
    warned = (
        r"3 networks are trained one by one \(back end 'loop', not 'stacks'\).*: on this machine"
    )
    with pytest.warns(UserWarning, match=warned) as warnings:
        run = fit_many([network(0), network(1), mlp(D, 9, 2).double()], xs, ys, epochs=1)
    assert len(warnings) == 1
    assert {choice.backend for choice in run.choices} == {"loop"}
    assert len(list(run)) == 3

    def narrow(self, width, size):
        return uneven(self, width, size, at=slice(None)) if width < 32 else plain(self, width, size)

    monkeypatch.setattr(program.Program, "update", narrow)
    widths = []
    make = Stack.epoch
    monkeypatch.setattr(Stack, "epoch", lambda s, b: (widths.append(len(s.members)), make(s, b)))
    list(fit_many([network(k) for k in range(3)], xs, ys, epochs=2, backend="stacks"))
    assert widths == [32, 32]
    monkeypatch.setattr(program.Program, "admits", lambda self, width: True)
    list(fit_many([network(k) for k in range(3)], xs, ys, epochs=2, backend="stacks"))
    assert widths == [32, 32, 8, 8]


def sigmoids(units):
    return drawn(nn.Sequential(nn.Linear(D, units), nn.Sigmoid(), nn.Linear(units, 2)), 0)


def test_operations_that_round_by_place_need_whole_registers():
    """An exponential in the rest of a vectorised loop may differ, but too seldom for a trial."""
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(13, D, generator=rng), torch.randn(13, 2, generator=rng)

    def widths(model):
        run = fit_many([model], x, y, backend="stacks")
        (known,) = stacks._PROGRAMS[run.options].values()
        return [width for width in known.widths if not known.uneven(width)]

    assert widths(sigmoids(33)) == [32]
    assert widths(sigmoids(32)) == [32, 8, 2]
    assert widths(mlp(D, 33, 2)) == [32, 8, 2]  # ReLU is exact


def test_a_width_is_named_that_may_round_by_place(monkeypatch):
    monkeypatch.setattr(program, "WIDTHS", (2,))
    xs, ys = data(1, dtype=torch.float32)
    text = r"slots of a stack \(by sigmoid, sigmoid_backward\); use backend='auto'"
    with pytest.raises(ValueError, match=text):
        fit_many([sigmoids(33)], xs, ys, backend="stacks")


def reads(prediction, target):
    return (prediction - target).square().mean() * (2 if prediction.sum().item() > 0 else 1)


def hooked(seed):
    model = network(seed)
    model[0].register_forward_hook(lambda *_: None)
    return model


@pytest.mark.parametrize(
    ("make", "options", "reason"),
    [
        (lambda s: nn.Sequential(nn.Dropout(), network(s)), {}, r"RuntimeError: vmap: called rand"),
        (
            network,
            {"loss": reads},
            r"cannot be traced as tensor operations .*\(RuntimeError: It a",
        ),
        (hooked, {}, r"a module has hooks, which a stack would not call"),
        (network, {"optimizer": torch.optim.Adagrad}, r"optimizer is a function of your own, and"),
    ],
)
def test_what_a_stack_refuses_the_loop_trains(make, options, reason):
    xs, ys = data(2)
    models = [make(k) for k in range(2)]
    rng = torch.get_rng_state()
    with pytest.raises(ValueError, match=reason):
        fit_many(models, xs, ys, backend="stacks", **options)
    assert torch.equal(rng, torch.get_rng_state())
    run = fit_many(copy.deepcopy(models), xs, ys, epochs=2, **options)
    assert run.choices[0].backend == "loop"
    assert reason[:9] in run.choices[0].refused["stacks"] or "\\" in reason
    assert len(list(run)) == 2


def test_several_kinds_need_several_stacks():
    xs, ys = data(2)
    run = fit_many([network(0), network(1)], xs, ys)
    options = run.options
    models = [network(0), mlp(D, 4, 2, dtype=torch.float64)]
    assert "found 2 kinds" in stacks.reason_not(models, xs, ys, options)
    with pytest.raises(ValueError, match=r"cannot be trained in a stack: the update cannot be"):
        next(stacks.train([nn.Linear(9, 2)], xs[:1], ys[:1], options, [0]))
