import pytest
import torch
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape._core import UnsupportedModelError, draw_pairs
from inscape._core.anytime import batches
from inscape.smoothness import gradient_path_length, gradient_path_length_penalty, weights_product
from inscape.smoothness.chords import knot_batches, variation, with_previous_knot
from oracles.smoothness import jacobian, on_segment


@pytest.mark.parametrize("case", CASES)
def test_each_length_equals_the_loop_over_plain_gradients(case):
    f, x, _ = CASES[case]()
    a, b = draw_pairs(x, 5, seed=2)
    ends = zip(a, b, strict=True)
    expected = torch.stack([on_segment(lambda p: jacobian(f, p), p, q, 11) for p, q in ends])
    ours = gradient_path_length(f, x, pairs=5, knots=11, seed=2).lengths
    assert_close(ours, expected)


def test_affine_maps_never_turn():
    f = torch.nn.Linear(3, 2, dtype=torch.float64).eval()
    assert gradient_path_length(f, points(6, 3), pairs=9).lengths.max().item() == 0.0


def test_gradients_that_share_memory_are_no_trouble():
    lengths = gradient_path_length(lambda x: x.sum(1), points(6, 3), pairs=9).lengths
    assert lengths.max().item() == 0.0


def test_each_kink_of_a_tent_is_a_jump_of_two():
    ends = torch.tensor([[-1.0], [1.0]])
    lengths = gradient_path_length(torch.abs, ends, pairs=50, knots=4).lengths
    assert set(lengths.tolist()) == {0.0, 2.0}


def test_square_turns_by_twice_the_distance():
    x = points(5, 1)
    a, b = draw_pairs(x, 30, seed=0)
    ours = gradient_path_length(lambda x: x**2, x, pairs=30).lengths
    assert_close(ours, 2 * (b - a).abs()[:, 0])


def test_weights_product_is_an_upper_bound():
    f, x = dense(4, 12, 1), points(20, 4)
    longest = gradient_path_length(f, x, pairs=200).lengths.max()
    assert longest <= weights_product(f, x).summary().value


def test_memory_changes_the_chunks_and_not_the_numbers():
    f, x, _ = CASES["two-layer, three outputs"]()
    lavish = gradient_path_length(f, x, pairs=9)
    thrifty = gradient_path_length(f, x, pairs=9, memory=1)
    assert_close(lavish.lengths, thrifty.lengths)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_and_plain_sum_agree(dtype):
    rows = points(6, 9, 40).to(dtype)
    assert_close(variation(rows, large=True), variation(rows, large=False))


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 20, 1000])
def test_walks_cover_every_step_once_whatever_the_rows(rows):
    a, b = points(4, 3), points(4, 3, seed=2)
    ends = torch.arange(8).reshape(2, 4)
    total, last = torch.zeros(4, dtype=torch.float64), None
    for some, begins, at in knot_batches(torch.cat([a, b]), ends, 7, rows=rows):
        assert at.shape[0] * at.shape[1] <= rows
        total[some] += variation(with_previous_knot(None if begins else last, at), large=False)
        last = at[:, -1].clone()
    assert_close(total, (b - a).norm(dim=1))


