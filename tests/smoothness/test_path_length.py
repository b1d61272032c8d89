import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import CASES, points
from inscape._core import UnsupportedModelError, draw_pairs
from inscape.smoothness import path_length, path_length_penalty
from inscape.smoothness.path_length import label_bound
from oracles.smoothness import on_segment


def test_affine_map_travels_exactly_its_chord():
    f = torch.nn.Linear(3, 2, dtype=torch.float64).eval()
    result = path_length(f, points(6, 3), pairs=9, knots=7)
    assert_close(result.lengths, result.distances)


def test_tent_comes_down_and_goes_up_again():
    ends = torch.tensor([[-1.0], [1.0]])
    lengths = path_length(torch.abs, ends, pairs=50, knots=3).lengths
    assert set(lengths.tolist()) == {0.0, 2.0}
    assert path_length(torch.abs, ends, pairs=50, knots=2).lengths.max().item() == 0.0


@pytest.mark.parametrize("case", CASES)
def test_each_length_equals_the_loop_of_eq_3_6(case):
    f, x, _ = CASES[case]()
    a, b = draw_pairs(x, 5, seed=2)
    ends = zip(a, b, strict=True)
    expected = torch.stack([on_segment(lambda p: f(p[None]), p, q, 11) for p, q in ends])
    assert_close(path_length(f, x, pairs=5, knots=11, seed=2).lengths, expected)


def test_more_knots_never_shorten_a_path():
    f, x, _ = CASES["deep relu"]()
    coarse = path_length(f, x, pairs=40, knots=4).lengths
    fine = path_length(f, x, pairs=40, knots=10).lengths  # every third knot is a coarse one
    assert bool((fine >= coarse - 1e-12).all())


def test_sine_on_its_period_travels_four():
    x = torch.tensor([[0.0], [2 * torch.pi]], dtype=torch.float64)
    longest = path_length(torch.sin, x, pairs=20, knots=2001).lengths.max()
    # The secants miss less than one part in a million of each hump at 2001 knots.
    assert_close(longest, torch.tensor(4.0, dtype=torch.float64), rtol=1e-5, atol=0)


def test_memory_changes_the_chunks_and_not_the_numbers():
    f, x, _ = CASES["deep relu"]()
    lavish, thrifty = path_length(f, x, pairs=9), path_length(f, x, pairs=9, memory=1)
    assert_close(lavish.lengths, thrifty.lengths)


def test_label_bound_is_the_double_sum_of_eq_4_8():
    y = points(7, 1)
    expected = sum((a - b).norm() for a in y for b in y) / 49
    assert label_bound(y, y).value == pytest.approx(float(expected))
    y = points(7, 3)
    expected = sum((a - b).norm() for a in y for b in y) / 49
    assert label_bound(y, y).value == pytest.approx(float(expected))


def test_label_bound_is_exact_far_from_the_origin():
    y = 1e6 + 1e-2 * points(300, 4)
    expected = sum(float((y - row).norm(dim=1).sum()) for row in y) / 300**2
    assert label_bound(y, y).value == pytest.approx(expected, rel=1e-6)  # 1e6 rounds at 1e-10


def test_label_bound_of_balanced_signs_is_one_as_the_thesis_says():
    y = torch.tensor([1.0, -1.0]).repeat(500)[:, None]
    assert label_bound(y, y).value == 1.0


def test_label_bound_has_no_meaning_for_classes():
    assert label_bound(torch.rand(3, 2), torch.tensor([0, 1, 2])) is None


def test_interpolating_function_respects_its_label_bound():
    x = points(8, 1)
    x, y = x, torch.sin(5 * x)
    lengths = path_length(lambda x: torch.sin(5 * x), x, pairs=4000, knots=50).summary()
    assert lengths.high > label_bound(x, y).value


