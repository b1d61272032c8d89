"""Figures of Boolean functions: what is drawn is what was found."""

import numpy as np
import pytest

import inscape.figures.boolean as figures
from inscape.boolean import analysis, fourier, parity, swaps, table
from inscape.figures.style import new_axes


def test_line_has_a_rule_at_each_change_and_a_mark_for_each_input():
    for result in (swaps(table(1785, 4)), analysis(table(1785, 4))):
        ax = result.plot()
        rules = [line for line in ax.lines if len(set(np.asarray(line.get_xdata()))) == 1]
        marks = [line for line in ax.lines if line.get_marker() in ("o", "s")]
        assert len(rules) == 5
        assert sum(len(line.get_xdata()) for line in marks) == 16
        assert "5" in ax.get_title()


def test_spectrum_has_a_bar_for_each_set():
    ax = fourier(parity(3)).plot()
    heights = [bar.get_height() for bar in ax.patches]
    assert len(heights) == 8
    assert sorted(np.abs(heights)) == [0] * 7 + [1]


def test_shares_of_swaps():
    ax = new_axes()
    figures.swaps_by_inputs({2: [1, 2, 1], 1: [1, 1]}, ax)
    assert [line.get_label() for line in ax.lines] == ["n = 1", "n = 2"]
    assert ax.lines[1].get_ydata() == pytest.approx([0.25, 0.5, 0.25])


def test_families_and_metrics():
    ax = new_axes()
    figures.families_by_inputs(
        {3: {"read_once": [1, 4]}, 4: {"read_once": [1, 8, 0, 1]}}, {4: 5}, ax
    )
    assert list(ax.lines[0].get_ydata()) == [1, 3]
    ax = new_axes()
    figures.metric_by_swaps([[0, 1, 2], [3, 4, 5]], "degree", ax)
    assert list(ax.lines[0].get_ydata()) == [1, 4]
