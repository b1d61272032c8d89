"""Units and channels that go one by one: the right ones, and with the right losses."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

import inscape
from cases import dense, points
from inscape._core import NotApplicable
from inscape.pruning import channel_pruning, cut, node_pruning, structure
from inscape.pruning.scoring import Removals, criterion_for, measured
from pruning.nets import NETS, conv, images

CLASSES = torch.tensor([0, 1, 2, 0, 1, 2, 0])


def labels(model, x):
    return CLASSES % model(x).shape[1]


@pytest.mark.parametrize("net", NETS)
def test_losses_from_kept_activations_are_those_of_the_cut_networks(net, monkeypatch):
    monkeypatch.setattr("inscape.pruning.scoring.CHUNK", 3)
    model, x = NETS[net](), images()
    found = structure(model, x)
    by = criterion_for(labels(model, x), model(x), None)
    cases = [(g, [unit]) for g in found.groups for unit in range(g.units)]
    cases += [(g, [0, 1]) for g in found.groups]
    kept = Removals(found, x, by).measured(cases)
    for (group, units), (loss, score) in zip(cases, kept, strict=True):
        keep = [unit for unit in range(group.units) if unit not in units]
        small = cut(model, x, {group.name: keep})(x).detach()
        assert loss == pytest.approx(float(functional.cross_entropy(small, by.y)), rel=1e-9)
        assert score == float((small.argmax(1) == by.y).double().mean())


def test_the_unit_with_the_lowest_loss_goes_at_each_step():
    model, x = conv(), images()
    y = labels(model, x)
    found = channel_pruning(model, x, y)
    body, left = model, {"first": list(range(5)), "second": list(range(4))}
    for step in range(1, len(found.removed)):
        losses = {}
        for name, units in left.items():
            for place, unit in enumerate(units):
                if len(units) > 1:
                    keep = [k for k in range(len(units)) if k != place]
                    out = cut(body, x, {name: keep})(x).detach()
                    losses[name, unit] = float(functional.cross_entropy(out, y))
        name, unit = min(losses, key=losses.__getitem__)
        assert found.removed[step] == f"{name}: {unit}"
        place = left[name].index(unit)
        left[name].remove(unit)
        keep = [k for k in range(len(left[name]) + 1) if k != place]
        body = cut(body, x, {name: keep})
        assert float(found.losses[step]) == pytest.approx(losses[name, unit])
    assert found.widths[-1].tolist() == [1, 1]
    assert found.widths[0].tolist() == [5, 4]


def test_the_curve_counts_weights_and_knows_its_network():
    model, x = conv(), images()
    y = labels(model, x)
    found = node_pruning(model, x, y, slack=0.3)
    small = found.network(model, x)
    dense_weights = 16 * 6 + 6 * 3
    others = 2 * 5 * 9 + 5 * 4 * 9
    assert found.weights.tolist() == [others + dense_weights * k // 6 for k in range(6, 0, -1)]
    assert float(found.scores[found.chosen]) >= float(found.scores[0]) - 0.3
    out = small(x).detach()
    assert float(functional.cross_entropy(out, y)) == pytest.approx(
        float(found.losses[found.chosen])
    )
    assert found.summary().value == float(found.shares[found.chosen])
    assert found.fixed == ("'last': its units are outputs of the model",)


def test_useless_units_go_first_and_nothing_is_lost():
    model = dense(3, 6, 1)
    model[2].weight.data[0, [1, 4, 5]] = 0
    x = points(30, 3)
    found = node_pruning(model, x, model(x).detach(), slack=1e-9)
    assert {found.removed[k] for k in (1, 2, 3)} == {"0: 1", "0: 4", "0: 5"}
    assert_close(found.scores[:4], torch.ones(4, dtype=torch.float64))
    assert found.units == ((0, 2, 3),)
    assert found.score == "r2"


def test_fine_tuning_by_settings_and_by_a_function_are_the_same():
    model, x = dense(2, 5, 1), points(20, 2)
    y = x[:, :1] * x[:, 1:]
    settings = {"optimizer": "adam", "lr": 0.01, "epochs": 5, "batch": 8, "seed": 3}

    def tune(body):
        inscape.training.fit(body, x, y, loss="mse", progress=False, **settings)

    one = node_pruning(model, x, y, tune=settings)
    two = node_pruning(model, x, y, tune=tune)
    assert torch.equal(one.losses, two.losses)
    assert torch.equal(one.state, two.state)
    plain = node_pruning(model, x, y)
    assert (one.losses[1:] < plain.losses[1:]).all()


def test_drawn_units_are_drawn_by_the_inverse_of_their_loss():
    model, x = dense(2, 3, 1), points(40, 2)
    y = model(x).detach() + 0.1
    by = criterion_for(y, model(x), None)
    losses = [measured(cut(model, x, {"0": k}), x, by)[0] for k in ([1, 2], [0, 2], [0, 1])]
    inverse = 1 / torch.tensor(losses)
    counts = torch.zeros(3)
    for seed in range(60):
        found = node_pruning(
            model, x, y, choice="drawn", tune=lambda body: None, slack=1e9, steps=1, seed=seed
        )
        counts[int(found.removed[1][3:])] += 1
    share = inverse / inverse.sum()
    spread = (share * (1 - share) / 60).sqrt()
    assert ((counts / 60 - share).abs() < 5 * spread).all()
    assert share.max() > share.min() + 0.05


def test_drawn_ends_where_no_unit_can_be_missed():
    model, x = dense(3, 6, 1), points(30, 3)
    model[2].weight.data[0, [1, 4]] = 0
    y = model(x).detach()
    found = node_pruning(model, x, y, choice="drawn", tune=lambda body: None, slack=1e-9)
    assert found.widths.flatten().tolist() == [6, 5, 4]
    assert found.chosen == 2


def test_stops_below_a_score_and_after_so_many_steps():
    model, x = dense(3, 6, 1), points(30, 3)
    y = model(x).detach()
    assert len(node_pruning(model, x, y, steps=2).removed) == 3
    fallen = node_pruning(model, x, y, until=0.9)
    assert float(fallen.scores[-1]) < 0.9
    assert (fallen.scores[:-1] >= 0.9).all()


def test_the_curve_is_measured_at_other_points_if_asked():
    model, x = dense(3, 4, 1), points(30, 3)
    y = model(x).detach()
    other = (points(9, 3, seed=5), points(9, 1, seed=6))
    found = node_pruning(model, x, y, test=other)
    assert float(found.losses[0]) == pytest.approx(
        float(functional.mse_loss(model(other[0]).detach(), other[1]))
    )
    assert found.removed == node_pruning(model, x, y).removed


@pytest.mark.parametrize(
    ("y", "score", "right"),
    [
        (torch.tensor([[1.0], [-1.0], [1.0]]).double(), "accuracy", 2 / 3),
        (torch.tensor([[1.0], [0.0], [1.0]]).double(), "accuracy", 2 / 3),
        (torch.tensor([1, 0, 1]), "accuracy", 2 / 3),
        (torch.tensor([1.0, 2.0, 4.0]).double(), "r2", 1 - 39.0 / (14 / 3)),
    ],
)
def test_labels_choose_the_score(y, score, right):
    output = torch.tensor([[2.0], [-3.0], [-9.0]]).double() if score == "accuracy" else None
    output = torch.tensor([[2.0], [-3.0], [7.6]]).double() if output is None else output
    by = criterion_for(y, output, None)
    found = by.from_sums(by.parts(output, slice(0, 3)))[1]
    assert by.score == score
    if score == "accuracy":
        assert found == pytest.approx(right)
    else:
        y = y[:, None]
        assert found == pytest.approx(
            1 - float((output - y).square().sum() / (y - y.mean()).square().sum())
        )


def test_what_cannot_be_pruned_says_why():
    x = points(5, 3)
    one = node_pruning(dense(3, 1, 1), x, x[:, :1])
    assert isinstance(one, NotApplicable)
    assert one.reason == (
        "nothing is left to prune: no layer has more than one hidden unit of a dense layer"
    )
    none = channel_pruning(dense(3, 4, 1), x, x[:, :1])
    assert isinstance(none, NotApplicable)
    assert none.reason.startswith("no channel of a convolution can be cut ('2': its units are out")
    fixed = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)).double().eval()
    named = node_pruning(fixed, x, x[:, :1])
    assert isinstance(named, NotApplicable)
    assert "'0': '1' (LayerNorm) reads all its units at once" in named.reason


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1).double()

    def forward(self, x):
        return self.layer(x) if x.sum() > 1e9 else -self.layer(x)


def test_a_forward_with_branches_is_not_applicable():
    x = points(5, 3)
    found = node_pruning(Branching().eval(), x, x[:, :1])
    assert isinstance(found, NotApplicable)
    assert "but tracing it raised TraceError" in found.reason


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"choice": "drawn"}, ValueError, "scores units by the loss after fine-tuning, found tune"),
        ({"tune": 3}, TypeError, r"tune must be a function or a mapping, found 3: inscape show"),
        (
            {"tune": {"rate": 1}},
            ValueError,
            "options of inscape.training.fit, found 'rate'",
        ),
        ({"slack": -1.0}, ValueError, "slack must be at least 0"),
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"points": 0}, ValueError, "points must be at least 1"),
        ({"choice": "best"}, ValueError, "choice must be one of 'lowest', 'drawn'"),
        (
            {"tune": lambda body: body[0].weight.data.fill_(torch.nan)},
            ValueError,
            "tune must leave finite weights, found NaN or Inf in '0.weight'",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_settings(settings, error, text):
    model, x = dense(3, 4, 1), points(5, 3)
    with pytest.raises(error, match=text):
        node_pruning(model, x, x[:, :1], **settings)


def test_labels_must_fit():
    model, x = dense(3, 4, 2), points(5, 3)
    with pytest.raises(ValueError, match="y must have 2 numbers for each point, as the model"):
        node_pruning(model, x, x)


def test_tuning_leaves_the_model_alone():
    model, x = dense(3, 4, 1), points(9, 3)
    before = copy.deepcopy(model.state_dict())
    node_pruning(model, x, x[:, :1], tune={"epochs": 2, "lr": 0.1})
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert not model.training
