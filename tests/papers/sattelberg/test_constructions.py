"""The networks of the theorems, against the formulas and against a fine grid."""

import pytest
import torch
from torch.testing import assert_close

from inscape.boolean import line_networks as made
from inscape.papers.sattelberg._line import joined, line, zeros
from inscape.papers.sattelberg.along_a_line import FIRST, REGIONS, parity, right, value


@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_network_goes_through_its_points_with_one_unit_less(leak: float):
    x = torch.tensor([-1.0, 0.5, 0.75, 3.0], dtype=torch.float64)
    y = torch.tensor([2.0, -1.0, 4.0, 0.5], dtype=torch.float64)
    model = made.through(x, y, leak=leak)
    assert model[0].out_features == 3
    assert_close(model(x[:, None])[:, 0], y)
    found = line(model, -1.0, 3.0)
    assert_close(found.knots, x)
    assert_close(found.values, y)


def test_heights_cross_zero_half_way_between_neighbours():
    regions = [(0.0, 1.0), (2.0, 3.0), (3.5, 5.5)]
    found = zeros(line(made.wide_classifier(regions), 0.0, 5.0))
    assert_close(found, torch.tensor([1.5, 3.25], dtype=torch.float64))


@pytest.mark.parametrize("leak", [0.0, 0.1])
@pytest.mark.parametrize(("width", "depth"), [(1, 1), (2, 1), (2, 4), (3, 2), (4, 2)])
def test_deep_network_is_the_triangle_wave(width: int, depth: int, leak: float):
    model = made.deep_classifier(width, depth, low=-2.0, high=6.0, leak=leak)
    hidden = [part for part in model if isinstance(part, torch.nn.Linear)][:-1]
    assert [part.out_features for part in hidden] == [width] * depth
    teeth = width**depth
    x = torch.linspace(-2.0, 6.0, 1001, dtype=torch.float64)
    phase = (x + 2) / 8 * teeth
    wave = 1 - (phase % 2 - 1).abs()  # rises from 0 to 1, and falls, in every two pieces
    assert_close(model(x[:, None])[:, 0], wave - 0.5, rtol=1e-9, atol=1e-9)
    assert_close(
        zeros(line(model, -2.0, 6.0)),
        -2 + 8 * (torch.arange(teeth, dtype=torch.float64) + 0.5) / teeth,
    )


def test_the_printed_matrix_is_transposed():
    """Erratum S24: with M as printed the network misses its points."""
    x = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    y = torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64)
    slopes = torch.diff(y) / torch.diff(x)
    printed = torch.ones(2, 2, dtype=torch.float64).triu()
    a = torch.linalg.solve(printed, slopes)
    wrong = (a * (x[:, None] - x[:-1]).clamp(min=0)).sum(1)
    assert (wrong - y).abs().max() > 0.5


def test_right_counts_regions_of_the_right_sign_from_end_to_end():
    found = line(made.wide_classifier(REGIONS, first=FIRST), -0.1, 1.1)
    assert right(found, REGIONS, FIRST) == 5
    assert right(found, REGIONS, -FIRST) == 0
    crossed = [(0.0, 0.2), *REGIONS[1:]]  # the first reaches over the first zero
    assert right(found, crossed, FIRST) == 4
    with torch.no_grad():
        there = made.wide_classifier(REGIONS, first=FIRST)(torch.tensor([[0.3]]).double())
    assert value(found, 0.3) == pytest.approx(float(there), rel=1e-6)


def test_parity_of_as_many_bits_as_teeth_and_no_more():
    model = made.deep_classifier(2, 3)
    assert parity(model, 8) == 9
    assert parity(model, 9) < 10


def test_straight_knots_are_left_out_and_touching_zeros_do_not_count():
    x = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    found = joined(x, torch.tensor([1.0, 0.5, 0.0, 1.0, -1.0], dtype=torch.float64))
    assert found.knots.tolist() == [0.0, 2.0, 3.0, 4.0]
    assert len(found) == 3
    assert zeros(found).tolist() == [3.5]
    through = joined(x[:3], torch.tensor([1.0, 0.0, -2.0], dtype=torch.float64))
    assert zeros(through).tolist() == [1.0]


def test_knots_so_near_that_slopes_are_noise_do_not_cut():
    x = torch.tensor([0.0, 0.3, 0.3 + 1e-11, 1.0], dtype=torch.float64)
    y = 0.7 * x + 0.1  # rounds differently at each of them
    noisy = y + torch.tensor([0.0, 1e-16, -1e-16, 0.0], dtype=torch.float64)
    assert len(joined(x, noisy)) == 1
    assert len(joined(x, torch.tensor([0.0, 0.3, 0.3, 0.5], dtype=torch.float64))) == 3
