import itertools
import math

import numpy as np
import pytest
import shapely
import torch
from shapely.geometry import Polygon
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape.regions.boundary import Boundary, boundary, decision_boundary, level_set
from inscape.regions.line_regions import line_regions
from inscape.regions.plane_regions import plane_regions

BOX = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


def stacked(*functions):
    """Return a network with these outputs of the two coordinates."""
    return lambda x: torch.cat([f(x[:, :1], x[:, 1:]) for f in functions], 1)


def boundary_of(*functions, domain=BOX, **settings):
    return boundary(stacked(*functions), BOX, domain=domain, **settings)


def test_diamond_is_one_closed_line_through_its_four_corners():
    diamond = boundary_of(lambda x, y: x.abs() + y.abs() - 1, domain=2 * BOX)
    assert diamond.closed.tolist() == [True]
    assert_close(diamond.lengths, torch.tensor([4 * math.sqrt(2)], dtype=torch.float64))
    corners = {tuple(point) for point in diamond.points.tolist()}
    assert corners == {(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)}
    assert torch.equal(diamond.points[0], diamond.points[-1])


def test_diamond_that_touches_the_domain_is_the_same_diamond():
    assert boundary_of(lambda x, y: x.abs() + y.abs() - 1).length == pytest.approx(4 * math.sqrt(2))


@pytest.mark.parametrize(
    ("f", "length", "lines"),
    [
        (lambda x, y: x.relu() - (-x).relu(), 2.0, 1),  # along the edge that the kink made
        (lambda x, y: x.abs(), 0.0, 0),  # touched, not crossed
        (lambda x, y: x.relu(), 0.0, 0),  # zero on the left: a piece, not a boundary
        (lambda x, y: x.relu() - (-x - 0.5).relu(), 0.0, 0),  # from below to zero to above
        (lambda x, y: 0 * x.relu(), 0.0, 0),
        (lambda x, y: x.abs() - y.abs(), 4 * math.sqrt(2), 4),  # a saddle: four rays from 0
        (lambda x, y: (x + 1e-14).abs() - y.abs(), 4 * math.sqrt(2), 4),  # one in rounding
        (lambda x, y: x.relu() + y.relu() - 1, math.sqrt(2), 1),  # ends on the sides of the domain
        (lambda x, y: torch.maximum(x, y), 2.0, 1),  # an edge of the plane has a kink at 0
        (lambda x, y: x + 2.0, 0.0, 0),
    ],
)
def test_level_sets_known_in_closed_form(f, length, lines):
    line = boundary_of(f)
    assert line.length == pytest.approx(length, abs=1e-12)
    assert len(line.lengths) == lines
    assert not line.closed.any()


@pytest.mark.parametrize(
    ("functions", "length", "pairs"),
    [
        ((lambda x, y: x, lambda x, y: -x), 2.0, [(0, 1)]),
        # three sectors that meet inside a cell
        (
            (lambda x, y: x, lambda x, y: y, lambda x, y: -x - y),
            math.sqrt(2) + 2 * math.sqrt(1.25),
            [(0, 1), (0, 2), (1, 2)],
        ),
        # four that meet in one point: opposite ones share no line
        (
            (lambda x, y: x, lambda x, y: -x, lambda x, y: y, lambda x, y: -y),
            4 * math.sqrt(2),
            [(0, 2), (0, 3), (1, 2), (1, 3)],
        ),
        # a winner that reaches no edge of its cell
        (
            (lambda x, y: x, lambda x, y: -x, lambda x, y: y, lambda x, y: -y,
             lambda x, y: 0 * x + 0.5),
            4 + 2 * math.sqrt(2),
            [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 4), (3, 4)],
        ),
        # the middle one of three is largest on the line alone
        ((lambda x, y: x, lambda x, y: -x, lambda x, y: 0 * x), 2.0, [(0, 1)]),
        ((lambda x, y: 0 * x, lambda x, y: x, lambda x, y: -x), 2.0, [(1, 2)]),
        # twins count as the first
        ((lambda x, y: x, lambda x, y: x, lambda x, y: -x), 2.0, [(0, 2)]),
        # equal outputs on a whole piece
        ((lambda x, y: x.relu(), lambda x, y: 0 * x), 0.0, []),
        ((lambda x, y: x.relu(), lambda x, y: (-x - 0.5).relu()), 0.0, []),
        # a tie along an edge that a kink made, and beside a third that never wins
        ((lambda x, y: x.relu(), lambda x, y: (-x).relu(), lambda x, y: 0 * x - 1), 2.0, [(0, 1)]),
        # a triple point at a vertex of the cells
        (
            (lambda x, y: x.relu() - (-x).relu(), lambda x, y: y.relu() - (-y).relu(),
             lambda x, y: -x - y),
            math.sqrt(2) + 2 * math.sqrt(1.25),
            [(0, 1), (0, 2), (1, 2)],
        ),
    ],
)  # fmt: skip
def test_decisions_known_in_closed_form(functions, length, pairs):
    line = boundary_of(*functions)
    assert line.length == pytest.approx(length, abs=1e-12)
    assert sorted(set(map(tuple, line.between.tolist()))) == pairs
    assert len(line.lengths) == len(pairs)


