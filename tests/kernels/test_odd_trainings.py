"""Trainings that a path kernel must refuse, or take apart all the same."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels import PathWatch, path_kernel
from inscape.kernels.path import chain_gradients
from inscape.kernels.path.training_gradients import TrainingProblem
from inscape.training import fit
from inscape.training.losses import loss_function

X, Y, Q = points(12, 2), points(12, 2, seed=4), points(3, 2, seed=9)


def trained(model, *, loss="mse", **settings):
    settings = {"lr": 0.02, "epochs": 4, "record": 3, **settings}
    return fit(model, X, Y, loss=loss, progress=False, **settings).trajectory


class Other(nn.Module):
    """Another function in training mode."""

    def __init__(self):
        super().__init__()
        self.inner = dense(2, 4, 2)

    def forward(self, x):
        return self.inner(x) * (2.0 if self.training else 1.0)


class AtTimes(nn.Module):
    """Uses a second layer for some rows only, and so not at all for some batches."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        y, chosen = self.one(x), x.sum(1) > 0
        if not bool(chosen.any()):
            return y
        return y.index_add(0, chosen.nonzero()[:, 0], self.two(x[chosen]))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Other(), "is in training what it is after it, found other outputs"),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)), r"found '.*_u' written by a pa"),
        (nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), "batch statistics or"),
    ],
)
def test_training_of_another_function_is_refused(model, text):
    model = model.double()
    trajectory = trained(model)
    with pytest.raises(UnsupportedModelError, match=text):
        path_kernel(model.eval(), X, Y, trajectory=trajectory, queries=Q)
    with pytest.raises(UnsupportedModelError, match=text):
        trained(model, watch=PathWatch(Q))


@pytest.mark.parametrize("settings", [{"momentum": 0.9}, {"optimizer": "adam"}])
def test_parameters_with_gradients_at_some_steps_only_are_refused(settings):
    settings = {"batch": 1, "epochs": 1, "record": 12, **settings}
    model = AtTimes().double()
    trajectory = trained(model, **settings)
    text = "at all steps or at none, found some steps only for 'two.weight'"
    with pytest.raises(UnsupportedModelError, match=text):
        path_kernel(model.eval(), X, Y, trajectory=trajectory, queries=Q)
    with pytest.raises(UnsupportedModelError, match=text):
        trained(AtTimes().double(), watch=PathWatch(Q), **settings)


def test_plain_descent_takes_gradients_at_some_steps():
    model = AtTimes().double()
    trajectory = trained(model, batch=1, epochs=1, record=12)
    found = path_kernel(model.eval(), X, Y, trajectory=trajectory, queries=Q)
    assert found.unattributed < 1e-12


@pytest.mark.parametrize(
    "act",
    [nn.ReLU6, nn.ELU, lambda: nn.ELU(0.5), nn.SELU, nn.Softsign, lambda: nn.Hardtanh(-0.2, 0.3),
     nn.Hardswish, lambda: nn.SiLU(inplace=True), lambda: nn.LeakyReLU(0.1, inplace=True)],
)  # fmt: skip
def test_activations_that_bend_or_write_over_their_input(act):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 8), act(), nn.Linear(8, 8), act(), nn.Linear(8, 2)).double()
    trajectory = trained(model, lr=0.3)
    found = path_kernel(model.eval(), X, Y, trajectory=trajectory, queries=Q)
    assert found.unattributed < 1e-12


def test_a_loss_may_write_over_what_it_is_given():
    def mean_square(y, target):
        return y.sub_(target).square().mean()

    model = dense(2, 4, 2).train()
    trajectory = trained(model, loss=mean_square)
    model.eval()
    found = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, loss=mean_square)
    assert found.unattributed < 1e-12


def test_penalties_of_a_model_that_was_frozen_later():
    def size(model, x):
        return sum(p.square().sum() for p in model.parameters())

    model = dense(2, 4, 2)
    trajectory = trained(model, penalties=[(0.1, size)])
    model.requires_grad_(False)
    settings = {"trajectory": trajectory, "queries": Q, "penalties": [(0.1, size)]}
    assert path_kernel(model, X, Y, **settings).unattributed < 1e-12


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (lambda: dense(2, 4, 2).float(), r"in the numbers of the training, torch.float64, found"),
        (lambda: dense(2, 5, 2), "of the architecture that was trained, found another"),
        (lambda: dense(2, 4, 2, act=nn.Tanh), "found one that training leads to other weights"),
    ],
)
def test_another_model_is_refused(other, text):
    torch.manual_seed(0)
    trajectory = trained(dense(2, 4, 2, act=nn.GELU), lr=0.5, epochs=9, record=9)
    with pytest.raises(ValueError, match=text):
        path_kernel(other().eval(), X, Y, trajectory=trajectory, queries=Q)


def test_missing_rates_are_named():
    model = dense(2, 4, 2)
    trajectory = trained(model)
    cut = replace(trajectory, rates=trajectory.rates[:-2])
    with pytest.raises(ValueError, match="all 4 steps of the training, found steps 2 to 3 missing"):
        path_kernel(model, X, Y, trajectory=cut, queries=Q)


def test_labels_of_classes_are_looked_at():
    model = dense(2, 4, 2)
    found = path_kernel(model, X, Y, trajectory=trained(model), queries=Q)
    with pytest.raises(ValueError, match="labels must be 12 integers from 0 on, one for each"):
        found.by_class(torch.arange(5))


def test_what_no_rounding_can_be_is_not_called_so():
    model = dense(2, 4, 2)
    found = path_kernel(model, X, Y, trajectory=trained(model), queries=Q)
    wrong = replace(found, rounding=found.rounding + 0.1)
    assert "updates that no gradient explains" in wrong.non_sample_contributions(0, 0)
    assert wrong.summary().kind == "estimate"
    assert "unattributed" in wrong.summary().basis


@pytest.mark.parametrize("wrap", [lambda net: net, lambda net: nn.Sequential(net, nn.Sigmoid())])
@pytest.mark.parametrize("rows", [2, 40])
def test_gradients_of_many_samples_are_written_in_pieces(monkeypatch, wrap, rows):
    model = wrap(dense(2, 4, 2))
    names = [name for name, _ in model.named_parameters()]
    task = TrainingProblem.of(model, X, Y, loss_function("mse"), (), names)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    push = points(rows, len(weights))
    once = task.gradients(slice(None), weights)
    whole = once.products(push), once.by_tensor(push), once.dense(torch.arange(3, 9))
    monkeypatch.setattr(chain_gradients, "DENSE_BYTES", 8 * 5 * len(weights))
    monkeypatch.setattr("inscape.kernels.path.module_network.DENSE_BYTES", 8 * 5 * len(weights))
    some = task.gradients(slice(None), weights)
    assert_close(some.products(push), whole[0])
    assert_close(some.by_tensor(push), whole[1])
    assert_close(some.dense(torch.arange(3, 9)), whole[2])


def test_a_watch_asks_for_no_more_than_its_rows_take():
    with pytest.raises(BudgetError) as error:
        trained(dense(2, 4, 2), optimizer="adam", watch=PathWatch(Q, memory=10))
    least = int(str(error.value).split("at least ")[1].split(", or")[0].replace(",", ""))
    assert least < 20_000
    assert trained(dense(2, 4, 2), optimizer="adam", watch=PathWatch(Q, memory=least))
