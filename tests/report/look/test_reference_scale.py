import math

import pytest
import torch

from inscape._core import Summary
from inscape.report.look.parts import Measured, Reference
from inscape.report.look.reference_scale import LEFT, RIGHT, scale
from inscape.smoothness import GradientNorm


def measured(value, *others, low=None, high=None):
    summary = None
    if value is not None:
        summary = Summary(value=value, kind="exact", basis="", low=low, high=high)
    return Measured(
        name="gradient_norm",
        title="",
        family="smoothness",
        meaning="",
        cites="",
        doc="",
        result=GradientNorm(norms=torch.ones(2), outputs=1, seed=0),
        summary=summary,
        references=tuple(others),
        seconds=0.0,
        command="",
    )


def line(value, **more):
    return Reference(name="linear", label="the linear model", value=value, **more)


def test_linear_axis_starts_at_zero_so_that_lengths_compare():
    result = scale(measured(4.0, line(2.0)))
    assert not result.logarithmic
    network, other = result.marks
    assert other.at - LEFT == pytest.approx((network.at - LEFT) / 2, abs=0.02)
    assert result.ticks[0] == (LEFT, "0")
    assert [text for _, text in result.ticks] == ["0", "2", "4"]


def test_wide_ranges_go_on_a_logarithmic_axis():
    result = scale(measured(1000.0, line(10.0), Reference(name="bound", label="b", value=100.0)))
    assert result.logarithmic
    network, low, middle = (mark.at for mark in result.marks)
    assert middle == pytest.approx((network + low) / 2, abs=0.02)
    assert {"10", "100", "1,000"} <= {text for _, text in result.ticks}


@pytest.mark.parametrize("value", [1e-9, 0.3, 7.0, 1e12])
@pytest.mark.parametrize("factor", [1.0, 3.0, 40.0, 1e7])
def test_all_marks_and_ticks_stand_on_the_track(value, factor):
    result = scale(measured(value, line(value * factor), low=value / 2, high=value * 2))
    places = [
        at for mark in result.marks for at in (mark.at, mark.low, mark.high) if at is not None
    ]
    assert all(LEFT <= at <= RIGHT for at in (*places, *(at for at, _ in result.ticks)))
    assert 2 <= len(result.ticks) <= 9
    assert len({text for _, text in result.ticks}) == len(result.ticks)


@pytest.mark.parametrize("value", [0.0, -2.0])
def test_zero_and_negative_values_have_a_place(value):
    result = scale(measured(value, line(0.0)))
    assert not result.logarithmic
    assert all(mark.at is not None for mark in result.marks)


def test_interval_that_reaches_below_a_logarithmic_axis_is_cut_off():
    result = scale(measured(1000.0, line(1.0, low=-1.0, high=3.0)))
    assert result.marks[1].low == LEFT


def test_missing_and_endless_references_keep_their_line():
    gone = Reference(name="initialisation", label="fresh", reason="not available: no weights")
    result = scale(measured(1.0, gone, line(math.inf)))
    assert result.marks[1].at is None
    assert result.marks[1].note == "not available: no weights"
    assert result.marks[2].at is None
    assert result.marks[2].text == "∞"


def test_no_number_no_scale():
    assert scale(measured(None)) is None
    assert scale(measured(math.inf)) is None


def test_logistic_regression_is_called_by_its_name():
    named = Reference(name="linear", label="logistic regression", value=1.0)
    assert scale(measured(1.0, named)).marks[1].label == "logistic regression"
    assert scale(measured(1.0, line(1.0))).marks[1].label == "linear model"
