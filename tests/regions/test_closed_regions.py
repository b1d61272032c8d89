"""Closed regions decided from weights, against exact boundaries, all cells, and closed forms."""

from fractions import Fraction
from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core.result import NotApplicable
from inscape.papers.sattelberg._cells import (
    Units,
    bounded_regions,
    closing_units,
    random_units,
)
from inscape.regions import boundary, closed_regions, expanded_simplex, hyperoctahedron
from inscape.regions.closed_regions import ClosedRegions, from_weights
from inscape.regions.ideal_shapes import written

BOTH = [hyperoctahedron, expanded_simplex]


def decided(net: Units) -> ClosedRegions:
    return from_weights(net.weight, net.bias, net.out, net.end, net.leak)


def units(net: nn.Sequential, leak: float) -> Units:
    weight, bias, out, end = (parameter.detach().numpy() for parameter in net.parameters())
    return Units(weight, bias, out[0], float(end[0]), leak)


def module(net: Units) -> nn.Sequential:
    return written(net.weight, net.bias, net.out, net.end, leak=net.leak)


@pytest.mark.parametrize("leak", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("make", BOTH)
def test_ideal_networks_have_their_shape(make, n, leak):
    shape = make(n)
    result = decided(units(shape.network(radius=1.5, leak=leak), leak))
    assert result.sides[0] == 1
    assert result.shape == shape.kind
    assert len(result.region()) == shape.vertex_count
    assert_close(result.outer[0].item(), 1.5)
    assert_close(result.inner[0].item(), 1.5 / shape.ratio)
    assert bool(result.whole[0]) == (leak == 0 or make is expanded_simplex)
    ours, ideal = (
        np.array(sorted(np.round(c, 9).tolist()))
        for c in (result.region().numpy() + 0.0, shape.coordinates(1.5) + 0.0)
    )
    assert np.allclose(ours, ideal)


def test_plane_against_the_exact_boundary():
    rng = np.random.default_rng(0)
    corners = {"open": 0, "hyperoctahedron": 4, "expanded simplex": 6}
    seen = dict.fromkeys(corners, 0)
    for k in range(12):
        net = closing_units(2, [0.0, 0.05][k % 2], rng)
        result = decided(net)
        far = 4 + 4 * (float(result.corners.abs().max()) if result.count else 0.0)
        window = far * torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()
        line = boundary(module(net), window, domain=window)
        rings = [line.polyline(i)[:-1] for i in range(len(line.closed)) if line.closed[i]]
        assert [len(ring) for ring in rings] == [corners[result.shape]] * result.count
        for ring in rings:
            ours = result.region()
            assert_close(torch.cdist(ring, ours).amin(1), torch.zeros(len(ring)).double())
            assert module(net)(ours.mean(0)[None]).sign().item() == result.sides[0]
            assert is_convex(ours)
        seen[result.shape] += 1
    assert min(seen.values()) >= 2


def is_convex(ring: torch.Tensor) -> bool:
    step = torch.roll(ring, -1, 0) - ring
    after = torch.roll(step, -1, 0)
    return bool((step[:, 0] * after[:, 1] - step[:, 1] * after[:, 0] > 0).all())


@pytest.mark.parametrize(("n", "tries"), [(1, 8), (2, 10), (3, 6)])
def test_all_cells_joined_by_linear_programmes_agree(n, tries):
    rng = np.random.default_rng(n)
    closed = 0
    for k in range(tries):
        net = closing_units(n, [0.0, 0.02][k % 2], rng)
        slow, fast = bounded_regions(net), decided(net)
        assert sorted(side for side, _ in slow) == sorted(fast.sides.tolist())
        for side, cells in slow:
            inside = int(fast.inside[fast.sides.tolist().index(side)])
            if inside == 1:
                assert len(cells) == 2**n
            elif inside == n + 1:
                assert len(cells) in (2 ** (n + 1) - 1, 2 ** (n + 1) - 2)
        closed += len(slow)
    assert tries / 4 < closed


def test_space_against_every_vertex_in_fractions():
    rng = np.random.default_rng(5)
    seen = set()
    for k in range(40):
        net = closing_units(3, [0.0, 0.05][k % 2], rng)
        result = decided(net)
        if not result.count or not result.whole[0]:
            continue
        exact = np.array(sorted(zeros(net))).astype(float)
        ours = result.region().numpy()
        assert len(exact) == len(ours)
        assert np.allclose(exact, ours[np.lexsort(ours.T[::-1])], atol=1e-7)
        seen.add((result.shape, len(ours)))
    assert {("hyperoctahedron", 6), ("expanded simplex", 12)} <= seen


def zeros(net: Units) -> set[tuple[Fraction, ...]]:
    """Return all points on two of the planes at which the output is zero, by brute force."""
    rows = [list(map(Fraction, row)) for row in net.weight.tolist()]
    bias, out = (list(map(Fraction, v.tolist())) for v in (net.bias, net.out))
    end, leak = Fraction(net.end), Fraction(net.leak)
    result = set()
    for state in product((0, 1), repeat=len(bias)):
        slopes = [a * (1 if on else leak) for a, on in zip(out, state, strict=True)]
        normal = [sum(s * row[k] for s, row in zip(slopes, rows, strict=True)) for k in range(3)]
        offset = end + sum(s * b for s, b in zip(slopes, bias, strict=True))
        for i, j in combinations(range(len(bias)), 2):
            x = solved([rows[i], rows[j], normal], [-bias[i], -bias[j], -offset])
            if x is None:
                continue
            at = [
                sum(w * v for w, v in zip(row, x, strict=True)) + b
                for row, b in zip(rows, bias, strict=True)
            ]
            if all(z >= 0 if on else z <= 0 for z, on in zip(at, state, strict=True)):
                result.add(tuple(x))
    return result


def solved(rows, sides):
    """Return the solution of three equations by Cramer's rule."""

    def determinant(a, b, c):
        return sum(
            a[i] * (b[j] * c[k] - b[k] * c[j]) for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        )

    whole = determinant(*rows)
    if not whole:
        return None
    swapped = [
        [[*row[:k], side, *row[k + 1 :]] for row, side in zip(rows, sides, strict=True)]
        for k in range(3)
    ]
    return [determinant(*columns) / whole for columns in swapped]


@pytest.mark.parametrize("leak", [0.0, 0.2])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_n_units_close_nothing(n, leak):
    rng = np.random.default_rng(n)
    for _ in range(5):
        net = random_units(n, n, leak, rng)
        assert decided(net).shape == "open"
        assert bounded_regions(net) == []


def test_signs_alone_decide_whether_a_relu_closes_once_normals_span():
    """With all output weights negative and positively spanning normals the region is bounded."""
    net = expanded_simplex(4).network()
    assert closed_regions(net, torch.zeros(1, 4)).count == 1
    with torch.no_grad():
        net[0].weight[0] *= -1  # now the normals lie in a half-space
    assert closed_regions(net, torch.zeros(1, 4)).count == 0


def test_leak_bounds_how_uneven_the_dependence_may_be():
    """A leak s closes only where the weights of the dependence are within 1/s of each other."""

    def count(stretch, leak):
        net = expanded_simplex(2).network(leak=leak)
        with torch.no_grad():
            net[2].weight[0, 0] *= stretch
        return closed_regions(net, torch.zeros(1, 2)).count

    assert count(9.0, 0.1) == 1
    assert count(11.0, 0.1) == 0
    assert count(11.0, 0.0) == 1


def test_region_changes_its_shape_as_the_level_rises():
    net = expanded_simplex(2).network()
    with torch.no_grad():
        net[0].bias.fill_(1.0)  # all three are on in the middle
        net[2].weight.copy_(-torch.tensor([[1.0, 1.2, 1.4]]))
        net[2].bias.fill_(0.0)
    shapes = [closed_regions(net, torch.zeros(1, 2), level=-h) for h in (2.9, 3.1, 3.7, 4.3)]
    assert [result.shape for result in shapes] == [
        "open",
        "hyperoctahedron",
        "expanded simplex",
        "expanded simplex",
    ]
    assert [result.inside.tolist() for result in shapes] == [[], [1], [2], [3]]


def test_between_both_shapes_in_space():
    net = expanded_simplex(3).network()
    with torch.no_grad():
        net[0].bias.fill_(1.0)
        net[2].weight.copy_(-torch.tensor([[1.0, 1.1, 1.2, 1.3]]))
        net[2].bias.fill_(4.5)  # above the two lowest of 4, 4.4, 4.8, 5.2
    result = closed_regions(net, torch.zeros(1, 3))
    assert result.shape == "between"
    assert len(result.region()) == 10  # 5 of the 6 lines
    assert len(bounded_regions(units(net, 0.0))) == 1


def test_regular_shapes_are_the_roundest():
    rng = np.random.default_rng(3)
    best = {"hyperoctahedron": 9.0, "expanded simplex": 9.0}
    for k in range(100):
        result = decided(closing_units(2, [0.0, 0.02][k % 2], rng))
        if result.count:
            ratio = float(result.outer / result.inner)
            best[result.shape] = min(best[result.shape], ratio)
    assert sqrt(2) <= best["hyperoctahedron"] < 3
    assert 2 / sqrt(3) <= best["expanded simplex"] < 2.5


def test_order_and_scale_of_units_do_not_matter():
    rng = np.random.default_rng(1)
    for _ in range(10):
        net = closing_units(3, 0.0, rng)
        order, scale = rng.permutation(4), 2.0 ** rng.integers(-2, 3, 4)
        other = Units(
            (net.weight * scale[:, None])[order],
            (net.bias * scale)[order],
            (net.out / scale)[order],
            net.end,
            net.leak,
        )
        first, second = decided(net), decided(other)
        assert (first.shape, first.sides.tolist()) == (second.shape, second.sides.tolist())
        assert_close(first.corners, second.corners)


def test_zigzag_on_a_line_closes_one_region_of_each_side():
    net = Units(np.ones((2, 1)), np.array([0.0, -1.0]), np.array([-1.0, 3.0]), 0.5, 0.1)
    assert decided(net).sides.tolist() == [1, -1]
    assert decided(net).whole.tolist() == [False, False]


def test_dependent_normals_and_idle_units_close_nothing():
    flat = Units(np.array([[1.0, 0], [-1, 0], [0, 1]]), np.zeros(3), -np.ones(3), 1.0, 0.0)
    idle = Units(
        np.array([[1.0, 0], [0, 1], [-1, -1]]), np.zeros(3), np.array([-1.0, -1, 0]), 1.0, 0.0
    )
    for net in (flat, idle):
        assert decided(net).shape == "open"
        assert bounded_regions(net) == []
    rows = list(decided(flat).rows())
    assert rows[0]["shape"] == "open"
    assert decided(flat).summary().value == 0


def test_normals_of_a_module_are_taken_as_they_are():
    """Two are parallel, but their differences from the biases would round so that they are not."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        normal, other = rng.standard_normal((2, 2))
        weight, bias = np.stack([normal, -normal, other]), rng.standard_normal(3)
        net = written(weight, bias, -np.ones(3), 5.0)
        assert closed_regions(net, torch.zeros(1, 2).double()).count == 0


def test_maps_before_the_kinks_are_joined():
    inner = expanded_simplex(4).network()
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 4, bias=False).double(), *inner).eval()
    with torch.no_grad():
        net[1].weight.copy_(torch.eye(4).flip(0) * 2)
    result = closed_regions(net, torch.zeros(1, 1, 2, 2).double())
    assert_close(result.outer, torch.tensor([0.5]).double())
    assert_close(net(result.corners.reshape(-1, 1, 2, 2)), torch.zeros(20, 1).double())


def test_many_inputs_have_no_inner_radius_and_very_many_are_refused():
    result = closed_regions(expanded_simplex(17).network(), torch.zeros(1, 17).double())
    assert (result.shape, len(result.corners)) == ("expanded simplex", 306)
    assert result.inner.isnan().all()
    assert [row["inner"] for row in result.rows()] == [None]
    wide = closed_regions(expanded_simplex(33).network(), torch.zeros(1, 33).double())
    assert isinstance(wide, NotApplicable)
    assert "at most 32 inputs for one unit more than inputs, found 33" in wide.reason
    assert closed_regions(dense(40, 40, 1), points(1, 40)).shape == "open"


def test_cells_of_constant_units():
    weight = np.array([[1.0, 0], [0, 1], [-1, -1], [0, 0]])
    net = Units(weight, np.array([0.0, 0, 0, -1]), np.array([-1.0, -1, -1, 9]), 1.0, 0.0)
    assert [side for side, _ in bounded_regions(net)] == [1]


@pytest.mark.parametrize(
    ("model", "inputs", "reason"),
    [
        (dense(2, 4, 1), 2, "at most 3 units for 2 inputs, found 4"),
        (dense(2, 3, 3, 1), 2, "one hidden layer"),
        (dense(2, 3, 2), 2, "one output"),
        (dense(2, 3, 1, act=nn.Tanh), 2, ""),
        (
            nn.Sequential(nn.Linear(2, 3), nn.PReLU(3, 1.5), nn.Linear(3, 1)).double().eval(),
            2,
            "one slope between 0 and 1",
        ),
    ],
)
def test_other_networks_are_told_why_not(model, inputs, reason):
    result = closed_regions(model, points(3, inputs))
    assert isinstance(result, NotApplicable)
    assert reason in result.reason


def test_errors_say_what_to_do():
    net, x = hyperoctahedron(2).network(), torch.zeros(1, 2)
    with pytest.raises(ValueError, match="level must be finite, found inf"):
        closed_regions(net, x, level=float("inf"))
    with pytest.raises(ValueError, match="number must be one of 1 closed regions, found 1: look"):
        closed_regions(net, x).region(1)


def test_one_row_for_each_region():
    (row,) = closed_regions(expanded_simplex(2).network(), torch.zeros(1, 2)).rows()
    assert (row["shape"], row["corners"], row["side"], row["whole"]) == (
        "expanded simplex",
        6,
        1,
        True,
    )
