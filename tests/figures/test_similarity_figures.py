import pytest
import torch

from cases import dense, points
from inscape.figures import caption, draw
from inscape.similarity import (
    disagreement,
    layer_alignment,
    map_alignment,
    procrustes_distance,
    slice_difference,
)

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


def test_slice_shows_the_area_and_both_boundaries():
    f, g = dense(2, 8, 3), dense(2, 8, 3, seed=2)
    result = slice_difference(f, SQUARE, other=g, domain=2 * SQUARE)
    ax = draw(result)
    assert ax.get_title() == f"different classes on {result.summary().value:.2%} of the window"
    *_, first, second = ax.collections
    assert len(first.get_segments()) == len(result.boundary("first"))
    assert len(second.get_segments()) == len(result.boundary("second"))
    assert ax.get_legend().get_texts()[0].get_text() == "other class"
    assert ax.get_xlabel() == "first input"
    assert caption(result).startswith("Where two networks give different classes")


def test_disagreement_is_drawn_from_the_largest_down():
    result = disagreement(dense(3, 8, 4), points(12, 3), other=dense(3, 8, 4, seed=1))
    heights = sorted(
        (segment[1][1] for lines in draw(result).collections for segment in lines.get_segments()),
        reverse=True,
    )
    assert heights == result.distances.sort(descending=True).values.tolist()


def test_alignment_has_two_marks_for_each_output():
    f = dense(3, 8, 2)
    result = map_alignment(f, points(9, 3), other=dense(3, 8, 2, seed=1))
    biased, debiased, _ = draw(result).lines
    assert biased.get_ydata().tolist() == result.biased.tolist()
    assert debiased.get_ydata().tolist() == result.debiased.tolist()


def test_layers_are_a_matrix_of_numbers_with_the_likest_pairs_strongest():
    f, x = dense(3, 8, 5, 2), points(12, 3)
    for measure in (layer_alignment, procrustes_distance):
        result = measure(f, x, other=f)
        ax = draw(result)
        written = [f"{value:.2f}" for value in result.values.flatten().tolist()]
        assert [text.get_text() for text in ax.texts] == written
        assert [label.get_text() for label in ax.get_yticklabels()] == list(result.layers)
        strengths = [patch.get_alpha() for patch in ax.patches]
        assert strengths[::4] == pytest.approx([1, 1, 1])  # of each layer with itself
        assert max(strengths) == pytest.approx(1)