def by_polygons(regions):
    """Measure the boundary by the outlines of what each output wins of each cell."""
    slopes, intercepts = regions.slopes.numpy(), regions.intercepts.numpy()
    if intercepts.shape[1] == 1:
        slopes, intercepts = (
            np.pad(slopes, ((0, 0), (0, 1), (0, 0))),
            np.pad(intercepts, ((0, 0), (0, 1))),
        )
    outlines = -sum(Polygon(regions.polygon(cell)).length for cell in range(regions.cells))
    for cell, a in itertools.product(range(regions.cells), range(intercepts.shape[1])):
        part = list(regions.polygon(cell).numpy())
        for b in range(intercepts.shape[1]):
            normal, gap = (
                slopes[cell, a] - slopes[cell, b],
                intercepts[cell, a] - intercepts[cell, b],
            )
            if a != b:
                part = above(part, [normal @ (p - regions.center.numpy()) + gap for p in part])
        if len(part) > 2:
            outlines += Polygon(part).length
    return outlines / 2


def above(part, values):
    """Return the part of a polygon on which an affine function is above zero."""
    kept = []
    for k in range(len(part)):
        (p, u), (q, v) = ((part[i], values[i]) for i in (k - 1, k))
        if (u > 0) != (v > 0):
            kept.append(p + (q - p) * u / (u - v))
        if v > 0:
            kept.append(q)
    return kept


