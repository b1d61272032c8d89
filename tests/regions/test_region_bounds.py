"""Bounds against known small values, brute force and each other."""

import json
from itertools import product
from math import log10

import numpy as np
import pytest
import torch
from torch import nn

from cases import dense, points
from inscape._core.result import NotApplicable
from inscape.piecewise.graph.network import piecewise
from inscape.regions.region_bounds import RegionBounds, arrangement, region_bounds


def bounds(*widths, dimension, count=None):
    return RegionBounds(widths=widths, inputs=dimension, dimension=dimension, count=count)


@pytest.mark.parametrize(
    ("planes", "dimension", "regions"),
    [(3, 2, 7), (1, 1, 2), (4, 2, 11), (3, 3, 8), (5, 9, 32), (4, 3, 15), (0, 4, 1), (32, 2, 529)],
)
def test_arrangements_that_everybody_knows(planes, dimension, regions):
    assert arrangement(planes, dimension) == regions


def test_arrangement_is_attained_by_lines_in_general_position():
    draw = np.random.default_rng(0)
    normals, offsets = draw.standard_normal((5, 2)), draw.standard_normal(5)
    x = draw.standard_normal((400_000, 2)) * draw.choice([0.5, 3, 30, 3000], (400_000, 1))
    signs = (x @ normals.T > offsets) @ (1 << np.arange(5))
    assert len(np.unique(signs)) == arrangement(5, 2) == 16


def test_upper_bound_is_the_product_over_the_layers():
    assert bounds(4, 4, dimension=2).upper == 11 * 11
    assert bounds(32, 32, dimension=2).upper == 529**2
    assert bounds(3, 1, 4, dimension=2).upper == 7 * 2 * 5  # one dimension is left after one unit
    assert bounds(dimension=3).upper == 1


def test_one_small_k_for_all_layers_would_not_bound():
    # Two inputs, widths 3 and 1: k = 1 would give (1 + 3) (1 + 1) = 8 cells.
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1), nn.ReLU()).double().eval()
    with torch.no_grad():
        turns = torch.tensor([0.1, 2.2, 4.3]).double()
        net[0].weight.copy_(torch.stack([turns.cos(), turns.sin()], 1))
        net[0].bias.fill_(0.5)
        net[2].weight.fill_(1.0)
        net[2].bias.fill_(-1.7)
    x = 3 * points(20_000, 2)
    cells = torch.cat(piecewise(net, x).patterns(x), 1).unique(dim=0)
    result = region_bounds(net, x, count=len(cells))
    assert 8 < result.count <= result.upper == 14


def test_lower_bound_lies_below_the_upper_one():
    for widths in product((2, 3, 5, 8), repeat=3):
        result = bounds(*widths, dimension=2)
        assert result.lower <= result.upper
    assert bounds(5, 5, dimension=2).lower == (5 // 2) ** 2 * arrangement(5, 2)
    assert bounds(6, dimension=3).lower == bounds(6, dimension=3).upper == 42
    assert bounds(5, 1, dimension=2).lower is None


def test_a_folding_network_reaches_the_lower_bound():
    # Three units fold [0, 1] into three, two units cut it: 3 * 3 pieces in one dimension.
    first = nn.Linear(1, 3).double()
    second = nn.Linear(3, 3).double()
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[3.0], [6.0], [6.0]]))
        first.bias.copy_(torch.tensor([0.0, -2.0, -4.0]))
        fold = torch.tensor([1.0, -1.0, 1.0])
        second.weight.copy_(torch.stack([fold, fold, fold]))
        second.bias.copy_(torch.tensor([-0.25, -0.5, -0.75]))
    net = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(3, 1).double()).eval()
    x = torch.linspace(-0.5, 1.5, 100_001).double()[:, None]
    patterns = torch.cat(piecewise(net, x).patterns(x), 1)
    cells = int((patterns[1:] != patterns[:-1]).any(1).sum()) + 1
    result = region_bounds(net, x, count=cells)
    assert result.lower == 3 * 4
    assert result.lower <= cells <= result.upper == 16


def test_powers_of_the_width_s30():
    assert bounds(9, 9, 9, dimension=2).order == 6
    wide = [bounds(w, w, w, dimension=2) for w in (10**4, 10**5)]
    assert log10(wide[1].upper) - log10(wide[0].upper) == pytest.approx(6, abs=1e-2)
    assert log10(wide[1].lower) - log10(wide[0].lower) == pytest.approx(6, abs=1e-2)


def test_counts_of_random_networks_lie_below():
    net = dense(2, 5, 4, 1)
    x = 5 * points(50_000, 2)
    cells = len(torch.cat(piecewise(net, x).patterns(x), 1).unique(dim=0))
    result = region_bounds(net, x, count=cells)
    assert result.widths == (5, 4)
    assert 5 < cells <= result.upper


def test_a_plane_through_a_large_space_has_smaller_bounds():
    net = dense(20, 6, 1)
    assert region_bounds(net, points(1, 20)).upper == 2**6
    assert region_bounds(net, points(1, 20), dimension=2).upper == 22


def test_huge_numbers_stay_exact_and_can_be_saved(tmp_path):
    result = bounds(*[4096] * 8, dimension=3072, count=7)
    assert result.upper > 10**4300
    assert result.upper % 2 == bounds(*[4096] * 8, dimension=3072).upper % 2
    rows = {row["what"]: row for row in result.rows()}
    assert rows["upper bound (2.26)"]["value"].startswith("10^")
    assert rows["count"]["value"] == "7"
    path = result.save(tmp_path / "bounds.json")
    assert json.loads(path.read_text())["fields"]["count"] == 7


def test_graphs_without_bounds_are_said():
    pool = nn.Sequential(nn.MaxPool1d(2), nn.Flatten()).eval()
    result = region_bounds(pool, points(2, 1, 4))
    assert isinstance(result, NotApplicable)
    assert "a chain of affine maps" in result.reason
    assert isinstance(region_bounds(dense(2, 3, 1, act=nn.Tanh), points(2, 2)), NotApplicable)


def test_errors_say_what_to_do():
    net, x = dense(2, 3, 1), points(2, 2)
    with pytest.raises(ValueError, match=r"dimension must be at most the 2 of the .* lower it"):
        region_bounds(net, x, dimension=3)
    with pytest.raises(ValueError, match="count must be at least 1, found 0"):
        region_bounds(net, x, count=0)
    with pytest.raises(ValueError, match="dimension must be at least 1, found 0"):
        region_bounds(net, x, dimension=0)
