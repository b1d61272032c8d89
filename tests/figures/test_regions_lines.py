"""Figures of regions along lines."""

import pytest
from matplotlib.figure import Figure

from cases import dense, points
from inscape.regions import line_regions


@pytest.fixture
def ax():
    return Figure().subplots()


def test_a_dot_for_each_knot_and_a_rule_where_segments_meet(ax):
    result = line_regions(dense(2, 6, 2), points(3, 2))
    result.plot(ax=ax)
    curves = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(curves) == 2
    assert all(len(line.get_xdata()) == len(result.t) for line in curves)
    assert curves[0].get_xdata()[-1] == pytest.approx(float(result.lengths.sum()))
    assert len(ax.lines) == 3


def test_many_segments_are_counted(ax):
    result = line_regions(dense(2, 6, 1), points(9, 2), pairs=30)
    result.plot(ax=ax)
    assert ax.get_xlabel() == "linear regions on a line between two points"
    assert len(ax.patches) > 0
