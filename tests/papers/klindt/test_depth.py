"""Deep networks under controls: the factor after a control is the control, and trends are right."""

import functools

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.controls import (
    activation_scale,
    jacobian_penalty,
    length_scale,
    row_scale,
    spectral_scale,
    weight_decay,
)
from inscape.models import mlp
from inscape.papers.klindt import _deep, depth
from inscape.papers.klindt import _deep_trends as trends
from inscape.training import fit

WIDTHS = [2, 5, 5, 1]
KNOB = 0.3


def held(control, net):
    """Return a network under a control of the package, its knob set there."""
    if control == "activation":
        return activation_scale(net, KNOB)
    if control in ("hidden", "shared", "first", "spectral", "row"):
        layers = net[:1] if control == "first" else net[:-1]
        _deep._draw(layers, 3)
        by = {
            "hidden": lambda: length_scale(layers, KNOB, bias="normalised"),
            "shared": lambda: length_scale(layers, KNOB**0.5),
            "first": lambda: length_scale(layers, KNOB),
            "spectral": lambda: spectral_scale(layers, KNOB),
            "row": lambda: row_scale(layers, KNOB),
        }
        by[control]()
    return net


@pytest.mark.parametrize("control", depth.CONTROLS)
def test_a_sweep_trains_as_each_control_does(control):
    data = _deep.noisy_sums(8, 0)
    settings = {"epochs": 6, "lr": 0.05}
    net = _deep.controlled(control, WIDTHS, "tanh", knob=KNOB, seed=3)
    other = _deep.controlled(control, WIDTHS, "tanh", knob=4.0, seed=4)
    found = [one for _, one, _ in _deep.trained(control, [net, other], [data] * 2, **settings)]
    theirs = held(control, mlp(*WIDTHS, activation="tanh", seed=3))
    penalties = {
        "jacobian": [(1.0, functools.partial(jacobian_penalty, free=KNOB))],
        "decay": [(1e-3 / KNOB**2, weight_decay)],
    }.get(control, [])
    fit(theirs, data.x, data.y, optimizer="adam", penalties=penalties, **settings)
    x = _deep.noisy_sums(20, 1).x
    # Biases before a mean that is subtracted have no gradient but rounding, which Adam enlarges;
    # with the mean of the batch, in training mode, they do nothing.
    ours, other, theirs = (net.train(control == "activation") for net in (*found, theirs))
    assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(ours(x), other(x), atol=0.01)


def test_jacobians_and_weights_are_paid_for_as_the_controls_say():
    knob = 0.1  # below the slopes at the start
    net = _deep.controlled("jacobian", [3, 4, 2], "tanh", knob=knob, seed=0)
    x = torch.randn(_deep.SOME + 5, 3, generator=torch.Generator().manual_seed(0))
    expected = jacobian_penalty(net, x[: _deep.SOME], free=knob)
    assert_close(_deep.steepness(net, x), expected)
    assert expected.item() > 0
    assert_close(_deep.size(net, x), 1e-3 / knob**2 * weight_decay(net, x))
    one = _deep.controlled("jacobian", [3, 4, 1], "tanh", knob=knob, seed=0)
    assert_close(_deep.steepness(one, x), jacobian_penalty(one, x, free=knob))


def test_attacks_see_through_large_scores():
    # Two classes on either side of 0.5: a step of 0.5 breaks what is nearer than that.
    net = torch.nn.Linear(2, 2).eval()
    x = torch.tensor([[0.9, 0.5], [0.1, 0.5], [0.4, 0.5], [0.45, 0.5]])
    y = torch.tensor([1, 0, 0, 1])
    for size in (1.0, 1e6):
        net.weight.data = size * torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
        net.bias.data = size * torch.tensor([0.5, -0.5])
        assert _deep.under_attack(net, x, y) == (0.75, 0.0)


def test_the_start_is_measured_on_a_copy():
    data = _deep.noisy_sums(16, 0)
    net = _deep.controlled("hidden", WIDTHS, "relu", knob=0.1, seed=0)
    before = net(data.x)
    one, two = (
        _deep.at_start(_deep.controlled("hidden", [2, 5, 1], "relu", knob=knob, seed=0), data)
        for knob in (0.1, 10.0)
    )
    assert one == pytest.approx(two)  # ReLU(a z) = a ReLU(z)
    _deep.at_start(net, data)
    assert_close(net(data.x), before)


