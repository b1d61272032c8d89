import pytest
import torch

from cases import dense, points
from inscape.extrapolation import error_map, extrapolation
from inscape.figures import caption, draw, rendered
from inscape.figures.extrapolation import error_picture
from inscape.landscape import aligned, interpolation
from inscape.smoothness import effective_length_scale


def total(x):
    return x.sum(1, keepdim=True)


def bowl(x):
    """No peer fits it without an error, so that no rounding decides which errors are zero."""
    return x.square().sum(1, keepdim=True)


@pytest.fixture(scope="module")
def result():
    x = points(30, 2)
    return extrapolation(dense(2, 6, 1), x, bowl(x), queries=2 * points(40, 2, seed=2), target=bowl)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_errors_are_drawn_by_zone_with_a_curve_for_each_model(result):
    ax = draw(result)
    names = legend(ax)
    assert names[-4:] == ["network", "gaussian process", "nearest neighbour", "linear"]
    assert len(names) == 4 + len(set(result.zones.tolist()))
    drawn = torch.cat(
        [torch.tensor(c.get_offsets().data) for c in ax.collections[: len(names) - 4]]
    )
    assert torch.allclose(drawn[:, 0].sort().values, result.distances.sort().values)
    assert ax.get_yscale() == "log"
    assert caption(result).startswith("Errors against the distance")
    assert rendered(ax)


def test_classes_are_drawn_as_shares():
    x = points(30, 2)
    y = (x[:, 0] > 0).long()
    ax = draw(extrapolation(lambda x: x[:, :1], x, y, baselines=("linear",)))
    assert ax.get_yscale() == "linear"
    assert legend(ax) == ["network", "linear"]
    assert rendered(draw(extrapolation(lambda x: x[:, :1], x, y, baselines=()).profile()))


def test_errors_that_are_exactly_zero_are_drawn_as_such():
    x = points(30, 2)
    ax = draw(
        extrapolation(lambda x: x[:, :1], x, x[:, :1].sign(), baselines=("nearest_neighbour",))
    )
    assert ax.get_yscale() == "linear"
    assert ax.get_ylabel() == "squared error"
    assert min(line.get_ydata().min() for line in ax.lines) < 1e-9


def test_maps_are_bright_where_the_error_is_small():
    result = error_map(lambda x: total(x) + 0.1 * x[:, :1], total, size=16, dtype=torch.float64)
    ax = error_picture(result, limits=(0.0, 5.0), data=points(9, 2))
    (picture,) = ax.images
    shown = torch.tensor(picture.get_array().data)
    assert torch.allclose(shown, -result.errors.log10())
    assert (picture.norm.vmin, picture.norm.vmax) == (0.0, 5.0)
    assert len(ax.collections[0].get_offsets()) == 9
    assert rendered(draw(result))


def test_barriers_are_drawn_with_the_line_between_the_ends():
    x = points(20, 2)
    first, second = dense(2, 6, 1), dense(2, 6, 1, seed=1)
    ax = draw(interpolation(first, x, total(x), other=second, solve=True, align=True))
    assert len(ax.lines) == 3
    assert [text.split(";")[0] for text in legend(ax)] == ["as it is", "last layer solved"]
    assert "aligned" in ax.get_xlabel()
    assert rendered(draw(aligned(first, first.state_dict(), second.state_dict())[1]))


@pytest.mark.parametrize("f", [lambda x: torch.sin(9 * x), lambda x: 2 * x])
def test_deviations_are_drawn_about_those_of_a_process(f):
    result = effective_length_scale(f, points(20, 1), lines=20, process=False, resamples=20)
    ax = draw(result)
    dots, dashed = ax.lines
    assert dashed.get_ydata() == pytest.approx(dashed.get_xdata())
    above = dots.get_ydata() > 0.999 * dots.get_xdata()  # dots lie to both sides of the line
    assert 0.25 < above.mean() <= 1
    assert ("as good as straight" in legend(ax)[0]) == result.straight
    assert rendered(ax)


def test_doubts_are_said_in_the_title():
    x = points(20, 2)
    assert draw(extrapolation(total, x, total(x), baselines=())).get_title() == "read the warnings"
    ask = {"queries": x, "target": total, "baselines": ()}
    assert draw(extrapolation(total, x, total(x), **ask)).get_title() == ""
