"""What stands on the pictures of curvature is what stands in the results."""

import pytest
import torch

from cases import dense, points
from inscape.figures import draw
from inscape.landscape import hessian_density, hessian_extremes, sharpness, stationarity
from inscape.landscape.sharpness import FORMS

X = points(20, 3)
Y = torch.arange(20) % 2
NET = dense(3, 6, 2)


def test_the_density_integrates_to_one():
    result = hessian_density(NET, X, Y, probes=2, steps=6)
    line = draw(result).lines[0]
    at, density = (torch.as_tensor(values) for values in line.get_data())
    assert float(torch.trapezoid(density, at)) == pytest.approx(1, abs=0.02)


def test_both_ends_and_their_bounds_are_drawn():
    result = hessian_extremes(NET, X, Y)
    ax = draw(result)
    drawn = {float(x) for line in ax.lines for x in line.get_xdata()}
    assert {result.smallest, result.largest, result.below, result.above} <= drawn
    assert "(proved)" in ax.get_xlabel()


def test_three_forms_are_drawn_beside_those_of_the_rescaled_twin():
    result = sharpness(NET, X, Y)
    ax = draw(result)
    first, second = ax.lines[:2]
    assert list(first.get_ydata()) == result.values.tolist()
    assert list(second.get_ydata()) == result.rescaled.tolist()
    assert [text.get_text() for text in ax.get_xticklabels()] == list(FORMS)


def test_each_tensor_has_a_bar_as_long_as_its_gradient():
    result = stationarity(NET, X, Y)
    ax = draw(result)
    assert [bar.get_width() for bar in ax.patches] == result.norms.tolist()
    assert set(ax.lines[0].get_xdata()) == {result.total}
