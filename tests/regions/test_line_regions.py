import copy
import itertools
from importlib import import_module

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import inscape
from cases import CASES, dense, points
from inscape._core import BudgetError, NotApplicable, UnsupportedModelError
from inscape.functional.jacobians import jacobians
from inscape.piecewise.lines import segments
from inscape.regions.line_regions import LineRegions, line_regions
from inscape.smoothness import path_length, slope_variation, total_variation

INTERVAL = torch.tensor([[-2.0], [2.0]], dtype=torch.float64)


def spline(x):
    """The spline of Volhejn's Eq. (3.11) through the four points of example (3.14)."""
    return torch.relu(-x - 1) + torch.relu(x - 1)


def thesis_example(x):
    """Eq. (3.14) itself, which is a parabola between the inner two points."""
    return torch.where(x.abs() >= 1, x.abs() - 1, (x**2 - 1) / 2)


def test_thesis_example_has_the_printed_values_and_its_parabola_does_not_apply():
    result = line_regions(spline, INTERVAL)
    assert result.t.tolist() == [0.0, 0.25, 0.75, 1.0]
    assert result.values.flatten().tolist() == [1.0, 0.0, 0.0, 1.0]
    assert result.slopes.flatten().tolist() == [-1.0, 0.0, 1.0]
    assert result.variation.tolist() == [2.0]
    assert result.slope_variation.tolist() == [2.0]
    other = line_regions(thesis_example, INTERVAL)
    assert isinstance(other, NotApplicable)
    assert "must be made of affine operations" in other.reason


@pytest.mark.parametrize("case", ["one input", "deep, one input"])
def test_one_input_gives_the_one_dimensional_measures(case):
    f, x, _ = CASES[case]()
    ends = torch.stack([x.min(0).values, x.max(0).values])
    result = line_regions(f, ends)
    assert float(result.variation) == pytest.approx(total_variation(f, x).summary().value)
    assert float(result.slope_variation) == pytest.approx(slope_variation(f, x).summary().value)


def test_polyline_goes_through_its_vertices_and_home_when_closed():
    f, x, _ = CASES["deep relu"]()
    result, closed = line_regions(f, x), line_regions(f, x, closed=True)
    assert torch.equal(result.starts, x[:-1])
    assert torch.equal(result.stops, x[1:])
    assert torch.equal(closed.stops[-1], x[0])
    assert len(closed.cells) == len(result.cells) + 1 == len(x)
    with torch.no_grad():
        assert_close(result.values, f(result.points()))
    assert_close(result.lengths, (x[1:] - x[:-1]).norm(dim=1))


def test_segments_may_be_given_by_both_ends_or_drawn():
    f, x, _ = CASES["deep relu"]()
    given = line_regions(f, x[:-1], to=x[1:])
    assert torch.equal(given.t, line_regions(f, x).t)
    drawn = line_regions(f, x[:3], pairs=50, seed=4)
    assert len(drawn.cells) == 50
    assert drawn.seed == 4
    assert float(drawn.lengths.min()) > 0  # no point is paired with itself
    ends = path_length(f, x, pairs=50, exact=True)
    assert ends.lengths.mean() > 0


def test_slopes_are_the_gradient_along_the_line_by_arc_length():
    f, x, _ = CASES["two-layer, three outputs"]()
    result = line_regions(f, x, maps=True)
    segment = torch.repeat_interleave(torch.arange(len(result.cells)), result.cells)
    first = torch.arange(len(segment)) + segment
    middle = (result.points()[first] + result.points()[first + 1]) / 2
    direction = ((result.stops - result.starts) / result.lengths[:, None])[segment]
    gradients = jacobians(f, middle)
    assert_close(result.slopes, (gradients @ direction[:, :, None])[:, :, 0])
    assert_close(result.maps, gradients)
    share = torch.rand(len(segment), 1, generator=torch.Generator().manual_seed(0)).double()
    inside = torch.lerp(result.points()[first], result.points()[first + 1], share)
    with torch.no_grad():
        y = (result.maps @ inside[:, :, None])[:, :, 0] + result.biases
        assert_close(y, f(inside))


