"""A cut network is small, and gives what the masked one gives."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from cases import dense, points
from inscape.errors import UnsupportedModelError
from inscape.pruning import cut, structure
from inscape.pruning.groups import ELEMENTWISE, ELEMENTWISE_CALLS
from inscape.pruning.unit_removal import flat_state, load_flat, weights
from pruning.nets import NETS, conv, images, seeded


def masked(model, group, keep):
    """Return the network with every weight that reads another unit set to zero."""
    other = copy.deepcopy(model)
    gone = sorted(set(range(group.units)) - set(keep))
    with torch.no_grad():
        for name, per in group.readers:
            weight = other.get_submodule(name).weight
            for unit in gone:
                weight[:, unit * per : (unit + 1) * per] = 0
    return other


@pytest.mark.parametrize("net", NETS)
def test_cut_equals_masked(net):
    model, x = NETS[net](), images()
    found = structure(model, x)
    assert found.groups
    for group in found.groups:
        keep = list(range(0, group.units, 2))
        small = cut(model, x, {group.name: keep})
        assert_close(small(x), masked(model, group, keep)(x))
        assert len(small.get_submodule(group.name).weight) == len(keep)
        assert weights(small) < weights(model)


@pytest.mark.parametrize("net", NETS)
def test_all_groups_at_once(net):
    model, x = NETS[net](), images()
    groups = structure(model, x).groups
    expected = model
    for group in groups:
        expected = masked(expected, group, [1, 2])
    small = cut(model, x, {group.name: [1, 2] for group in groups})
    assert_close(small(x), expected(x))
    again = structure(small, x)
    assert [group.units for group in again.groups] == [2] * len(groups)


class Called(nn.Module):
    """A network whose activation is a function."""

    def __init__(self, act):
        super().__init__()
        self.first, self.last, self.act = nn.Linear(3, 5), nn.Linear(5, 2), act

    def forward(self, x):
        return self.last(self.act(self.first(x)))


DROPOUTS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, functional.dropout, functional.dropout2d)


@pytest.mark.parametrize(
    "act", [a for a in (*ELEMENTWISE, *ELEMENTWISE_CALLS) if a not in DROPOUTS]
)
def test_cut_equals_masked_for_every_activation(act):
    made = {nn.Threshold: lambda: nn.Threshold(0.1, -0.5)}.get(act, act)
    model = seeded(Called(made() if isinstance(act, type) else act))
    x, keep = points(9, 3), [0, 3]
    (group,) = structure(model, x).groups
    assert_close(cut(model, x, {group.name: keep})(x), masked(model, group, keep)(x))


@pytest.mark.parametrize("net", NETS)
def test_the_model_is_not_touched(net):
    model, x = NETS[net](), images()
    before = copy.deepcopy(model.state_dict())
    cut(model, x, {structure(model, x).groups[0].name: [0]})
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_groups_of_a_chain():
    found = structure(conv(), images())
    assert [(g.name, g.kind, g.units, g.norms, g.readers) for g in found.groups] == [
        ("first", "channel", 5, ("norm",), (("second", 1),)),
        ("second", "channel", 4, (), (("dense", 4),)),
        ("dense", "node", 6, ("norm1",), (("last", 1),)),
    ]
    assert found.fixed == {"last": "its units are outputs of the model"}


def test_shortcuts_are_cut_together():
    found = structure(NETS["shortcuts"](), images())
    makers = {g.name: (g.makers, g.readers) for g in found.groups}
    assert makers == {
        "stem": (("stem", "a2"), (("a1", 1), ("b1", 1), ("side", 1))),
        "a1": (("a1",), (("a2", 1),)),
        "b1": (("b1",), (("b2", 1),)),
        "b2": (("b2", "side"), (("head", 1),)),
    }


class Between(nn.Module):
    """Two dense layers with something between them."""

    def __init__(self, between, after=4):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(after, 2)
        self.between = between

    def forward(self, x):
        return self.b(self.between(self.a(x)))


def twice(x):
    return torch.cat([x, x], 1)


@pytest.mark.parametrize(
    ("model", "layer", "why"),
    [
        (Between(nn.LayerNorm(4)), "a", r"'between' \(LayerNorm\) reads all its units at once"),
        (Between(nn.Softmax(1)), "a", r"'between' \(Softmax\) reads all its units at once"),
        (Between(twice, 8), "a", "the call of 'cat' in forward reads it"),
        (Between(nn.ReLU()), "b", "its units are outputs of the model"),
        (
            Between(lambda x: x.view(-1, 4)),
            "a",
            "the call of 'view' in forward reads all its units at once",
        ),
        (Between(lambda x: x + torch.ones(4)), "a", "the call of 'add' in forward adds something"),
    ],
)
def test_a_layer_that_must_stay_whole_is_named(model, layer, why):
    x = torch.ones(2, 3)
    with pytest.raises(UnsupportedModelError, match=f"layer '{layer}' cannot be cut, since {why}"):
        cut(model.eval(), x, {layer: [0]})


def test_grouped_convolutions_and_images_without_flattening_stay_whole():
    grouped = nn.Sequential(
        nn.Conv2d(2, 4, 1), nn.Conv2d(4, 4, 1, groups=2), nn.Flatten(), nn.Linear(256, 1)
    ).eval()
    x = images(2).float()
    assert "convolves its channels in groups" in structure(grouped, x).fixed["0"]
    rows = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Linear(8, 3), nn.Flatten(), nn.Linear(96, 1)).eval()
    assert "(Linear) is used along other axes" in structure(rows, x).fixed["0"]


def test_shared_weights_are_named():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    net[2].weight = net[0].weight
    fixed = structure(net.eval(), torch.ones(2, 3)).fixed
    assert fixed["0"] == "'0' shares its weights with '2'"
    assert fixed["2"] == "'2' shares its weights with '0'"
    layer = nn.Linear(3, 3)
    again = nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(3, 1)).eval()
    assert "it is called more than once" in structure(again, torch.ones(2, 3)).fixed["0"]


def test_hooks_keep_a_layer_whole():
    net = dense(3, 4, 1)
    net[1].register_forward_hook(lambda module, given, out: 2 * out)
    assert structure(net, points(2, 3)).fixed["0"] == "'1' (ReLU) has hooks"


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def test_a_forward_that_cannot_be_traced_is_refused():
    with pytest.raises(UnsupportedModelError, match="fixed row of calls to be cut, but tracing it"):
        structure(Branching().eval(), torch.ones(2, 3))


@pytest.mark.parametrize(
    ("keep", "text"),
    [
        ({"0": []}, "a layer needs at least one unit, found none to keep of '0'"),
        ({"0": [0, 0]}, r"must be different numbers from 0 to 3, found \[0, 0\]"),
        ({"0": [4]}, r"must be different numbers from 0 to 3, found \[4\]"),
        ({"nine": [0]}, r"layer must be one that can be cut \('0'\), found 'nine'"),
    ],
)
def test_impossible_wishes(keep, text):
    with pytest.raises(ValueError, match=text):
        cut(dense(3, 4, 1), points(2, 3), keep)


def test_flat_states_come_back_and_must_fit():
    model = conv()
    other = load_flat(conv().double(), flat_state(model) * 0)
    assert not any(p.any() for p in other.parameters())
    with pytest.raises(ValueError, match="found a model that gives 17: pass the model that was"):
        load_flat(dense(2, 4, 1), flat_state(model))
