"""The path kernel: sums that close are not enough, each sample's part is checked by itself."""

import copy
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels import path_kernel
from inscape.kernels.path.linear_chain import LinearChain
from inscape.kernels.path.training_gradients import TrainingProblem
from inscape.training import fit
from inscape.training.losses import loss_function
from inscape.training.replay import walk

X, Y, Q = points(20, 2), points(20, 2, seed=4), points(5, 2, seed=9)

WAYS = {
    "descent": {},
    "mini-batches": {"batch": 6, "weight_decay": 0.1},
    "momentum": {"batch": 6, "momentum": 0.9},
    "nesterov": {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    "adam": {"optimizer": "adam", "batch": 7, "weight_decay": 0.1},
    "adamw": {"optimizer": "adamw", "batch": 7, "weight_decay": 0.1},
}


def trained(
    act=nn.GELU, *, x=X, y=Y, wrap=lambda net: net, epochs=4, lr=0.02, record=5, **settings
):
    model = wrap(dense(2, 6, 5, 2, act=act))
    run = fit(model, x, y, lr=lr, epochs=epochs, record=record, progress=False, **settings)
    return model, run.trajectory


class Wrapped(nn.Module):
    """The same function, but no chain that could be known as one."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + 0


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def jacobians(model, x):
    """Return the gradients of all outputs at some points, by automatic differentiation."""
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def outputs(weights):
        return torch.func.functional_call(model, weights, (x,))

    found = torch.func.jacrev(outputs)(weights)
    return torch.cat([j.flatten(2) for j in found.values()], dim=2)


def gradients(model, x, y, size):
    """Return the part of each sample in the gradient of the mean squared error of a batch."""
    misses = (model(x) - y).detach() * 2 / (size * y.shape[1])
    return torch.einsum("nc,ncp->np", misses, jacobians(model, x))


def forward_split(model, trajectory, *, places=8):
    """Split predictions forwards, a moment for each sample, many nodes: query, sample, c, p."""
    settings = trajectory.settings
    beta1, beta2 = settings.betas
    states = list(walk(trajectory, model, X, Y))
    body = copy.deepcopy(model)
    n, p = len(X), len(flat(model))
    moments, squares = torch.zeros(n + 1, p).double(), torch.zeros(p).double()
    added = torch.zeros(len(Q), n + 1, 2, p).double()
    at, share = (torch.from_numpy(a) for a in np.polynomial.legendre.leggauss(places))
    for step, (before, after) in enumerate(itertools.pairwise(states)):
        body.load_state_dict(before)
        rows = torch.arange(n)[trajectory.rows(step)]
        own = torch.zeros(n + 1, p).double()
        own[rows] = gradients(body, X[rows], Y[rows], len(rows))
        start, rate = flat(body), float(trajectory.rates[step])
        moved = torch.zeros(n + 1, p).double()
        if settings.optimizer == "adamw":
            moved[n] = -rate * settings.weight_decay * start
        else:
            own[n] = settings.weight_decay * start
        if settings.optimizer == "sgd":
            moments = settings.momentum * moments + own
            use = own + settings.momentum * moments if settings.nesterov else moments
            moved += -rate * use
        else:
            moments = beta1 * moments + (1 - beta1) * own
            squares = beta2 * squares + (1 - beta2) * own.sum(0).square()
            root = (squares / (1 - beta2 ** (step + 1))).sqrt() + 1e-8
            moved += -rate / (1 - beta1 ** (step + 1)) * moments / root
        body.load_state_dict(after)
        end = flat(body)
        assert_close(start + moved.sum(0), end)  # the parts make up the step
        for t, weight in zip((at + 1) / 2, share / 2, strict=True):
            nn.utils.vector_to_parameters(start + t * (end - start), body.parameters())
            added += weight * jacobians(body, Q)[:, None] * moved[:, None]
    return added


def whole(found):
    claimed = found.initial + found.samples.sum(1) + found.decay + found.penalty
    return claimed + found.rounding + found.residual


@pytest.mark.parametrize("way", WAYS)
def test_sum_closes_to_rounding(way):
    model, trajectory = trained(**WAYS[way])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    assert_close(found.final, model(Q).detach())
    assert found.unattributed < 1e-12
    assert_close(whole(found), found.final)


@pytest.mark.parametrize("way", ["nesterov", "adamw"])
def test_a_chain_and_any_module_tell_the_same(way):
    x, y = X[:9], Y[:9]
    pairs = [trained(x=x, y=y, wrap=w, epochs=2, **WAYS[way]) for w in (lambda net: net, Wrapped)]
    one, two = (path_kernel(m, x, y, trajectory=t, queries=Q[:2], by_layer=True) for m, t in pairs)
    assert_close(one.layers, two.layers)
    assert_close(one.samples, two.samples)
    assert two.unattributed < 1e-12
    assert two.tensors == tuple(f"inner.{name}" for name in one.tensors)


@pytest.mark.parametrize("way", ["mini-batches", "momentum", "nesterov", "adam", "adamw"])
def test_parts_equal_moments_carried_for_each_sample(way):
    model, trajectory = trained(epochs=2, **WAYS[way])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, by_layer=True)
    expected = forward_split(model, trajectory)
    assert_close(found.samples, expected[:, :-1].sum(3))
    assert_close(found.decay, expected[:, -1].sum(2))
    sizes = [p.numel() for p in model.parameters()]
    assert found.tensors == tuple(name for name, _ in model.named_parameters())
    layers = [part.sum(3) for part in expected[:, :-1].split(sizes, dim=3)]
    assert_close(found.layers, torch.stack(layers, dim=2))


def test_layers_add_up_to_the_samples():
    model, trajectory = trained(**WAYS["momentum"])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, by_layer=True)
    plain = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    assert_close(found.layers.sum(2), plain.samples)
    assert plain.layers is None
    assert plain.tensors == ()


@pytest.mark.parametrize("way", ["mini-batches", "adam"])
def test_relu_steps_are_cut_where_units_switch(way):
    model, trajectory = trained(nn.ReLU, lr=0.05, **WAYS[way])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    assert found.unattributed < 1e-12
    assert found.nodes <= 4  # two are exact between kinks of three maps


@pytest.mark.parametrize("act", [nn.ReLU, nn.LeakyReLU])
def test_cuts_are_where_units_switch(act):
    model, other = dense(2, 6, 5, 2, act=act), dense(2, 6, 5, 2, act=act, seed=3)
    chain = LinearChain.of(model, [name for name, _ in model.named_parameters()])
    start, end = flat(model), flat(other)
    edges = chain.breakpoints(start, end - start, Q)
    assert bool((edges.diff(dim=1) >= 0).all())
    units = [[], []]
    at = torch.linspace(0, 1, 2001).double()
    for t in at:
        nn.utils.vector_to_parameters(start + t * (end - start), other.parameters())
        first = other[0](Q)
        units[0].append(torch.cat([first, other[2](other[1](first))], dim=1) > 0)
    signs = torch.stack(units[0])
    for q, row in enumerate(edges):
        switches = (signs[1:, q] != signs[:-1, q]).sum(1)
        inside = row[(row > 0) & (row < 1)]
        expected = at[1:].repeat_interleave(switches)
        assert_close(inside, expected, rtol=0, atol=1 / 2000)


def test_checkpoints_side_by_side_spare_the_replay():
    for way in ("momentum", "adamw"):
        one, two = (trained(record=every, **WAYS[way]) for every in (1, 5))
        found = [path_kernel(m, X, Y, trajectory=t, queries=Q).samples for m, t in (one, two)]
        assert torch.equal(*found)


def test_linear_regression_is_exact_at_first_order():
    model = nn.Linear(2, 2).double()
    run = fit(model, X, Y, lr=0.1, epochs=5, batch=5, record=4, progress=False)
    found = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q, mode="first-order")
    assert found.unattributed < 1e-13
    exact = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q)
    assert_close(found.samples, exact.samples)


def linear_loss(prediction, target):
    return (prediction * target).sum() / 20


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}, {"batch": 5, "momentum": 0.5}])
def test_leaving_a_sample_out_takes_its_part_away(settings):
    """With a loss that is linear in the output of a linear model nothing else changes."""
    ends = []
    for target in (Y, torch.cat([Y[:7], torch.zeros_like(Y[:1]), Y[8:]])):
        torch.manual_seed(0)
        model = nn.Linear(2, 2).double()
        run = fit(
            model, X, target, loss=linear_loss, epochs=6, record=3, progress=False, **settings
        )
        ends.append((model, run.trajectory, target))
    found = path_kernel(ends[0][0], X, Y, trajectory=ends[0][1], queries=Q, loss=linear_loss)
    without = ends[0][0](Q) - ends[1][0](Q)
    assert_close(found.samples[:, 7], without.detach())


def test_halving_the_rate_halves_the_residual_of_first_order():
    residuals = []
    for k in (1, 2, 4):
        model, trajectory = trained(epochs=5 * k, lr=0.01 / k)
        found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, mode="first-order")
        residuals.append(found.unattributed)
    for one, two in itertools.pairwise(residuals):
        assert 1.8 < one / two < 2.2


def test_order_of_samples_and_queries_does_not_matter():
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    model, trajectory = trained()
    other, moved = trained(x=X[order], y=Y[order])
    one = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    two = path_kernel(other, X[order], Y[order], trajectory=moved, queries=Q.flip(0))
    assert_close(one.samples[:, order], two.samples.flip(0))


def test_order_of_hidden_units_does_not_matter():
    order = [3, 1, 5, 0, 4, 2]
    other = dense(2, 6, 5, 2, act=nn.GELU)
    with torch.no_grad():
        other[0].weight.copy_(other[0].weight[order].clone())
        other[0].bias.copy_(other[0].bias[order].clone())
        other[2].weight.copy_(other[2].weight[:, order].clone())
    run = fit(other, X, Y, lr=0.02, epochs=4, record=5, progress=False, **WAYS["adam"])
    model, trajectory = trained(**WAYS["adam"])
    one = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, by_layer=True)
    two = path_kernel(other, X, Y, trajectory=run.trajectory, queries=Q, by_layer=True)
    assert_close(one.layers, two.layers)


def test_decay_can_go_to_those_who_made_the_weights():
    model, trajectory = trained(**WAYS["adamw"])
    own = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    shared = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, decay="samples")
    assert shared.unattributed < 1e-12
    assert not torch.allclose(own.samples, shared.samples)
    whole = [r.samples.sum(1) + r.decay for r in (own, shared)]
    assert_close(*whole)


def test_decay_of_a_linear_map_attributed_in_closed_form():
    """One weight, gradient c at each step and decay a: w_k = (1-ra)^k w_0 - r c (1 + ...)."""
    model = nn.Linear(1, 1, bias=False).double()
    x, y = torch.ones(1, 1).double(), torch.full((1, 1), 3.0).double()
    start, rate, decay, steps = model.weight.item(), 0.1, 0.5, 4
    run = fit(
        model, x, y, loss=linear_loss, lr=rate, weight_decay=decay, epochs=steps, record=2,
        progress=False,
    )  # fmt: skip
    found = path_kernel(
        model, x, y, trajectory=run.trajectory, queries=x, loss=linear_loss, decay="samples"
    )
    left = (1 - rate * decay) ** steps
    assert found.decay.item() == pytest.approx(start * (left - 1))
    assert found.samples.item() == pytest.approx(-rate * 3 / 20 * (1 - left) / (rate * decay))


def test_penalties_have_their_own_part():
    def ridge(model, x):
        return sum(p.square().sum() for p in model.parameters())

    model, trajectory = trained(penalties=[(0.1, ridge)])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, penalties=[(0.1, ridge)])
    assert found.unattributed < 1e-12
    assert float(found.penalty.abs().min()) > 0


def test_queries_in_several_passes_give_the_same():
    model, trajectory = trained(**WAYS["adam"])
    whole = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    with pytest.raises(
        BudgetError, match=r"steps between two checkpoints and .* raise memory"
    ) as e:
        path_kernel(model, X, Y, trajectory=trajectory, queries=Q, memory=10)
    least = int("".join(str(e.value).split("at least ")[1].split(", or")[0].split(",")))
    parts = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, memory=least)
    assert (whole.passes, parts.passes) == (1, 5)
    assert_close(parts.samples, whole.samples)
    row = 8 * 2 * len(flat(model))
    assert whole.bytes - parts.bytes == 4 * row
    with pytest.raises(BudgetError, match=f"at least {least:,}"):
        path_kernel(model, X, Y, trajectory=trajectory, queries=Q, memory=least - 1)


def test_plain_descent_carries_nothing_for_queries():
    model, trajectory = trained(record=1)
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    assert found.bytes == 2 * 8 * len(flat(model))  # the ends of a step


def test_steps_and_classes_add_up_to_the_samples():
    model, trajectory = trained(**WAYS["momentum"])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, by_step=True)
    assert found.steps.shape == (5, trajectory.steps, 2)
    assert_close(found.steps.sum(1), found.samples.sum(1))
    classes = found.by_class(torch.arange(20) % 3)
    assert_close(classes[:, 1], found.samples[:, 1::3].sum(1))


def test_cross_entropy_and_float32():
    labels = torch.arange(20) % 2
    model = dense(2, 8, 2, act=nn.ReLU).float()
    run = fit(
        model, X.float(), labels, loss="cross_entropy", optimizer="adam", batch=5, epochs=8,
        record=9, progress=False,
    )  # fmt: skip
    found = path_kernel(model, X.float(), labels, trajectory=run.trajectory, queries=Q.float())
    assert found.relative_residual < 1e-12
    assert 1e-9 < found.relative_rounding < 1e-5  # the training itself has seven digits
    assert_close(whole(found), found.final)
    assert list(found.non_sample_contributions(0, 0)) == ["rounding in training", "residual"]
    assert sum(found.non_sample_contributions(0, 0).values()) == pytest.approx(
        float((found.final - found.initial - found.samples.sum(1))[0, 0]), abs=1e-15
    )


@pytest.mark.parametrize("wrap", [lambda net: net, Wrapped])
def test_gradients_are_those_that_a_training_in_float32_took(wrap):
    """Of a sample that is all but fitted, float32 keeps few digits: those are what was learned."""
    model = wrap(nn.Sequential(*dense(2, 8), nn.GELU(), nn.Linear(8, 2)).float())
    x, labels = X.float(), torch.zeros(20, dtype=torch.long)
    with torch.no_grad():
        list(model.parameters())[-1].copy_(torch.tensor([7.0, -7.0]))
    criterion = loss_function("cross_entropy")
    names = [name for name, _ in model.named_parameters()]
    task = TrainingProblem.of(model, x, labels, criterion, (), names)
    found = task.gradients(slice(None), flat(model).double()).dense(torch.arange(20)).sum(0)

    def autograd(body, points):
        loss = criterion(body(points), labels)
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(body.parameters()))])

    taken, true = autograd(model, x).double(), autograd(copy.deepcopy(model).double(), x.double())
    assert (found - taken).norm() < 1e-5 * taken.norm()
    assert (true - taken).norm() > 1e-3 * taken.norm()


def test_duplicate_queries_and_one_sample():
    model, trajectory = trained(x=X[:1], y=Y[:1])
    found = path_kernel(model, X[:1], Y[:1], trajectory=trajectory, queries=Q[[0, 0]])
    assert torch.equal(found.samples[0], found.samples[1])
    assert math.isclose(found.summary().value, 1.0)


def test_what_cannot_be_split_is_refused():
    model, trajectory = trained()
    assert isinstance(path_kernel(model, X, Y), NotApplicable)
    with pytest.raises(ValueError, match="needs the very data of the training"):
        path_kernel(model, X + 1, Y, trajectory=trajectory)
    normed = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    run = fit(normed, X, Y, epochs=2, record=1, progress=False)
    with pytest.raises(UnsupportedModelError, match="each sample acts for itself"):
        path_kernel(normed, X, Y, trajectory=run.trajectory)
    own = fit(
        dense(2, 3, 2), X, Y, optimizer=lambda p: torch.optim.Adagrad(p), epochs=2, record=1,
        progress=False,
    )  # fmt: skip
    with pytest.raises(UnsupportedModelError, match="supports sgd, adam and adamw"):
        path_kernel(dense(2, 3, 2), X, Y, trajectory=own.trajectory)


def test_missing_steps_are_named():
    model, trajectory = trained(batch=6)
    states = {name: rows[1:] for name, rows in trajectory.states.items()}
    late = replace(trajectory, states=states, checkpoints=trajectory.checkpoints[1:])
    with pytest.raises(
        ValueError, match="all 16 steps of the training, found steps 0 to 4 missing"
    ):
        path_kernel(model, X, Y, trajectory=late)
    states = {name: rows[:-1] for name, rows in trajectory.states.items()}
    short = replace(trajectory, states=states, checkpoints=trajectory.checkpoints[:-1])
    with pytest.raises(ValueError, match=r"15 to 15 missing \(the last checkpoint is at step 15"):
        path_kernel(model, X, Y, trajectory=short)
    with pytest.raises(ValueError, match=r"12 to 15 missing \(batches are known of 12 steps"):
        path_kernel(model, X, Y, trajectory=replace(trajectory, order=trajectory.order[:-1]))
