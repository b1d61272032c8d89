"""The smallest weights go, and what is zero stays zero."""

import copy

import pytest
import torch
from torch import nn

from cases import dense, points
from inscape._core import NotApplicable
from inscape.pruning import magnitude_pruning, masked
from pruning.nets import conv, images

KINDS = (
    {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1, "lr": 0.01},
    {"optimizer": "adam", "lr": 0.01, "weight_decay": 0.1},
    {"optimizer": "adamw", "lr": 0.01, "weight_decay": 0.1},
)


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters() if p.ndim > 1])


def test_the_smallest_of_all_go():
    model, x = dense(3, 8, 1), points(10, 3)
    found = magnitude_pruning(model, x, x[:, :1], fraction=0.25, steps=3, slack=1e9)
    sizes = flat(model).abs()
    assert found.weights.tolist() == [32, 24, 18, 14]
    kept = flat(found.network(model)) != 0
    assert torch.equal(kept, sizes >= sizes.sort().values[32 - 14])
    same = flat(found.network(model))[kept]
    assert torch.equal(same, flat(model)[kept])


def test_the_smallest_of_each_layer_go():
    model, x = conv(), images()
    y = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    found = magnitude_pruning(model, x, y, fraction=0.5, steps=1, scope="layer", slack=1e9)
    for own, other in zip(found.network(model).parameters(), model.parameters(), strict=True):
        if own.ndim > 1:
            assert int((own != 0).sum()) == own.numel() - round(own.numel() / 2)
            gone = other[own == 0].abs()
            assert gone.max() <= other[own != 0].abs().min()
        else:
            assert torch.equal(own, other)


@pytest.mark.parametrize("settings", KINDS, ids=lambda kind: kind["optimizer"])
def test_zeros_stay_zero_through_fine_tuning(settings):
    model, x = dense(3, 16, 16, 1), points(40, 3)
    y = x[:, :1] * x[:, 1:2]
    seen = []
    tune = {**settings, "epochs": 3, "batch": 8}
    found = magnitude_pruning(model, x, y, fraction=0.3, steps=4, tune=tune, slack=1e9)
    plain = magnitude_pruning(model, x, y, fraction=0.3, steps=4, slack=1e9)
    assert found.weights.tolist() == plain.weights.tolist()
    small = found.network(model)
    assert int((flat(small) != 0).sum()) == int(found.weights[-1])
    assert not torch.equal(flat(small), flat(plain.network(model)))
    # Step by step: what a mask has taken is zero after every update, not only at the end.
    body = copy.deepcopy(small)
    masks = {name: p.detach() != 0 for name, p in body.named_parameters() if p.ndim > 1}
    with masked(body, masks):
        step = torch.optim.SGD(body.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
        for _ in range(3):
            step.zero_grad()
            (body(x) - y).square().mean().backward()
            step.step()
            seen.append(int((flat(body) != 0).sum()))
    assert seen == [int(found.weights[-1])] * 3
    assert not any(p._backward_hooks for p in body.parameters())


def test_a_training_that_moves_masked_weights_is_undone():
    model, x = dense(3, 8, 1), points(10, 3)

    def tune(body):
        for p in body.parameters():
            p.data.add_(1.0)

    found = magnitude_pruning(model, x, x[:, :1], fraction=0.5, steps=1, tune=tune, slack=1e9)
    assert int((flat(found.network(model)) == 0).sum()) == 16


def test_shared_weights_count_once():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    net[2].weight = net[0].weight
    x = torch.ones(4, 3)
    assert int(magnitude_pruning(net.eval(), x, x[:, :1]).weights[0]) == 12


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_a_fraction_lies_between_zero_and_one(fraction):
    model, x = dense(3, 8, 1), points(10, 3)
    with pytest.raises(ValueError, match=r"fraction must (lie between 0 and 1|be finite), found"):
        magnitude_pruning(model, x, x[:, :1], fraction=fraction)


def test_nothing_left():
    model, x = dense(3, 2, 1), points(10, 3)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    found = magnitude_pruning(model, x, x[:, :1])
    assert isinstance(found, NotApplicable)
    assert found.reason == "nothing is left to prune: 0 weights are not zero"
    few = magnitude_pruning(dense(3, 2, 1), x, x[:, :1], fraction=0.9, steps=10)
    assert few.weights.tolist() == [8, 1]


def test_stops_below_a_score():
    model, x = dense(3, 8, 1), points(30, 3)
    found = magnitude_pruning(model, x, model(x).detach(), until=0.9, steps=20)
    assert float(found.scores[-1]) < 0.9
    assert (found.scores[:-1] >= 0.9).all()


@pytest.mark.parametrize(
    ("settings", "text"),
    [({"scope": "all"}, "scope must be one of"), ({"steps": 0}, "steps must be at least 1")],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_settings(settings, text):
    model, x = dense(3, 4, 1), points(5, 3)
    with pytest.raises(ValueError, match=text):
        magnitude_pruning(model, x, x[:, :1], **settings)