def test_a_process_has_its_own_length_scale():
    # Much data, little noise left: what is learned from sums of many points bends as they do.
    data = _deep.noisy_sums(128, 0)
    scales = [_deep._process(data, knob) for knob in (0.1, 3.0, 10.0)]
    assert scales == sorted(scales, reverse=True)
    assert scales[0] > 5


def sweep(scale, **tables):
    knobs = np.array([0.1, 1.0, 10.0])
    return trends.Sweep(knobs, {"scale": np.array(scale, float), **tables})


def test_slopes_and_ranks_of_known_laws():
    nan = np.nan
    table = [[10.0, 1.0, 5.0], [1.0, 1.0, nan], [0.1, 1.0, 0.05]]
    found = sweep(table)
    assert_close(trends.slopes(found, "scale"), np.array([-1.0, 0.0, -1.0]))
    assert_close(trends.ranks(found, "scale"), np.array([-1.0, 0.0, -1.0]))
    assert trends.spearman(np.arange(4.0), np.array([1.0, 3, 2, 4])) == pytest.approx(0.8)
    assert np.isnan(trends.slopes(sweep([[1.0], [nan], [nan]]), "scale"))[0]


def test_gain_is_that_of_the_best_knob_that_keeps_clean_accuracy():
    plain = trends.Sweep(
        np.ones(1), {"clean": np.array([[0.95, 0.95]]), "robust": np.array([[0.5, 0.6]])}
    )
    tables = {
        "clean": np.array([[0.2, 0.2], [0.94, 0.94], [0.95, np.nan]]),
        "robust": np.array([[0.9, 0.9], [0.7, 0.9], [0.5, np.nan]]),
    }
    gained, knob = trends.gain(sweep([[1.0, 1.0]] * 3, **tables), plain)
    assert (gained.value, knob) == (pytest.approx(0.25), 1.0)
    tables["clean"] = tables["clean"] - 0.5
    gained, knob = trends.gain(sweep([[1.0, 1.0]] * 3, **tables), plain)
    assert (gained.value, gained.exact, gained.n, knob) == (0.0, False, 1, None)


def test_the_nearest_law_is_that_of_the_worst_depth_of_the_best_control():
    def law(power):
        return sweep([[knob**power] * 3 for knob in (0.1, 1.0, 10.0)])

    powers = {("row", 3): -1.1, ("row", 6): -0.7, ("first", 3): -0.8, ("first", 6): -0.9}
    found = {trends.Place("sums", c, "tanh", d): law(power) for (c, d), power in powers.items()}
    found[trends.Place("sums", "row", "tanh", 1)] = law(-9.0)
    best = trends.nearest_law(found, ["row", "first", "spectral"], "tanh")
    assert best is not None
    assert best.value == pytest.approx(0.2)
    assert trends.nearest_law(found, ["row"], "relu") is None
    worst = trends.worst_rank(found, "row", "tanh")
    assert worst is not None
    assert worst.value == pytest.approx(-1)


def test_scale_and_robustness_are_compared_among_able_networks():
    tables = {
        "robust": np.array([[0.3], [0.2], [0.9]]),
        "clean": np.array([[0.95], [0.95], [0.5]]),
    }
    found = {trends.Place("digits", "row", "tanh", 3): sweep([[2.0], [1.0], [0.1]], **tables)}
    together = trends.together(found, "tanh")
    assert together is not None
    assert together.value == pytest.approx(1.0)
    assert trends.together(found, "relu") is None


def test_cells_are_those_that_differ():
    cells = depth.EXPERIMENT.cells(depth.EXPERIMENT.laptop)
    seen = {(c["task"], c["activation"], c["depth"], c["control"]) for c in cells}
    assert len(seen) == len(cells)
    assert ("sums:128", "rbf", 0, "process") in seen
    assert ("digits:1024", "relu", 6, "jacobian") in seen
    assert not {one for one in seen if one[3] == "shared" and one[2] == 1}
    assert {one[3] for one in seen} == {*depth.CONTROLS, "process"}
