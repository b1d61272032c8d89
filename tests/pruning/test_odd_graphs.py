"""Graphs that only look simple: cut right or not at all, and never scored wrong."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from cases import points
from inscape.pruning import channel_pruning, cut, magnitude_pruning, node_pruning, structure
from inscape.pruning.scoring import Removals, criterion_for
from pruning.nets import images, seeded

Y = torch.tensor([0, 1, 2, 0, 1, 2])


class Net(nn.Module):
    """Two layers of five units side by side or in a row, a norm, and heads, put together anew."""

    def __init__(self, forward) -> None:
        super().__init__()
        self.a, self.side, self.b = nn.Linear(3, 5), nn.Linear(3, 5), nn.Linear(5, 5)
        self.norm, self.plain = nn.BatchNorm1d(5), nn.BatchNorm1d(5, affine=False)
        self.relu, self.both = nn.ReLU(inplace=True), nn.Bilinear(3, 5, 3)
        self.head, self.other = nn.Linear(5, 3), nn.Linear(5, 3)
        self.way = forward

    def forward(self, x):
        return self.way(self, x)


def net(forward) -> nn.Module:
    return seeded(Net(forward))


def norm_twice(m, x):
    return m.head(m.norm(m.b(torch.relu(m.norm(m.a(x))))))


def plain_norm_twice(m, x):
    return m.head(m.plain(m.b(torch.relu(m.plain(m.a(x))))))


def norm_on_both_sides(m, x):
    return m.head(torch.relu(m.norm(m.a(x)) + m.norm(m.side(x))))


def second_argument(m, x):
    h = torch.relu(m.a(x))
    return m.both(x, h) + m.head(h)


def named_argument(m, x):
    h = m.a(x)
    return m.other(m.relu(input=h)) + m.head(h)


def weight_read_by_a_function(m, x):
    return m.head(torch.relu(m.a(x))) + functional.linear(x, m.a.weight)[:, :3]


def scaled_by_its_width(m, x):
    h = torch.relu(m.a(x))
    return m.head(h * h.shape[1])


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        (norm_twice, r"'norm' \(BatchNorm1d\) is used in several places"),
        (plain_norm_twice, r"'plain' \(BatchNorm1d\) is used in several places"),
        (norm_on_both_sides, r"'norm' \(BatchNorm1d\) is used in several places"),
        (second_argument, r"'both' \(Bilinear\) reads it"),
        (named_argument, r"'relu' \(ReLU\) reads it"),
        (weight_read_by_a_function, "'a' shares its weights with 'a.weight'"),
        (scaled_by_its_width, "the call of 'mul' in forward reads all its units at once"),
    ],
)
def test_units_that_something_else_needs_stay(forward, why):
    with pytest.raises(ValueError, match=f"layer 'a' cannot be cut, since {why}"):
        cut(net(forward), points(6, 3), {"a": [0]})


def overwritten_shortcut(m, x):
    h = m.a(x)
    return m.head(m.b(m.relu(h)) + h)  # h is above zero by now


def overwritten_and_dropped(m, x):
    h = m.a(x)
    m.relu(h)
    return m.head(h)


def added_in_place(m, x):
    h = m.a(x)
    y = h
    y += m.side(x)
    return m.head(torch.relu(y)) + m.other(h)


def branch_that_nothing_reads(m, x):
    h = torch.relu(m.a(x))
    m.other(torch.relu(m.b(h)))
    return m.head(h)


@pytest.mark.parametrize(
    "forward",
    [
        overwritten_shortcut,
        overwritten_and_dropped,
        added_in_place,
        branch_that_nothing_reads,
    ],
)
def test_losses_are_those_of_the_cut_networks_whatever_is_overwritten(forward):
    model, x = net(forward), points(6, 3)
    found = structure(model, x)
    cases = [(group, [unit]) for group in found.groups for unit in range(group.units)]
    assert cases
    kept = Removals(found, x, criterion_for(Y, model(x), None)).measured(cases)
    for (group, (gone,)), (loss, _) in zip(cases, kept, strict=True):
        small = cut(model, x, {group.name: [k for k in range(group.units) if k != gone]})
        expected = functional.cross_entropy(small(x), Y).detach()
        assert_close(torch.tensor(loss).double(), expected)


def test_layers_of_one_shortcut_keep_the_same_units():
    model, x = net(lambda m, x: m.head(m.a(x) + m.side(x))), points(6, 3)
    assert_close(cut(model, x, {"a": [2, 4], "side": [4, 2]})(x), cut(model, x, {"a": [2, 4]})(x))
    with pytest.raises(
        ValueError, match=r"'a', 'side' are added up .* found \[0\] and \[1\]: name"
    ):
        cut(model, x, {"a": [0], "side": [1]})


def test_a_model_in_training_mode_is_refused_and_not_touched():
    model = seeded(
        nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2))
    )
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="must be in eval mode"):
        cut(model.train(), images(), {"0": [0]})
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_data_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"must accept a batch of shape \(2, 4\)"):
        cut(net(overwritten_and_dropped), points(6, 4), {"a": [0]})


def test_masks_hold_where_a_training_puts_new_parameters_in():
    model, x = seeded(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3))), points(6, 3)

    def renew(body):
        body[0].weight = nn.Parameter(torch.ones_like(body[0].weight))

    found = magnitude_pruning(model, x, Y, fraction=0.5, steps=1, tune=renew, slack=1)
    weights = [p for p in found.network(model).parameters() if p.ndim == 2]
    assert sum(int((p != 0).sum()) for p in weights) == found.weights[1] == 15


@pytest.mark.parametrize("labels", [torch.tensor([0, 0, 1, 1]), torch.tensor([0.0, 0, 1, 1])])
def test_squared_errors_to_zero_and_one_are_judged_at_one_half(labels):
    model = nn.Sequential(nn.Linear(1, 2, bias=False), nn.ReLU(), nn.Linear(2, 1)).double().eval()
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0], [-1.0]]))
        model[2].weight.copy_(torch.tensor([[1.0, -1.0]]))
        model[2].bias.zero_()
    x = torch.tensor([[0.1], [0.3], [0.7], [0.9]]).double()
    assert node_pruning(model, x, labels, loss="mse", steps=1).scores[0] == 1


@pytest.mark.parametrize("prune", [node_pruning, magnitude_pruning])
def test_labels_that_no_output_stands_for_are_refused(prune):
    model, x = net(overwritten_and_dropped), points(6, 3)
    with pytest.raises(ValueError, match="class numbers must lie between 0 and 2, found 1 to 3"):
        prune(model, x, Y + 1)
    with pytest.raises(ValueError, match="class numbers must lie between 0 and 2, found 1 to 3"):
        prune(model, x, Y, test=(x, Y + 1))
    with pytest.raises(ValueError, match="one label for each of the 6 points"):
        prune(model, x, Y, test=(x, Y[:2]))


def test_callers_in_inference_mode():
    model, x = seeded(nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(108, 3))), images(6)
    with torch.inference_mode():
        found = channel_pruning(model, x, Y, steps=1, tune={"epochs": 1})
    assert found.widths.flatten().tolist() == [3, 2]