@pytest.mark.parametrize("outputs", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_length_equals_that_of_the_outlines_of_what_each_output_wins(outputs, seed):
    net = dense(2, 7, 6, outputs, seed=seed)
    regions = plane_regions(net, points(5, 2), domain=2 * BOX)
    line = decision_boundary(regions)
    assert line.length == pytest.approx(by_polygons(regions), abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_many_outputs_divide_one_cell(seed):
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(14, 2, generator=draw, dtype=torch.float64)
    bias = torch.randn(14, generator=draw, dtype=torch.float64) / 4
    regions = plane_regions(lambda x: x @ weight.T + bias, BOX, domain=BOX)
    assert regions.cells == 1
    assert decision_boundary(regions).length == pytest.approx(by_polygons(regions), abs=1e-12)


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_decision_is_a_tie_at_every_point_and_differs_beside_it(outputs):
    net = dense(2, 10, 10, outputs, seed=3)
    line = boundary(net, points(5, 2), domain=2 * BOX)
    assert len(line.lengths)
    for k in range(len(line.lengths)):
        at = line.polyline(k)
        middle = (at[1:] + at[:-1]) / 2
        long = (at[1:] - at[:-1]).norm(dim=1) > 1e-6
        with torch.no_grad():
            assert gap(net, at).max() < 1e-12
            assert gap(net, middle).max() < 1e-12
            step = (at[1:] - at[:-1])[long]
            across = 1e-7 * torch.stack([-step[:, 1], step[:, 0]], 1) / step.norm(dim=1)[:, None]
            first, second = (decision(net, middle[long] + offset) for offset in (across, -across))
        a, b = line.between[k].tolist()
        expected = {a, b} if outputs > 1 else {0, 1}
        assert (first != second).all()
        assert set(first.tolist()) | set(second.tolist()) == expected


def gap(net, at):
    z = net(at)
    if z.shape[1] == 1:
        return z.abs()
    top = z.topk(2, dim=1).values
    return top[:, 0] - top[:, 1]


def decision(net, at):
    z = net(at)
    return (z[:, 0] > 0).long() if z.shape[1] == 1 else z.argmax(1)


@pytest.mark.parametrize("outputs", [1, 4])
def test_nothing_is_missed_between_the_points_of_a_grid(outputs):
    net = dense(2, 12, 12, outputs, seed=1)
    line = boundary(net, points(5, 2), domain=BOX)
    side = torch.linspace(-1, 1, 41, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(side, side, indexing="ij"), -1)
    with torch.no_grad():
        decided = decision(net, grid.reshape(-1, 2)).reshape(41, 41)
    drawn = shapely.union_all(
        [shapely.LineString(line.polyline(k)) for k in range(len(line.lengths))]
    )
    changes = 0
    for i, j in itertools.product(range(40), range(41)):
        for first, second in (((i, j), (i + 1, j)), ((j, i), (j, i + 1))):
            if decided[first] != decided[second]:
                changes += 1
                assert shapely.LineString([grid[first], grid[second]]).distance(drawn) < 1e-12
    assert changes > 20


def test_open_lines_end_at_the_domain_or_where_several_meet():
    line = boundary(dense(2, 12, 12, 4, seed=7), points(5, 2), domain=2 * BOX)
    ends = torch.cat([line.points[line.first[:-1]], line.points[line.first[1:] - 1]])
    inner = ends[(ends.abs() < 2 - 1e-12).all(1)]
    met = (inner[:, None] == inner[None]).all(2).sum(1)
    assert len(inner)
    assert (met == 3).all()


def test_level_of_a_chosen_output_and_its_negative_are_one_line():
    net = dense(2, 8, 8, 3, seed=2)
    regions = plane_regions(net, points(5, 2), domain=BOX)
    line = level_set(regions, output=1, level=0.3)
    with torch.no_grad():
        assert_close(net(line.points)[:, 1], torch.full((len(line.points),), 0.3).double())
    negative = boundary(lambda x: -net(x), points(5, 2), domain=BOX, output=1, level=-0.3)
    assert_close(line.points, negative.points)
    assert line.between.tolist() == [[1, -1]] * len(line.lengths)


def test_length_is_measured_in_the_input_space():
    from inscape.piecewise.planes import Frame

    axes = torch.tensor([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0]], dtype=torch.float64)
    frame = Frame(origin=torch.zeros(3, dtype=torch.float64), axes=axes)
    line = boundary(lambda x: x[:, :1] - x[:, 1:2], torch.eye(3), plane=frame, domain=BOX)
    ends = line.inputs()
    assert_close(line.length, float((ends[0] - ends[-1]).norm()))
    assert_close(ends[:, 0], ends[:, 1])


def test_budget_that_is_reached_is_said():
    line = boundary(dense(2, 12, 12, 1, seed=1), points(5, 2), domain=BOX, regions=20)
    assert not line.complete
    assert line.summary().kind == "lower bound"
    assert "then the budget" in line.summary().basis


def test_rows_tell_the_lines_and_none_are_a_row_too():
    (row,) = boundary_of(lambda x, y: x + 2).rows()
    assert row["length"] == 0.0
    (row,) = boundary_of(lambda x, y: x).rows()
    assert row == {"points": 2, "length": 2.0, "closed": False, "one": 0, "other": None}


def test_what_is_no_plane_or_not_piecewise_linear_does_not_apply():
    answer = boundary(torch.tanh, BOX)
    assert isinstance(answer, NotApplicable)
    assert answer.what == "boundary"


@pytest.mark.parametrize("size", [1.0, 1e6, 1e17])
def test_regions_narrower_than_rounding_are_refused_not_jumped_over(size):
    model, x = dense(2, 3, 2, act=nn.Hardtanh), size * points(3, 2)
    if size < 1e10:
        result = boundary(model, x)
        middles = result.points @ result.axes + result.origin
        values = model(middles).detach()
        assert_close(values[:, 0], values[:, 1], rtol=0, atol=1e-9 * size)
    else:
        text = "wider than the rounding .* the outputs jump by .* scale the data"
        with pytest.raises(ValueError, match=text):
            boundary(model, x)


def test_bad_arguments_are_named():
    regions = plane_regions(dense(2, 3, 2), BOX)
    with pytest.raises(ValueError, match=r"output must lie between 0 and 1, found 2: choose"):
        level_set(regions, output=2)
    with pytest.raises(ValueError, match="level must be finite, found nan: choose another"):
        level_set(regions, level=math.nan)
    with pytest.raises(ValueError, match=r"level must be 0 where the largest .* pass output"):
        boundary(dense(2, 3, 2), BOX, level=1.0)
    assert isinstance(decision_boundary(regions), Boundary)


def whole_numbers(widths, seed):
    """Return a network of small whole weights: parallel, equal and dead units, ties everywhere."""
    net = dense(*widths)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randint(-2, 3, p.shape, generator=draw).double() / 2)
        net[-1].bias -= net(torch.zeros(1, 2, dtype=torch.float64))[0]  # all outputs meet at zero
    return net


