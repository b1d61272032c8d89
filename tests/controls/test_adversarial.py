"""Adversarial training: against plain training, closed forms, and what it must leave alone."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.controls.adversarial import adversarial_training
from inscape.robustness import Pgd, robustness
from inscape.training import fit


def rings(n):
    """Return points around the origin and points further out."""
    x = points(n, 2)
    x = x / x.norm(dim=1, keepdim=True) * (1 + torch.arange(n).remainder(2))[:, None]
    return x, torch.arange(n).remainder(2)


def test_it_drops_what_is_right_but_fragile():
    """One input is always right and tiny, one is large and wrong for a tenth of the points."""
    y = torch.arange(40).remainder(2)
    side = 2.0 * y.double() - 1
    x = torch.stack([torch.where(torch.arange(40) < 4, -side, side), 0.1 * side], dim=1)
    settings = {"optimizer": "adam", "lr": 0.5, "epochs": 30}
    shares = []
    for budget in (0.0, 0.3):
        model = nn.Linear(2, 2).double()
        for parameter in model.parameters():
            nn.init.zeros_(parameter)
        run = adversarial_training(model, x, y, budget=budget, norm="linf", steps=3, **settings)
        assert run.model is model
        assert not model.training
        found = robustness(model, x, y, attack=Pgd(norm="linf", steps=5), budgets=[0.3])
        shares.append(found.accuracy.tolist())
    assert shares[0][0] == 1.0
    assert shares[0][1] < 0.2
    assert shares[1] == [0.9, 0.9]


def test_without_a_budget_it_is_plain_training():
    x, y = rings(20)
    settings = {"batch": 8, "lr": 0.1, "epochs": 3}
    one, two = dense(2, 6, 2), dense(2, 6, 2)
    fit(one, x, y, loss="cross_entropy", **settings)
    adversarial_training(two, x, y, budget=0.0, **settings)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@pytest.mark.parametrize("clean", [0.0, 0.25])
def test_one_step_of_a_linear_classifier_is_known_in_closed_form(clean):
    """The worst step of a linear classifier lies along its weights: PGD ends there exactly."""
    model, x, y = nn.Linear(3, 2).double(), points(5, 3), torch.tensor([0, 1, 1, 0, 1])
    other = copy.deepcopy(model)
    settings = {"budget": 0.5, "norm": "linf", "steps": 6, "step_size": 0.5, "clean": clean}
    adversarial_training(model, x, y, lr=0.1, epochs=1, **settings)
    w = (other.weight[1 - y] - other.weight[y]).detach()
    worst, plain = (nn.functional.cross_entropy(other(at), y) for at in (x + 0.5 * w.sign(), x))
    ((1 - clean) * worst + clean * plain).backward()
    with torch.no_grad():
        for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
            assert_close(ours, theirs - 0.1 * theirs.grad)


@pytest.mark.parametrize(("clean", "passes"), [(0.0, 1), (0.5, 2)])
def test_one_output_and_batch_norm_and_bounds(clean, passes):
    x, y = rings(24)
    model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)).double()
    steps = model[1].num_batches_tracked
    run = adversarial_training(
        model,
        x,
        y[:, None].double(),
        budget=0.1,
        bounds=(-2.0, 2.0),
        steps=2,
        loss="bce_logits",
        clean=clean,
        batch=12,
        epochs=2,
    )
    assert run.steps == 4
    assert int(steps) == 4 * passes  # the moved batch of each step; none from the attack
    assert "forward" not in vars(model)


def test_running_statistics_are_those_of_moved_points():
    """All points of a class are moved one way, so that the mean of the batch goes along."""
    x, y = torch.ones(6, 1).double(), torch.zeros(6, dtype=torch.long)
    model = nn.Sequential(nn.BatchNorm1d(1, momentum=0.5), nn.Linear(1, 2)).double()
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[0.0], [1.0]]))
    settings = {"budget": 0.5, "norm": "linf", "steps": 4, "step_size": 1.0, "epochs": 1}
    adversarial_training(model, x, y, lr=0.01, **settings)
    assert_close(model[0].running_mean.item(), 0.75)  # of 0 and 1.5


def test_penalties_and_watchers_see_the_model_itself():
    x, y = rings(20)
    seen = []

    def penalty(model, batch):
        seen.append(model(batch + 1).shape)
        return model(batch).square().mean()

    class Watch:
        def begin(self, update, x, y, settings):
            seen.append("begin")

        def step(self, rows, rate):
            seen.append("step")

    net = dense(2, 6, 2)
    settings = {"budget": 0.1, "steps": 1, "batch": 10, "epochs": 1}
    adversarial_training(net, x, y, penalties=[(0.1, penalty)], watch=Watch(), **settings)
    assert seen == ["begin", *((torch.Size([10, 2]), "step") * 2)]


def test_same_seed_same_weights_and_global_generators_untouched():
    x, y = rings(20)
    nets = [dense(2, 6, 2) for _ in range(3)]
    state = torch.get_rng_state()
    for net, seed in zip(nets, (1, 1, 2), strict=True):
        adversarial_training(net, x, y, budget=0.3, steps=2, lr=0.1, epochs=2, seed=seed)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(nets[0][0].weight, nets[1][0].weight)
    assert not torch.equal(nets[0][0].weight, nets[2][0].weight)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"budget": -1.0}, "budget must be a finite number of at least 0, found -1.0: pass"),
        ({"budget": float("inf")}, "budget must be a finite number of at least 0, found inf"),
        ({"clean": 2.0}, "clean must be a fraction between 0 and 1, found 2.0: pass such"),
        ({"steps": 0}, "steps must be at least 1, found 0"),
        ({"bounds": (0.0, 1.0)}, "x must lie within the bounds 0 to 1"),
        ({"y": torch.full((20,), 7)}, "class numbers must lie between 0 and 1"),
    ],
)
def test_wrong_settings_are_refused(change, text):
    x, y = rings(20)
    settings = {"y": y, "budget": 0.1, **change}
    model = dense(2, 6, 2).train()
    with pytest.raises(ValueError, match=text):
        adversarial_training(model, x, settings.pop("y"), **settings)
    assert model.training


@pytest.mark.parametrize("shape", [(20,), (20, 1)], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64])
def test_one_output_takes_class_numbers_of_any_type_and_shape(dtype, shape):
    x, y = rings(20)
    nets = [dense(2, 6, 1) for _ in range(2)]
    settings = {"budget": 0.1, "steps": 2, "loss": "bce_logits", "lr": 0.1, "epochs": 2}
    adversarial_training(nets[0], x, y.double()[:, None], **settings)
    adversarial_training(nets[1], x, y.to(dtype).reshape(shape), **settings)
    assert torch.equal(nets[0][0].weight, nets[1][0].weight)


def test_labels_that_are_no_class_numbers_are_refused(unchecked):
    x, y = rings(20)
    with pytest.raises(TypeError, match=r"takes class numbers as int64, found torch.float64: use"):
        adversarial_training(dense(2, 6, 2), x, y.double(), budget=0.1)
    with pytest.raises(ValueError, match="adversarial_training needs the true class of each point"):
        adversarial_training(dense(2, 6, 2), x, None, budget=0.1)