class Veering(torch.nn.Module):
    """A network whose input goes in through one linear map on one side of a plane alone."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) if bool(x[0, 0] < 0) else self.inner(x) + 0 * x.sum(1, keepdim=True)


@pytest.mark.parametrize("projections", [0, 2])
def test_a_front_that_comes_and_goes_along_a_chord_changes_nothing(projections):
    x = points(2000, 40)
    f = dense(40, 6, 5, 3, act=torch.nn.Tanh)
    settings = {"pairs": 6, "knots": 30, "projections": projections}
    with batches(4):
        veering = gradient_path_length(Veering(f).eval(), x, **settings).lengths
    assert_close(veering, gradient_path_length(f, x, **settings).lengths)


def test_penalty_pairs_the_halves_and_takes_mean_or_sum():
    f, x, _ = CASES["two-layer"]()
    ends = zip(x[:6], x[6:], strict=True)
    each = torch.stack([on_segment(lambda p: jacobian(f, p), p, q, 10) for p, q in ends])
    assert_close(gradient_path_length_penalty(f, x).detach(), each.mean())
    assert_close(gradient_path_length_penalty(f, x, reduction="sum").detach(), each.sum())


def test_penalty_differentiates_like_its_central_difference():
    f, x, _ = CASES["tanh"]()
    weight = f[0].weight
    (g,) = torch.autograd.grad(gradient_path_length_penalty(f, x), weight)
    with torch.no_grad():
        weight[1, 0] += 1e-6
        up = gradient_path_length_penalty(f, x).detach()
        weight[1, 0] -= 2e-6
        down = gradient_path_length_penalty(f, x).detach()
    # Central differences with step 1e-6 are good to about 1e-9.
    assert_close(g[1, 0], (up - down) / 2e-6, rtol=1e-6, atol=1e-8)


def test_penalty_of_an_affine_map_is_zero_with_finite_gradient():
    f = torch.nn.Linear(3, 1).eval()
    penalty = gradient_path_length_penalty(f, torch.rand(6, 3))
    penalty.backward()
    assert penalty.item() == 0.0
    assert bool(f.weight.grad.isfinite().all())


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="pairs must be at least 1, found -3"):
        gradient_path_length(torch.sin, torch.rand(3, 1), pairs=-3)
    with pytest.raises(ValueError, match="knots must be at least 2, found 1"):
        gradient_path_length(torch.sin, torch.rand(3, 1), knots=1)


@pytest.mark.parametrize("case", ["two-layer", "two-layer, three outputs", "deep relu"])
def test_exact_length_is_that_of_knots_fine_enough_to_part_all_bends(case):
    f, x, _ = CASES[case]()
    exact = gradient_path_length(f, x, pairs=10, exact=True)
    fine = gradient_path_length(f, x, pairs=10, knots=20_001)
    assert exact.exact
    assert exact.summary().basis == "10 pairs, exact along each chord"
    assert_close(exact.lengths, fine.lengths)  # no two bends fall between two knots here


def test_exact_jumps_with_and_without_a_linear_front():
    f, x = dense(30, 8, 8, 2), points(12, 30)
    first_layer = gradient_path_length(f, x, pairs=9, exact=True)
    plain = gradient_path_length(lambda x: f(1.0 * x), x, pairs=9, exact=True, memory=1)
    assert_close(first_layer.lengths, plain.lengths)


def test_exact_jump_of_a_tent_is_two_and_that_of_a_line_nothing():
    ends = torch.tensor([[-1.0], [1.0]])
    assert set(gradient_path_length(torch.abs, ends, pairs=9, exact=True).lengths.tolist()) == {
        0.0,
        2.0,
    }
    assert gradient_path_length(lambda x: 3 * x, ends, pairs=2, exact=True).lengths.max() == 0.0


def test_exact_jumps_on_a_line_inside_a_kink_are_those_of_the_pieces_with_ties_off():
    def f(x):
        fold = torch.maximum(0.1 * x[:, :1], 0.3 * x[:, 1:])  # both equal, but for rounding
        return torch.cat([fold, *(torch.relu(x[:, :1] - at) for at in (0.1, 0.4, 0.7))], 1)

    ends = torch.tensor([[-1.0], [2.3]], dtype=torch.float64) @ torch.tensor([[3.0, 1.0]]).double()
    found = gradient_path_length(f, ends, pairs=20, exact=True).lengths
    assert_close(found.unique(), torch.tensor([0.0, 3.0], dtype=torch.float64))


def test_exact_length_needs_a_piecewise_linear_network():
    f, x, _ = CASES["tanh"]()
    with pytest.raises(UnsupportedModelError, match=r"must be made of affine .* found 'tanh' in"):
        gradient_path_length(f, x, exact=True)


def test_exact_length_needs_gradients_that_belong_to_the_values():
    with pytest.raises(UnsupportedModelError, match=r"must return the gradient.* \.detach\(\)"):
        gradient_path_length(lambda x: torch.relu(x.detach()) + 0 * x, points(4, 1), exact=True)