def test_penalty_pairs_the_halves_and_takes_the_mean():
    f, x, _ = CASES["two-layer"]()
    ends = zip(x[:6], x[6:], strict=True)
    each = torch.stack([on_segment(lambda p: f(p[None]), p, q, 10) for p, q in ends])
    assert_close(path_length_penalty(f, x).detach(), each.mean())
    assert_close(path_length_penalty(f, x, reduction="sum").detach(), each.sum())


def test_mean_is_32_times_weaker_than_the_sum_at_batch_64():
    f, x = CASES["two-layer"]()[0], points(64, 3)
    mean, total = path_length_penalty(f, x), path_length_penalty(f, x, reduction="sum")
    assert_close(32 * mean, total)


def test_penalty_leaves_out_an_odd_point_and_is_zero_for_one():
    f, x, _ = CASES["two-layer"]()
    assert_close(path_length_penalty(f, x[:7]), path_length_penalty(f, x[:6]))
    assert path_length_penalty(f, x[:1]).item() == 0.0


def test_penalty_shortens_the_path_when_followed():
    f, x, _ = CASES["two-layer"]()
    before = path_length_penalty(f, x)
    gradients = torch.autograd.grad(before, list(f.parameters()), allow_unused=True)
    with torch.no_grad():
        for p, g in zip(f.parameters(), gradients, strict=True):
            p -= 1e-3 * (torch.zeros_like(p) if g is None else g)
    assert path_length_penalty(f, x) < before


def test_bad_settings_are_named():
    x = torch.rand(3, 1)
    with pytest.raises(ValueError, match="pairs must be at least 1, found 0"):
        path_length(torch.sin, x, pairs=0)
    with pytest.raises(ValueError, match="knots must be at least 2, found 1"):
        path_length(torch.sin, x, knots=1)


def test_unknown_reduction_is_named(unchecked):
    with pytest.raises(ValueError, match="reduction must be one of 'mean', 'sum', found 'max'"):
        path_length_penalty(torch.sin, torch.rand(4, 1), reduction="max")


def test_function_without_gradients_has_a_path_all_the_same():
    f, x, _ = CASES["two-layer"]()
    ours = path_length(torch.no_grad()(lambda x: f(x)), x, pairs=5)
    assert_close(ours.lengths, path_length(f, x, pairs=5).lengths)


def test_output_squeezed_away_for_one_row_is_no_trouble():
    f, x, _ = CASES["two-layer"]()
    ours = path_length(lambda x: f(x).squeeze(), x, pairs=5, memory=1)
    assert_close(ours.lengths, path_length(f, x, pairs=5).lengths)


@pytest.mark.parametrize("case", ["two-layer", "two-layer, three outputs", "deep relu"])
def test_exact_length_is_the_limit_of_many_knots_and_never_beaten(case):
    f, x, _ = CASES[case]()
    exact = path_length(f, x, pairs=20, exact=True)
    fine = path_length(f, x, pairs=20, knots=20_001)
    assert exact.exact
    assert_close(exact.distances, fine.distances)
    assert bool((fine.lengths <= exact.lengths + 1e-12).all())
    # At each of some ten bends a secant of 1/20,000 of the chord cuts the corner.
    assert_close(exact.lengths, fine.lengths, rtol=1e-3, atol=1e-3)
    assert exact.summary().basis == "20 pairs, exact along each chord"
    assert exact.summary().kind == "estimate"


def test_exact_length_of_the_splines_of_the_thesis():
    def spline(x):  # Eq. (3.11) through the data of example (3.14)
        return torch.relu(-x - 1) + torch.relu(x - 1)

    ends = torch.tensor([[-2.0], [2.0]])
    assert set(path_length(spline, ends, pairs=20, exact=True).lengths.tolist()) == {0.0, 2.0}


def test_exact_length_needs_a_piecewise_linear_network():
    f = nn.Sequential(nn.Linear(2, 3), nn.Tanh()).eval()
    with pytest.raises(UnsupportedModelError, match=r"must be made of affine .* found 'tanh' in"):
        path_length(f, torch.rand(3, 2), exact=True)
