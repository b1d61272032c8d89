"""The theorems on small networks, each side by another way."""

import copy

import pytest
import torch
from torch import nn

from inscape.lab import Record
from inscape.lab.quantities import Largest, Slope
from inscape.lab.records import Records
from inscape.lab.statistics import log_slope
from inscape.papers.courtois import (
    _descent,
    residual,
    section_4_1,
    section_4_2,
    theorem_1,
    theorem_2,
    theorem_3,
)
from inscape.training import cross_entropy, mse

X, Y = _descent.ball(12, seed=0)
AT = _descent.queries(5, seed=0)


def record(settings: dict, values: dict, scale: str = "laptop") -> Record:
    return Record(
        schema=1, experiment="courtois/x", scale=scale, key="0", settings=settings, data="none",
        values=values, claims={}, provenance={},
    )  # fmt: skip


def test_speed_is_that_of_a_small_step_down():
    model = _descent.network(width=4, seed=1)
    speed = _descent.speed(model, X, Y, AT, mse)
    ends = []
    for step in (1e-4, -1e-4):
        moved = copy.deepcopy(model)
        mse(moved(X), Y).backward()
        with torch.no_grad():
            for p in moved.parameters():
                p -= step * p.grad
        ends.append(moved(AT).detach())
    torch.testing.assert_close(speed, (ends[0] - ends[1]) / 2e-4, rtol=1e-5, atol=1e-8)


def test_speed_is_a_kernel_machine_for_several_outputs():
    model = _descent.network(width=4, outputs=3, seed=1)
    y = torch.arange(12) % 3
    speed = _descent.speed(model, X, y, AT, cross_entropy)
    torch.testing.assert_close(_descent.machine(model, X, y, AT, cross_entropy), speed)


def test_theorem_1_in_small():
    cells = [theorem_1.cell(eta, 1.0, 12, 5, 0) for eta in (0.1, 0.05)]
    assert all(cell["derivative error"] < 1e-12 for cell in cells)
    assert cells[0]["residual"] / cells[1]["residual"] == pytest.approx(2, rel=0.1)
    assert cells[0]["spread"] > 0


@pytest.mark.parametrize(("case", "power"), [(c, p) for c, (p, _) in theorem_2.POWERS.items()])
def test_theorem_2_in_small(case: str, power: float):
    sizes = [theorem_2.cell(case, eta, 0.08, 4, 12, 5, 0)["residual"] for eta in (0.008, 0.004)]
    assert log_slope([0.008, 0.004], sizes) == pytest.approx(power, abs=0.1)


def test_theorem_2_is_exact_for_linear_regression():
    found = theorem_2.cell(theorem_2.LINEAR, 0.1, 1.0, 9, 12, 5, 0)
    assert found["residual"] < 1e-14 < 1e-3 < found["change"]
    assert found["squares"] == pytest.approx(0.09)


@pytest.mark.parametrize("loss", theorem_3.LOSSES)
def test_theorem_3_in_small(loss: str):
    found = theorem_3.cell(loss, 0.1, 0.5, 3, 9, 3, 0)
    assert found["blocks"] < 1e-13
    assert found["exact residual"] < 1e-13 < 1e-5 < found["residual"]


def test_section_4_1_in_small():
    found = section_4_1.cell(3, 10, 6, 0.1, 0)
    assert max(found[name] for name in section_4_1.ERRORS) < 1e-14


def test_section_4_2_in_small():
    found = section_4_2.cell("tanh", 5, 3, 20, 0)
    assert found["error"] < 1e-14
    assert found["accuracy"] == found["accuracy of a"]


def test_a_power_over_seeds():
    rows = [
        record({"eta": eta, "seed": seed}, {"residual": (1 + seed) * eta**power})
        for seed, power in ((0, 1.9), (1, 2.1))
        for eta in (0.1, 0.2, 0.4)
    ]
    found = Slope("eta", "residual")(rows)
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert found.n == 2
    assert Slope("eta", "residual")(rows[:1]) is None
    assert Slope("eta", "residual")([]) is None


def test_the_largest_error_is_no_estimate():
    found = Largest("off")([record({"seed": 0}, {"off": off}) for off in (1e-3, 5e-3, 2e-3)])
    assert (found.value, found.low, found.high, found.exact) == (5e-3, 5e-3, 5e-3, True)


@pytest.mark.parametrize("scale", residual.MIDDLE)
def test_lines_cross_at_the_middle(scale: str):
    points = residual.points(scale)
    rows = [
        record({"point": p, "seed": 0}, dict(zip(residual.NAMES, p, strict=True)), scale)
        for p in points
    ]
    lines = residual.lines(Records(rows))
    assert {line: len(some) for line, some in lines.items()} == {
        "step": 6, "step at fixed time": 4, "steps": 4, "width": 5, "samples": 4,
    }  # fmt: skip
    assert len(points) == 6 + 4 + 4 + 5 + 4 - 4  # the middle belongs to all lines
    time = residual.MIDDLE[scale][0] * residual.MIDDLE[scale][1]
    for one in lines["step at fixed time"]:
        assert one.values["eta"] * one.values["steps"] == pytest.approx(time)


def test_the_residual_of_one_cell():
    found = residual.cell([0.1, 3, 4, 8], 3, 0)
    assert found["exact"] < 1e-13 < 1e-6 < found["first-order"] < 0.1
    assert found["squares"] == pytest.approx(0.03)


def test_descent_of_one_step_is_the_loss_gradient():
    model = nn.Linear(2, 1, bias=False, dtype=torch.float64).eval()
    before = model.weight.detach().clone()
    _descent.descent(model, X, Y, eta=0.5, steps=1)
    slope = 2 * (X @ before.T - Y).T @ X / len(X)
    torch.testing.assert_close(model.weight.detach(), before - 0.5 * slope)
