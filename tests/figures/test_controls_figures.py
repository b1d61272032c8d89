"""The figure of a Lipschitz constant shows what was found and every bound."""

from cases import dense, points
from inscape.controls import lipschitz
from inscape.figures import draw


def test_every_bound_is_there():
    result = lipschitz(dense(2, 6, 1), points(8, 2))
    ax = draw(result)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == "steepest chord found"
    assert set(names[1:]) == set(result.methods)
    assert sorted(line.get_xdata()[0] for line in ax.lines) == sorted(
        [result.lower, *result.bounds]
    )
