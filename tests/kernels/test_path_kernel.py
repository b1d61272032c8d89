"""The path kernel: sums that close are not enough, each sample's part is checked by itself."""

import copy
import itertools
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape._core.errors import BudgetError, UnsupportedModelError
from inscape.kernels import path_kernel
from inscape.training import fit
from inscape.training.replay import walk

X, Y, Q = points(20, 2), points(20, 2, seed=4), points(5, 2, seed=9)

WAYS = {
    "descent": {},
    "mini-batches": {"batch": 6},
    "momentum": {"batch": 6, "momentum": 0.9},
    "nesterov": {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    "adam": {"optimizer": "adam", "batch": 7, "weight_decay": 0.1},
    "adamw": {"optimizer": "adamw", "batch": 7, "weight_decay": 0.1},
}


def trained(act=nn.GELU, *, x=X, y=Y, wrap=lambda net: net, epochs=12, lr=0.02, **settings):
    model = wrap(dense(2, 6, 5, 2, act=act))
    run = fit(model, x, y, lr=lr, epochs=epochs, record=5, progress=False, **settings)
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


def gradients(model, x, y, size):
    """Return the part of each sample in the gradient of the mean squared error of a batch."""
    parts = []
    for point, target in zip(x, y, strict=True):
        loss = (model(point[None]) - target).square().sum() / (size * len(target))
        parts.append(
            torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
        )
    return torch.stack(parts)


def carried(model, trajectory, *, places=64):
    """Split predictions forwards, with a moment for each sample, and many nodes on each step."""
    settings = trajectory.settings
    beta1, beta2 = settings.betas
    states = list(walk(trajectory, model, X, Y))
    body = copy.deepcopy(model)
    n, p = len(X), len(flat(model))
    moments, squares = torch.zeros(n + 1, p).double(), torch.zeros(p).double()
    added = torch.zeros(len(Q), n + 1, 2).double()
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
        assert_close(start + moved.sum(0), flat(body))  # the parts make up the step
        for k in range(places):
            nn.utils.vector_to_parameters(
                start + (k + 0.5) / places * (flat_of(after) - start), body.parameters()
            )
            jacobian = jacobians(body, Q)
            added += torch.einsum("qcp,np->qnc", jacobian, moved) / places
    return added


def flat_of(state):
    return torch.cat([t.flatten() for t in state.values()])


def jacobians(model, x):
    rows = []
    for point in x:
        y = model(point[None])[0]
        rows.append(
            torch.stack(
                [
                    torch.cat(
                        [
                            g.flatten()
                            for g in torch.autograd.grad(
                                v, list(model.parameters()), retain_graph=True
                            )
                        ]
                    )
                    for v in y
                ]
            )
        )
    return torch.stack(rows)


@pytest.mark.parametrize("wrap", [lambda net: net, Wrapped], ids=["chain", "any module"])
@pytest.mark.parametrize("way", WAYS)
def test_sum_closes_to_rounding(way, wrap):
    model, trajectory = trained(wrap=wrap, **WAYS[way])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    assert_close(found.final, model(Q).detach())
    assert found.relative_residual < 1e-12
    whole = found.initial + found.samples.sum(1) + found.decay + found.penalty + found.residual
    assert_close(whole, found.final)


@pytest.mark.parametrize("way", ["momentum", "nesterov", "adam", "adamw"])
def test_parts_equal_moments_carried_for_each_sample(way):
    model, trajectory = trained(epochs=4, **WAYS[way])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    expected = carried(model, trajectory)
    # The oracle's midpoint rule leaves an error of the square of a step over 64 places.
    assert_close(found.samples, expected[:, :-1], rtol=1e-4, atol=1e-6)
    assert_close(found.decay, expected[:, -1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_relu_steps_are_cut_where_units_switch(way):
    model, trajectory = trained(nn.ReLU, lr=0.05, **WAYS[way])
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    assert found.relative_residual < 1e-12
    assert found.nodes <= 6


def test_a_chain_and_any_module_tell_the_same():
    one, two = (trained(wrap=wrap, **WAYS["adam"]) for wrap in (lambda net: net, Wrapped))
    found = [path_kernel(m, X, Y, trajectory=t, queries=Q).samples for m, t in (one, two)]
    assert_close(*found)


def test_linear_regression_is_exact_at_first_order():
    model = nn.Linear(2, 2).double()
    run = fit(model, X, Y, lr=0.1, epochs=30, batch=5, record=4, progress=False)
    found = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q, mode="first-order")
    assert found.relative_residual < 1e-13
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
        model, trajectory = trained(epochs=20 * k, lr=0.005 / k)
        found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, mode="first-order")
        residuals.append(found.relative_residual)
    for one, two in itertools.pairwise(residuals):
        assert 1.8 < one / two < 2.2


def test_order_of_samples_and_queries_does_not_matter():
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    model, trajectory = trained()
    other, moved = trained(x=X[order], y=Y[order])
    one = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    two = path_kernel(other, X[order], Y[order], trajectory=moved, queries=Q.flip(0))
    assert_close(one.samples[:, order], two.samples.flip(0))


def test_decay_can_go_to_those_who_made_the_weights():
    model, trajectory = trained(**WAYS["adamw"])
    own = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    shared = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, decay="samples")
    assert shared.relative_residual < 1e-12
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
    assert found.relative_residual < 1e-12
    assert float(found.penalty.abs().min()) > 0


def test_queries_in_several_passes_give_the_same():
    model, trajectory = trained(**WAYS["adam"])
    whole = path_kernel(model, X, Y, trajectory=trajectory, queries=Q)
    with pytest.raises(BudgetError, match=r"carried for one query take .* raise memory") as error:
        path_kernel(model, X, Y, trajectory=trajectory, queries=Q, memory=10)
    least = int(str(error.value).split()[7].replace(",", ""))
    parts = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, memory=2 * least)
    assert (whole.passes, parts.passes) == (1, 3)
    assert_close(parts.samples, whole.samples)


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
    assert found.relative_residual < 1e-5  # the training itself has seven digits


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
    with pytest.raises(UnsupportedModelError, match="knows the updates of sgd, adam and adamw"):
        path_kernel(dense(2, 3, 2), X, Y, trajectory=own.trajectory)