def test_patterns_differ_between_neighbours_in_the_units_that_switch():
    f, x, _ = CASES["deep relu"]()
    result = line_regions(f, x, patterns=True)
    assert result.patterns.shape == (int(result.cells.sum()), 12)
    segment = torch.repeat_interleave(torch.arange(len(result.cells)), result.cells)
    flips = (result.patterns[1:] != result.patterns[:-1]).sum(1)
    assert bool((flips[segment.diff() == 0] == 1).all())  # no two units switch at one place


@pytest.mark.parametrize(
    ("f", "end", "slope"),
    [
        (lambda x: x[:, :1].abs(), [0.0, 1.0], [-1.0, 0.0]),  # autograd takes 0
        (lambda x: torch.maximum(x[:, 1:], x[:, :1]), [1.0, 1.0], [0.0, 1.0]),  # and the mean
        (lambda x: torch.relu(0.1 * x[:, :1] - 0.3 * x[:, 1:]), [3.0, 1.0], [0.0, 0.0]),
    ],
)
def test_maps_of_lines_inside_a_kink_are_those_of_the_pattern_there(f, end, slope):
    end = torch.tensor([end], dtype=torch.float64)
    starts = -end * torch.linspace(0.1, 0.9, 50).double()[:, None]
    result = line_regions(f, starts, to=end.expand(50, 2), maps=True, patterns=True)
    assert_close(result.maps, torch.tensor([[slope]] * 50, dtype=torch.float64))
    assert not result.patterns.any()
    assert_close(result.biases, torch.zeros(50, 1).double())


def test_dense_sampling_never_beats_the_exact_variation():
    f, x, _ = CASES["deep relu"]()
    result = line_regions(f, x)
    t = torch.linspace(0, 1, 20_001, dtype=torch.float64)[:, None]
    for i in range(len(x) - 1):
        with torch.no_grad():
            secants = float(f(torch.lerp(x[i], x[i + 1], t)).diff(dim=0).norm(dim=1).sum())
        assert -1e-12 < float(result.variation[i]) - secants < 1e-3  # corners of 1/20,000


@pytest.mark.parametrize("small", [0, 2**15], ids=["compiled", "plain"])
def test_order_and_scale_of_hidden_units_do_not_matter(small, monkeypatch):
    monkeypatch.setattr(segments, "SMALL", small)
    f, x, _ = CASES["deep relu"]()
    other = copy.deepcopy(f)
    linear = [m for m in other if isinstance(m, nn.Linear)]
    with torch.no_grad():
        for first, second in itertools.pairwise(linear):
            order = torch.randperm(6, generator=torch.Generator().manual_seed(3))
            scale = torch.logspace(-8, 7, 6).double()
            first.weight.copy_(first.weight[order])
            first.bias.copy_(first.bias[order])
            second.weight.copy_(second.weight[:, order])
            first.weight *= scale[:, None]
            first.bias *= scale
            second.weight /= scale
    result, expected = line_regions(other, x), line_regions(f, x)
    for name in ("t", "values", "slopes", "cells", "merged", "variation", "slope_variation"):
        assert_close(getattr(result, name), getattr(expected, name))


def test_cells_and_merged_pieces_differ_where_a_kink_does_not_show():
    f = dense(2, 6, 1)
    with torch.no_grad():
        f[2].weight[0, 2] = 0.0  # this unit has a kink, which the output does not read
    ends = 5 * points(20, 2)
    result = line_regions(f, ends)
    unit = (ends @ f[0].weight[2] + f[0].bias[2]).detach()
    crossed = ((unit[1:] > 0) != (unit[:-1] > 0)).long()
    assert crossed.sum() > 3
    assert torch.equal(result.cells - result.merged, crossed)


def test_prelu_of_slope_one_makes_cells_that_merge():
    f = nn.Sequential(nn.Linear(1, 3), nn.PReLU(init=1.0), nn.Linear(3, 1)).double().eval()
    with torch.no_grad():
        f[0].weight.fill_(1.0)
        f[0].bias.copy_(torch.tensor([-1.0, 0.0, 1.0]))
    result = line_regions(f, INTERVAL)
    assert result.cells.tolist() == [4]
    assert result.merged.tolist() == [1]
    assert result.summary().value == 4.0
    assert result.summary().basis == "1 segments, 1 when merged"


