"""The figure of a robustness curve."""

import pytest
import torch
from torch import nn

from cases import points
from inscape.figures import draw, rendered
from inscape.figures import robustness as figures
from inscape.robustness import robustness
from robustness.lines import linear


def curve(shape, **settings):
    model = nn.Sequential(nn.Flatten(), linear(torch.Size(shape).numel(), 3)).eval()
    x = points(30, *shape)
    return robustness(model, x, model(x).argmax(1), sanity=False, **settings)


def test_the_curve_shows_every_budget_and_its_interval():
    found = curve((3,), budgets=[0.1, 0.4, 0.8])
    ax = draw(found)
    (line,) = ax.lines
    assert line.get_xdata() == pytest.approx(found.budgets.tolist())
    assert line.get_ydata() == pytest.approx((100 * found.accuracy).tolist())
    assert len(ax.collections) == 1
    assert not ax.child_axes  # three numbers are no picture
    assert ax.get_xscale() == "linear"
    assert ax.get_xlabel() == "length of the step (L2)"


def test_wide_budgets_stand_on_a_logarithmic_axis_with_the_way_to_another_class():
    found = curve((3,))
    ax = draw(found)
    assert ax.get_xscale() == "symlog"
    ticks = ax.get_xticks().tolist()
    assert ticks[0] == 0
    assert len(ticks) > 1
    assert min(ticks[1:]) >= found.budgets[1]  # smaller ones would be printed upon the zero
    assert ax.texts[0].get_va() == ("bottom" if found.accuracy[-1] > 0.5 else "top")
    assert list(ax.lines[1].get_xdata()) == pytest.approx([found.rival / 2] * 2)


@pytest.mark.parametrize("shape", [(16,), (3, 4, 4)])
def test_images_are_shown_before_and_after(shape):
    found = curve(shape, budgets=[0.05, 5.0])
    ax = draw(found)
    assert len(ax.child_axes) == 9
    words = [inset.get_title() for inset in ax.child_axes[:3]]
    assert words[0] == f"class {int(found.label[0])}"
    assert words[1].startswith("step")
    assert words[2] == f"now {int(found.answer[0])}"
    assert rendered(ax) == rendered(draw(found))


def test_pictures_go_where_the_curve_is_not():
    steep, flat = (
        curve((4, 4), budgets=budgets) for budgets in ([0.5, 8.0, 9.0], [0.01, 0.02, 0.6])
    )
    for found, corner in ((steep, figures.UPPER), (flat, figures.LOWER)):
        ax = draw(found)
        box = ax.child_axes[6].get_position()  # the first picture of the last row
        assert ax.child_axes
        assert box.width > 0
        left = ax.transAxes.inverted().transform(
            ax.get_figure().transFigure.transform((box.x0, box.y0))
        )
        assert abs(left[0] - corner[0]) < 0.1


def test_a_curve_in_doubt_says_so_and_noise_names_its_axis():
    blind = robustness(
        lambda x: (x * 4).round() @ torch.eye(2, dtype=torch.float64),
        points(20, 2),
        (points(20, 2) * 4).round().argmax(1),
        budgets=[0.5],
    )
    assert blind.warnings
    assert draw(blind).get_title().endswith("read the warning")
    assert "standard deviation" in draw(curve((3,), attack="noise", budgets=[0.1])).get_xlabel()
