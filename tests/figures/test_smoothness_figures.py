"""What stands on the paper is what stands in the result."""

import pytest
import torch
from matplotlib.patches import Rectangle, StepPatch
from torch.testing import assert_close

from inscape._core import NotApplicable
from inscape.figures import draw
from inscape.figures.smoothness import DOTS, KNOTS
from inscape.smoothness import (
    GradientNorm,
    GradientPathLength,
    PathLength,
    SlopeVariation,
    TotalVariation,
    WeightsProduct,
)

SOME = torch.rand(200, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def lines(ax):
    return [torch.as_tensor(line.get_xydata()) for line in ax.lines]


@pytest.mark.parametrize(
    "result",
    [
        GradientNorm(norms=SOME, outputs=1, seed=0),
        GradientPathLength(lengths=SOME, knots=3, outputs=1, seed=0),
    ],
    ids=["gradient_norm", "gradient_path_length"],
)
def test_histogram_holds_every_sample_and_marks_the_mean(result):
    ax = draw(result)
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert sum(bar.get_height() for bar in bars) == len(SOME)
    mean, interval = lines(ax)
    summary = result.summary()
    assert mean[:, 0].tolist() == [summary.value] * 2
    assert interval[:, 0].tolist() == [summary.low, summary.high]
    assert ax.get_xlim()[0] == 0


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_histogram_of_equal_values_is_one_bar(value):
    ax = draw(GradientNorm(norms=torch.full((7,), value), outputs=1, seed=0))
    heights = [patch.get_height() for patch in ax.patches]
    assert max(heights) == 7
    assert sum(heights) == 7


def test_one_sample_has_a_mean_and_no_interval():
    ax = draw(GradientNorm(norms=torch.ones(1), outputs=1, seed=0))
    assert len(ax.lines) == 1


def test_paths_are_dots_above_the_diagonal():
    result = PathLength(lengths=SOME + 1, distances=SOME, knots=5, outputs=1, seed=0)
    ax = draw(result)
    dots = torch.as_tensor(ax.collections[0].get_offsets().data)
    assert_close(dots, torch.stack([SOME, SOME + 1], dim=1))
    (diagonal,) = lines(ax)
    assert diagonal[:, 0].tolist() == diagonal[:, 1].tolist()
    assert ax.get_ylim()[1] > float(dots[:, 1].max())


def test_very_many_paths_become_hexagons_that_hold_them_all():
    many = torch.rand(DOTS + 1, generator=torch.Generator().manual_seed(2))
    ax = draw(PathLength(lengths=many, distances=many, knots=5, outputs=1, seed=0))
    assert float(ax.collections[0].get_array().sum()) == DOTS + 1


def test_constant_function_can_be_drawn():
    zero = torch.zeros(5)
    ax = draw(PathLength(lengths=zero, distances=zero, knots=5, outputs=1, seed=0))
    assert ax.get_xlim()[1] > 0
    assert ax.get_ylim()[1] > 0


def test_shares_of_hidden_units_run_from_none_to_all():
    ax = draw(WeightsProduct(terms=torch.tensor([1.0, 3.0, 0.0]), outputs=1))
    even, shares = lines(ax)
    assert even.tolist() == [[0, 0], [3, 1]]
    assert shares.tolist() == [[0, 0], [1, 0.75], [2, 1], [3, 1]]


def test_dead_network_has_no_shares():
    _, shares = lines(draw(WeightsProduct(terms=torch.zeros(4), outputs=1)))
    assert shares[:, 1].tolist() == [0.0] * 5


def test_curve_passes_through_its_knots():
    at = torch.linspace(0, 1, 6, dtype=torch.float64)
    values = torch.stack([at, at**2], dim=1)
    ax = draw(TotalVariation(at=at, values=values, exact=True))
    for k, line in enumerate(lines(ax)):
        assert_close(line, torch.stack([at, values[:, k]], dim=1))
    assert {line.get_marker() for line in ax.lines} == {"o"}
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["output 0", "output 1"]


@pytest.mark.parametrize(("exact", "knots"), [(False, 6), (True, KNOTS + 1)])
def test_knots_are_marked_only_where_they_are_few_and_real(exact, knots):
    at = torch.linspace(0, 1, knots, dtype=torch.float64)
    ax = draw(TotalVariation(at=at, values=at[:, None], exact=exact))
    assert [line.get_marker() for line in ax.lines] == [""]
    assert ax.get_legend() is None


def test_many_outputs_share_one_colour():
    at = torch.linspace(0, 1, 6, dtype=torch.float64)
    ax = draw(TotalVariation(at=at, values=at[:, None].repeat(1, 9), exact=True))
    assert len(ax.lines) == 9
    assert len({line.get_color() for line in ax.lines}) == 1


def test_slope_of_pieces_is_drawn_in_steps():
    at = torch.tensor([0.0, 0.25, 1.0], dtype=torch.float64)
    slopes = torch.tensor([[2.0], [-1.0]], dtype=torch.float64)
    ax = draw(SlopeVariation(at=at, slopes=slopes, exact=True))
    (steps,) = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
    values, edges, _ = steps.get_data()
    assert values.tolist() == [2.0, -1.0]
    assert edges.tolist() == at.tolist()


def test_slope_at_points_is_drawn_as_a_line():
    at = torch.linspace(0, 1, 5, dtype=torch.float64)
    ax = draw(SlopeVariation(at=at, slopes=at[:, None], exact=False))
    assert_close(lines(ax)[1], torch.stack([at, at], dim=1))


def test_reason_is_written_where_nothing_can_be_drawn():
    ax = draw(NotApplicable(what="weights_product", reason="it has three layers"))
    (text,) = ax.texts
    assert text.get_text() == "weights product\nnot applicable: it has three layers"
    assert not ax.axison
