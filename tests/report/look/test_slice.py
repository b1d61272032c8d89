"""The slice is what the network answers on a plane, held against brute force."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape._core import NotApplicable
from inscape.figures import draw
from inscape.figures.slices import draw_slice, name_examples
from inscape.models import mlp
from inscape.piecewise.planes.slices import SlicePicture
from inscape.report.look.page import page
from inscape.report.look.slice import slice_picture
from inscape.report.look.slice_section import slice_caption, slice_section
from inscape.report.look.window import anchor_rows, slice_window
from markup import Structure

DATA = torch.rand(200, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.arange(200) // 50
NET = mlp(16, 8, 4, seed=3, dtype=torch.float64)


class Counted(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.rows = inner, 0

    def forward(self, x):
        self.rows += len(x)
        return self.inner(x)


def cut(f=NET, x=DATA, y=LABELS, *, task="classes", rows=500, **more):
    return slice_picture(f, x, y, task=task, rows=rows, batch=64, **more)


def nodes(found):
    height, width = found.scores.shape[:2]
    u = torch.linspace(found.low[0], found.high[0], width, dtype=torch.float64)
    v = torch.linspace(found.low[1], found.high[1], height, dtype=torch.float64)
    return [[torch.stack([a, b]) for a in u] for b in v]


def test_scores_are_the_outputs_at_the_nodes():
    result = cut()
    every = [int(name) for name in result.names]
    for row, line in enumerate(nodes(result)):
        for column, at in enumerate(line):
            x = result.frame.origin + at[0] * result.frame.axes[0] + at[1] * result.frame.axes[1]
            out = NET(x[None])[0].detach()
            torch.testing.assert_close(result.scores[row, column], out[every].float())
            sure = out.softmax(0).max().float()
            torch.testing.assert_close(result.confidence[row, column], sure)


def test_no_more_rows_are_evaluated_than_allowed_and_their_number_is_told():
    for rows in (100, 333, 2000):
        counted = Counted(NET).eval()
        result = cut(counted, rows=rows)
        assert counted.rows == result.rows <= rows
        assert result.rows > 0.8 * rows


def test_too_few_rows_give_a_reason():
    result = cut(rows=30)
    assert isinstance(result, NotApplicable)
    assert result.reason == "there is time for 30 predictions, too few for a picture"


def test_anchors_lie_at_their_places_and_are_of_three_classes():
    result = cut()
    assert [anchor.letter for anchor in result.anchors] == ["A", "B", "C"]
    assert [anchor.row for anchor in result.anchors] == [0, 50, 100]
    assert [anchor.label for anchor in result.anchors] == ["0", "1", "2"]
    for anchor in result.anchors:
        place = torch.tensor([[anchor.u, anchor.v]], dtype=torch.float64)
        torch.testing.assert_close(result.frame.at(place)[0], DATA[anchor.row])
        assert anchor.answer == str(int(NET(DATA[anchor.row][None]).argmax()))
        assert result.low[0] < anchor.u < result.high[0]
        assert result.low[1] < anchor.v < result.high[1]


def test_rows_that_span_no_plane_are_passed_over():
    line = torch.arange(5, dtype=torch.float64)[:, None] * torch.ones(3, dtype=torch.float64)
    x = torch.cat([line, torch.eye(3, dtype=torch.float64)[:1]])
    assert anchor_rows(x, None, classes=False) == [0, 1, 5]
    flat = slice_window(line, None, classes=False)
    assert flat.reason == "the data have no three examples that span a plane"


def test_names_stand_for_class_numbers():
    result = cut(names=("cat", "dog", "ship", "bird"))
    assert result.anchors[1].label == "dog"
    assert set(result.names) <= {"cat", "dog", "ship", "bird"}


def test_examples_near_the_plane_are_those_of_brute_force():
    spanned = DATA[0] + torch.rand(40, 2, dtype=torch.float64) @ torch.stack(
        [DATA[50] - DATA[0], DATA[100] - DATA[0]]
    )
    x = torch.cat([DATA, spanned + 0.02 * torch.randn(40, 16, dtype=torch.float64)])
    y = torch.cat([LABELS, torch.zeros(40, dtype=torch.long)])
    result = cut(x=x, y=y)
    axes = result.frame.axes
    near = 0
    for row, point in enumerate(x):
        if row in (0, 50, 100):
            continue
        uv = axes @ (point - result.frame.origin)
        off = (point - result.frame.origin - uv @ axes).norm()
        inside = all(result.low[k] <= uv[k] <= result.high[k] for k in (0, 1))
        near += bool(off <= result.distance) and inside
    assert near == len(result.places) >= 30
    assert f"are the {near} examples of 237 within" in slice_caption(result, None)


def test_where_nothing_lies_near_the_caption_says_so():
    far = torch.randn(50, 300, generator=torch.Generator().manual_seed(1))
    result = cut(mlp(300, 4, 3, seed=0), far, torch.arange(50) % 3)
    assert len(result.places) == 0
    assert "None of 47 further examples lies near this plane" in slice_caption(result, None)


def test_two_inputs_are_their_own_plane_with_all_examples_on_it():
    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    result = cut(mlp(2, 5, 1, seed=0), x, (x[:, 0] > 0).long())
    assert result.whole
    assert len(result.places) == 60
    torch.testing.assert_close(result.places.float(), x)
    assert result.names == ("0", "1") or len(result.names) == 1
    torch.testing.assert_close(result.scores.sum(2), torch.zeros(result.scores.shape[:2]))


def test_regression_shows_the_output_that_varies_most():
    weights = torch.zeros(3, 16, dtype=torch.float64)
    weights[1] = 1.0
    result = cut(lambda x: x @ weights.T, task="regression", y=DATA[:, :3])
    assert result.names == ("output 1",)
    assert not result.classes
    assert result.confidence is None


def test_further_classes_stand_together():
    many = mlp(16, 32, 40, seed=0, dtype=torch.float64)
    with torch.no_grad():
        many[-1].weight.mul_(20)
    result = cut(many, rows=2000)
    out = torch.cat([many(result.frame.at(torch.stack(line))).detach() for line in nodes(result)])
    rest = out.clone()
    rest[:, [int(name) for name in result.names]] = -torch.inf
    if result.others is None:
        assert len(out.argmax(1).unique()) == len(result.names)
    else:
        torch.testing.assert_close(result.others.flatten(), rest.amax(1).float())


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (torch.rand(9, 1), "a plane needs at least two inputs that are real numbers"),
        (torch.ones(9, 4, dtype=torch.long), "a plane needs at least two inputs that are"),
        (torch.ones(9, 4), "the data have no three examples that span a plane"),
        (torch.arange(18.0).reshape(9, 2)[:, [0, 0]] * torch.tensor([1.0, 0.0]), "on one line"),
    ],
)
def test_data_without_a_plane_give_a_reason(x, reason):
    result = slice_picture(lambda x: x, x, None, task="unlabelled", rows=500, batch=64)
    assert reason in result.reason


def test_figure_marks_every_example_and_names_its_classes():
    result = cut()
    texts = {text.get_text() for text in draw_slice(result).texts}
    assert {"A", "B", "C"} <= texts
    assert texts & set(result.names)


def test_page_shows_the_slice_or_says_why_not(seen, classified):
    assert isinstance(seen.slice, SlicePicture)
    text = Structure(page(classified)).text
    assert "What it decides between three examples" in text
    assert "Its output between three examples" in Structure(page(seen)).text
    none = replace(seen, slice=NotApplicable(what="slice", reason="a reason"))
    assert slice_section(none) == {"reason": "a reason"}
    assert "no picture of a slice through the data: a reason." in Structure(page(none)).text


def test_linear_regions_and_boundary_are_those_of_the_slice(classified, classifier, classes):
    found, results = classified.slice, {m.name: m.result for m in classified.measurements}
    assert [anchor.row for anchor in found.anchors] != [0, 1, 2]  # of three classes, not the first
    for name in ("plane_regions", "boundary"):
        assert_close(results[name].origin, found.frame.origin)
        assert_close(results[name].axes, found.frame.axes)
        assert results[name].domain.amin(0).tolist() == list(found.low)
        assert results[name].domain.amax(0).tolist() == list(found.high)
    section = slice_section(classified)
    assert f"edges of its {results['plane_regions'].cells:,} linear regions." in section["caption"]


def test_figures_in_the_plane_of_the_slice_have_its_examples_on_them(classified):
    result = next(m.result for m in classified.measurements if m.name == "boundary")
    ax = name_examples(draw(result), classified.slice.anchors)
    assert {"A", "B", "C"} <= {text.get_text() for text in ax.texts}
    assert ax.get_xlabel().startswith("from A towards B")
    assert Structure(page(classified)).text.count("from A towards B") == 3


def test_a_window_too_small_to_be_seen_is_not_drawn_on_the_slice(classified):
    result = next(m.result for m in classified.measurements if m.name == "plane_regions")
    speck = replace(result, covered=1e-6, complete=False)
    assert "linear regions" not in slice_caption(classified.slice, speck)
    assert len(draw_slice(classified.slice, speck).collections) < len(
        draw_slice(classified.slice, result).collections
    )


def test_a_large_distance_is_written_as_a_number():
    picture = cut()
    far = replace(picture, distance=1012.3, places=picture.places[:0], winners=picture.winners[:0])
    assert "lies near this plane (within 1,010)." in slice_caption(far, None)
