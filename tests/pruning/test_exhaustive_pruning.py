"""All sub-networks, from the smallest on."""

from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError, NotApplicable
from inscape.pruning import cut, exhaustive_pruning
from inscape.training import fit
from pruning.nets import conv, images


def test_finds_the_units_that_matter_among_all():
    model, x = dense(3, 7, 1), points(30, 3)
    model[2].weight.data[0, [0, 2, 3, 5]] = 0
    found = exhaustive_pruning(model, x, model(x).detach(), slack=1e-9)
    assert found.subsets.tolist() == [[1, 4, 6]]
    assert found.sizes.tolist() == [1, 2, 3]
    assert found.tried.tolist() == [7, 21, 35]
    assert found.good.tolist() == [0, 0, 1]
    assert found.summary().value == 3
    assert_close(found.network(model, x)(x), model(x))


@pytest.mark.parametrize("tune", [None, {"optimizer": "adam", "lr": 0.05, "epochs": 20}])
def test_losses_and_scores_are_those_of_brute_force(tune):
    model, x = dense(2, 5, 5, 1), points(20, 2)
    y = x[:, :1].sin()
    found = exhaustive_pruning(model, x, y, layer="2", tune=tune, slack=0.2)
    total = float((y - y.mean()).square().sum())
    for k, size in enumerate(found.sizes.tolist()):
        losses, scores = [], []
        for units in combinations(range(5), size):
            body = cut(model, x, {"2": units})
            if tune:
                fit(body, x, y, loss="mse", progress=False, seed=0, **tune)
            wrong = float((body(x) - y).detach().square().sum())
            losses.append(wrong / 20)
            scores.append(1 - wrong / total)
        assert float(found.losses[k]) == pytest.approx(min(losses))
        assert float(found.scores[k]) == pytest.approx(max(scores))
        assert int(found.good[k]) == sum(score >= found.start - 0.2 for score in scores)
    best = found.network(model, x)(x).detach()
    assert float((best - y).square().mean()) == pytest.approx(float(found.losses[-1]))


def test_channels_too_if_their_layer_is_named():
    model, x = conv(), images()
    found = exhaustive_pruning(model, x, torch.arange(7) % 3, layer="second", slack=0.0)
    assert (found.layer, found.width) == ("second", 4)
    other = found.network(model, x, index=len(found.subsets) - 1)
    assert other.second.out_channels == int(found.sizes[-1])


def test_budget_is_kept():
    model, x = dense(3, 12, 1), points(20, 3)
    text = r"up to 3 of the 12 units of '0' are 298, more than the budget of 100: raise budget"
    with pytest.raises(BudgetError, match=text):
        exhaustive_pruning(model, x, model(x).detach(), slack=0.0, budget=100)


def test_the_whole_network_is_the_last_resort():
    model, x = dense(3, 3, 1), points(20, 3)
    found = exhaustive_pruning(model, x, model(x).detach(), slack=1e-9)
    assert found.subsets.tolist() == [[0, 1, 2]]


def test_what_cannot_be_pruned_says_why():
    found = exhaustive_pruning(dense(3, 1, 1), points(5, 3), points(5, 1))
    assert isinstance(found, NotApplicable)
    assert found.reason.startswith("nothing is left to prune")
    with pytest.raises(ValueError, match="layer '2' cannot be cut, since its units are outputs"):
        exhaustive_pruning(dense(3, 4, 1), points(5, 3), points(5, 1), layer="2")
