"""What stands on the paper is what stands in the result."""

import torch

from cases import dense, points
from inscape.figures import caption, draw, has_figure
from inscape.figures import pruning as pruning  # registers the painters
from inscape.pruning import exhaustive_pruning, magnitude_pruning, node_pruning

MODEL, X = dense(3, 6, 1), points(30, 3)
Y = MODEL(X).detach()


def test_the_curve_is_that_of_the_result_and_the_chosen_step_is_marked():
    for result in (node_pruning(MODEL, X, Y), magnitude_pruning(MODEL, X, Y)):
        ax = draw(result)
        assert has_figure(result)
        assert caption(result).endswith(".")
        curve = torch.as_tensor(ax.lines[0].get_xydata())
        torch.testing.assert_close(curve, torch.stack([result.shares, result.scores], 1))
        chosen = ax.lines[2].get_xydata().tolist()
        assert chosen == [
            [float(result.shares[result.chosen]), float(result.scores[result.chosen])]
        ]
        assert ax.get_ylabel() == "fraction of variance explained"


def test_widths_stand_beside_some_points():
    words = [text.get_text() for text in draw(node_pruning(MODEL, X, Y)).texts]
    assert words[0] == "6"
    assert words[-1] == "1"


def test_each_size_tells_how_many_sub_networks_are_good():
    result = exhaustive_pruning(MODEL, X, Y, slack=1e-9)
    ax = draw(result)
    words = [text.get_text() for text in ax.texts]
    assert words == ["0 of 6", "0 of 15", "0 of 20", "0 of 15", "0 of 6", "1 of 1"]
    assert ax.lines[0].get_xydata()[:, 1].tolist() == result.scores.tolist()
