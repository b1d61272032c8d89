import itertools

import pytest
import torch
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape._core import draw_pairs
from inscape.smoothness import gradient_deflection


def by_loops(f, a, b, knots):
    """The deviation of the slopes of the secants, one knot after the other."""
    values = [f(torch.lerp(a, b, k / (knots - 1))[None])[0].detach() for k in range(knots)]
    straight = values[-1] - values[0]
    slopes = [(knots - 1) * (q - p) for p, q in itertools.pairwise(values)]
    squares = [(slope - straight).square().sum() for slope in slopes]
    return (torch.stack(squares).mean()).sqrt()


@pytest.mark.parametrize("case", CASES)
def test_each_chord_equals_the_loop(case):
    f, x, _ = CASES[case]()
    result = gradient_deflection(f, x, pairs=20, knots=7, seed=4)
    ends = zip(*draw_pairs(x, 20, seed=4), strict=True)
    expected = torch.stack([by_loops(f, a, b, 7) for a, b in ends])
    assert_close(result.deflections, expected)


def test_parabola_has_the_closed_form():
    x = torch.tensor([[-1.0], [2.0]], dtype=torch.float64)
    result = gradient_deflection(lambda x: x**2, x, pairs=20, knots=2000)
    # The slope is uniform between its ends, which lie 2 (b - a)^2 = 18 apart.
    expected = 18 / 12**0.5
    assert sorted(set(result.deflections.round(decimals=2).tolist())) == [0.0, round(expected, 2)]
    # Secants over 2000 knots miss 1/(2 * 1999^2) of the variance.
    assert_close(float(result.deflections.max()), expected, rtol=1e-6, atol=0)


def test_secants_are_a_lower_bound_that_grows_with_refinement():
    f, x, _ = CASES["deep relu"]()
    few, more = (gradient_deflection(f, x, knots=knots).deflections for knots in (5, 9))
    assert (few <= more + 1e-12).all()
    assert (few < more - 1e-6).any()


def test_affine_function_has_none_and_adding_one_changes_nothing():
    f, x, _ = CASES["two-layer, three outputs"]()
    add = torch.nn.Linear(2, 3, dtype=torch.float64).eval()
    assert float(gradient_deflection(add, x).deflections.max()) == 0.0
    both = gradient_deflection(lambda x: f(x) + add(x).detach(), x).deflections
    assert_close(both, gradient_deflection(f, x).deflections)


@pytest.mark.parametrize(("inputs", "scale"), [(64, 1.0), (784, 1.0), (784, 50.0)])
def test_rounding_of_single_precision_is_no_deflection(inputs, scale):
    f = dense(inputs, 10).float()
    x = scale * points(50, inputs).float()
    assert float(gradient_deflection(f, x, pairs=50).deflections.max()) == 0.0
    bent = gradient_deflection(lambda x: f(x) + 0.01 * scale * torch.relu(x[:, :1]), x, pairs=50)
    assert float(bent.deflections.max()) > 0


def test_straight_way_and_summary():
    f, x, _ = CASES["two-layer"]()
    result = gradient_deflection(f, x, pairs=50)
    a, b = draw_pairs(x, 50, seed=0)
    assert_close(result.distances, (f(b) - f(a)).detach().norm(dim=1))
    summary = result.summary()
    assert (summary.kind, summary.basis) == ("estimate", "50 pairs x 100 knots")
    assert_close(summary.value, float(result.deflections.mean()))
    assert list(result.rows())[3] == {
        "gradient_deflection": float(result.deflections[3]),
        "straight": float(result.distances[3]),
    }


def test_memory_changes_the_chunks_and_not_the_numbers():
    f, x, _ = CASES["two-layer, three outputs"]()
    small = gradient_deflection(f, x, pairs=9, knots=11, memory=1)
    assert_close(small.deflections, gradient_deflection(f, x, pairs=9, knots=11).deflections)


def test_one_knot_and_no_pairs_are_refused():
    with pytest.raises(ValueError, match="knots must be at least 2, found 1: raise knots"):
        gradient_deflection(torch.sin, points(3, 1), knots=1)
    with pytest.raises(ValueError, match="pairs must be at least 1, found 0: raise pairs"):
        gradient_deflection(torch.sin, points(3, 1), pairs=0)
