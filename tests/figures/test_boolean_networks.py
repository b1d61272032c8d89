"""Pictures of Boolean functions: every corner apart, every change marked."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from inscape.boolean.truth_table import TruthTable, parity
from inscape.figures.boolean_networks import corners, draw_cube, draw_line, draw_success
from inscape.figures.style import VERMILION


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_two_corners_fall_together(n: int):
    places = corners(n)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert apart[~np.eye(2**n, dtype=bool)].min() > 0.3


@pytest.mark.parametrize(("table", "thick"), [(parity(4), 32), (TruthTable(3, 1), 3)])
def test_edges_with_a_change_are_marked(ax, table: TruthTable, thick: int):
    draw_cube(table, ax)
    assert len(ax.lines) == table.n * 2 ** (table.n - 1)
    assert sum(to_hex(line.get_color()) == VERMILION.lower() for line in ax.lines) == thick


def test_more_inputs_have_no_cube(ax):
    with pytest.raises(ValueError, match="a cube is drawn for 1 to 4 inputs, found 5"):
        draw_cube(parity(5), ax)


def test_the_network_crosses_zero_between_the_bands(ax):
    draw_line(parity(3), [1, 1, 1], ax)
    assert len(ax.patches) == 4
    x, y = (np.asarray(part, float) for part in ax.lines[-1].get_data())
    crossings = x[:-1][(y[:-1] > 0) != (y[1:] > 0)]
    assert crossings == pytest.approx([-2, 0, 2], abs=0.01)


def test_a_constant_has_one_band_and_no_network(ax):
    draw_line(TruthTable(2, 0), [1, 2], ax)
    assert (len(ax.patches), len(ax.lines)) == (1, 1)


def test_success_has_a_mark_for_each_row(ax):
    rows = [
        {"size": size, "activation": kind, "fraction": 0.5, "low": 0.4, "high": 0.6}
        for size in ("2-2-1", "2-3-1")
        for kind in ("leaky ReLU", "ReLU")
    ]
    draw_success(rows, ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2-2-1", "2-3-1"]
    assert sum(len(line.get_xdata()) for line in ax.lines) == 4
