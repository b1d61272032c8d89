"""Networks that learn sine: what is counted, and what is kept."""

from math import pi, sin

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.boolean.line_networks import linear, through
from inscape.papers.sattelberg import _sine
from inscape.papers.sattelberg.figure_5_4 import error
from inscape.papers.sattelberg.learned_sine import tangent

SETTINGS = {"trials": 6, "epochs": 30, "more": 10, "accept": 0.45, "lr": 0.1}


def test_success_is_what_the_plain_loop_gives():
    from inscape.papers.sattelberg._seeds import own_seed
    from inscape.training import fit

    found = _sine.cell(width=2, depth=2, batch=100, **SETTINGS)
    x, y = _sine.data()
    good = []
    for trial in range(6):
        model = _sine.network(2, 2, own_seed(2, 2, trial))
        fit(model, x, y, lr=0.1, epochs=30, progress=False)
        with torch.no_grad():
            good.append(float(((model(x) - y) ** 2).mean()) < 0.45)
    assert found["successes"] == sum(good)
    assert found["first"] == good.index(True) + 1
    assert len(found["fits"]) == min(3, sum(good))


def test_fits_are_whole_lines():
    found = _sine.cell(width=3, depth=1, batch=100, **SETTINGS)["fits"][0]
    assert found["knots"][0] == pytest.approx(-pi)
    assert found["knots"][-1] == pytest.approx(pi)
    assert 1 <= len(found["slopes"]) <= 4
    assert found["mse"] == pytest.approx((found["mse_negative"] + found["mse_positive"]) / 2)


def test_small_batches_keep_no_networks():
    found = _sine.cell(width=2, depth=1, batch=32, **SETTINGS)
    assert found["fits"] == []
    assert found["successes"] > 0


def test_runs_that_diverge_are_failures():
    found = _sine.cell(width=10, depth=3, batch=100, **{**SETTINGS, "lr": 1e6})
    assert found["diverged"] > 0
    assert found["successes"] + found["diverged"] <= 6


def test_a_dead_layer_makes_a_constant():
    one = torch.ones(2, 1, dtype=torch.float64)
    dead, alive = (
        nn.Sequential(linear(one * on, one[:, 0] * 9 * on - 1), nn.ReLU(), nn.Linear(2, 1)).float()
        for on in (0, 1)
    )
    x, _ = _sine.data()
    assert _sine.constants([dead, alive], x) == [True, False]


def test_error_is_the_integral():
    x = torch.linspace(-pi, pi, 4, dtype=torch.float64)
    y = torch.tensor([0.3, -1.0, 0.7, 0.1], dtype=torch.float64)
    grid = torch.linspace(-pi, pi, 200_001, dtype=torch.float64)
    with torch.no_grad():
        squares = (torch.sin(grid) - through(x, y)(grid[:, None])[:, 0]) ** 2
    whole = torch.trapezoid(squares, grid) / (2 * pi)
    assert error(x.tolist(), y.tolist()) == pytest.approx(float(whole), rel=1e-8)


def test_tangents_touch_sine():
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    torch.sin(x).backward()
    slope, intercept = tangent(0.7)
    assert_close(x.grad, torch.tensor(slope, dtype=torch.float64))
    assert slope * 0.7 + intercept == pytest.approx(sin(0.7))