def changes_along(t, z):
    """Return where along a line the largest of some outputs changes, from its knots."""
    seen = []
    for k in range(len(t) - 1):
        shares = {0.0, 1.0}
        for a, b in itertools.combinations(range(z.shape[1]), 2):
            u, v = float(z[k, a] - z[k, b]), float(z[k + 1, a] - z[k + 1, b])
            if u * v < 0:
                shares.add(u / (u - v))
        for low, high in itertools.pairwise(sorted(shares)):
            middle = torch.lerp(z[k], z[k + 1], (low + high) / 2)
            best = set(torch.nonzero(middle >= middle.max() - 1e-10)[:, 0].tolist())
            if high - low > 1e-9:
                seen.append((float(torch.lerp(t[k], t[k + 1], low)), best))
    return [at for (_, first), (at, second) in itertools.pairwise(seen) if not first & second]


@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 4, 7, 10, 12, 27])
def test_degenerate_networks_change_where_the_lines_that_cross_them_say(outputs, seed):
    net = whole_numbers((2, 5, 4, outputs), seed)
    line = boundary(net, BOX, domain=BOX)
    pieces = [p for k in range(len(line.lengths)) for p in itertools.pairwise(line.polyline(k))]
    drawn = shapely.MultiLineString([torch.stack(piece).numpy() for piece in pieces])
    draw = torch.Generator().manual_seed(seed)
    a, b = 2 * torch.rand(2, 30, 2, generator=draw, dtype=torch.float64) - 1
    cut = line_regions(net, a, to=b)
    for k, (low, high) in enumerate(itertools.pairwise(cut.offsets.tolist())):
        z = cut.values[low:high]
        z = torch.cat([z, torch.zeros_like(z)], 1) if outputs == 1 else z
        expected = [torch.lerp(a[k], b[k], at) for at in changes_along(cut.t[low:high], z)]
        met = shapely.LineString([a[k].numpy(), b[k].numpy()]).intersection(drawn)
        result = shapely.get_coordinates(met)
        assert len(result) == len(expected)
        for point in expected:
            assert np.abs(result - point.numpy()).max(1).min() < 1e-9