@pytest.mark.filterwarnings("ignore:the model is in float16")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_other_precision_is_converted_and_said(dtype):
    f, x, _ = CASES["deep relu"]()
    result = line_regions(f.to(dtype), x.to(dtype))
    assert result.converted == "float32"
    exact = line_regions(f.double(), x.to(dtype).double())
    assert exact.converted is None
    assert torch.equal(result.t, exact.t)


def test_images_and_pooling():
    torch.manual_seed(0)
    f = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2))
    f, x = f.double().eval(), points(4, 1, 6, 6)
    result = line_regions(f, x, maps=True)
    assert result.maps.shape == (int(result.cells.sum()), 2, 36)
    with torch.no_grad():
        assert_close(result.values, f(result.points()))


@pytest.mark.parametrize("inputs", [1, 3, 400])
def test_a_segment_without_kinks_has_no_change_of_gradient(inputs):
    model, x = dense(inputs, 1, 3, act=nn.Hardtanh), 1e-3 * points(9, inputs)
    result = line_regions(model, x, pairs=1, gradients=True)
    assert result.cells == 1
    assert result.gradient_variation.tolist() == [0.0]


def test_rows_and_save_tell_of_every_piece(tmp_path):
    f, x, _ = CASES["two-layer"]()
    result = line_regions(f, x, patterns=True, maps=True)
    rows = list(result.rows())
    assert len(rows) == int(result.cells.sum())
    assert sum(row["length"] for row in rows) == pytest.approx(float(result.lengths.sum()))
    travelled = sum(row["length"] * row["slope"] for row in rows)
    assert travelled == pytest.approx(float(result.variation.sum()))
    again = inscape.load(result.save(tmp_path / "lines.json"))
    assert isinstance(again, LineRegions)
    assert torch.equal(again.maps, result.maps)
    assert again.patterns.dtype == result.patterns.dtype


def test_bad_segments_are_named():
    f, x, _ = CASES["deep relu"]()
    with pytest.raises(ValueError, match=r"two different points, found 1 of 2 .* at row 1: drop"):
        line_regions(f, x[[0, 1, 1]])
    with pytest.raises(ValueError, match="x must hold at least 2 vertices, found 1: pass a line"):
        line_regions(f, x[:1])
    with pytest.raises(ValueError, match="at most one of to, closed and pairs may be given"):
        line_regions(f, x, closed=True, pairs=3)
    with pytest.raises(ValueError, match="pairs must be at least 1, found 0"):
        line_regions(f, x, pairs=0)
    with pytest.raises(ValueError, match="different points to draw pairs from, found nearly none"):
        line_regions(f, x[[0, 0]], pairs=3)
    with pytest.raises(ValueError, match="x must be finite, found NaN or Inf in 1 of 11 points"):
        line_regions(f, torch.where(x == x[3], torch.nan, x))
    with pytest.raises(ValueError, match="to must be finite, found NaN or Inf in 1 of 11 points"):
        line_regions(f, x, to=torch.where(x == x[3], torch.nan, x))


def test_ends_of_another_shape_are_named(unchecked):
    f, x, _ = CASES["deep relu"]()
    with pytest.raises(ValueError, match=r"to must hold one point .* found shape \(2, 2\) for"):
        line_regions(f, x, to=x[:2])


def test_what_would_be_too_large_is_refused(monkeypatch):
    f, x, _ = CASES["deep relu"]()
    monkeypatch.setattr(import_module("inscape.regions._line_maps"), "LARGEST", 10)
    with pytest.raises(BudgetError, match="maps of all pieces must hold at most 10 numbers, but"):
        line_regions(f, x, maps=True)
    with pytest.raises(BudgetError, match="patterns of all pieces must hold at most 10 numbers"):
        line_regions(f, x, patterns=True)


def test_models_that_do_not_fit_and_those_that_do_not_apply():
    f, x, _ = CASES["tanh"]()
    other = line_regions(f, x)
    assert other.status.startswith("not applicable: the network must be made of affine operations")
    with pytest.raises(UnsupportedModelError, match=r"must accept a batch of shape \(1, 3\)"):
        line_regions(f, points(4, 3))
    with pytest.raises(ValueError, match="must be in eval mode"):
        line_regions(dense(3, 4, 1).train(), points(4, 3))
