"""Regions on a grid against closed forms, flood filling and the patterns themselves."""

import pytest
import torch
from torch import nn

from cases import dense, points
from inscape._core.result import NotApplicable
from inscape.errors import UnsupportedModelError
from inscape.functional.precision import in_precision
from inscape.piecewise.planes.frame import Frame, through
from inscape.regions._grid_components import GridNeighbours
from inscape.regions.grid_regions import grid_regions

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
BOX = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


def flooded(same):
    """Return how many components a grid has under a relation of places, by flood filling."""
    p, reach, left = same
    todo, count = {(i, j) for i in range(p) for j in range(p)}, 0
    while todo:
        count += 1
        front = [todo.pop()]
        while front:
            at = front.pop()
            near = [b for b in todo if reach(at, b) and left(at, b)]
            todo -= set(near)
            front += near
    return count


def test_quadrants_of_the_plane():
    for method in ("jacobian", "pattern"):
        result = grid_regions(torch.abs, SQUARE, grid=8, method=method, exact=4)
        assert result.labels[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        assert result.labels[-1].tolist() == [2, 2, 2, 2, 3, 3, 3, 3]
        assert (result.count, result.distinct, result.missed) == (4, 4, 0.0)
        fractions = [row["fraction"] for row in result.rows()]
        assert fractions == [0.25] * 4


@pytest.mark.parametrize("neighbours", ["4", "8", "row"])
def test_labels_are_components_under_the_neighbourhood(neighbours):
    net, p = dense(2, 7, 5, 2), 14
    result = grid_regions(net, 2 * points(9, 2), grid=p, neighbours=neighbours)
    cells = grid_regions(net, 2 * points(9, 2), grid=p, method="pattern").labels

    def reach(a, b):
        low, high = sorted([a, b])
        rows, columns = high[0] - low[0], high[1] - low[1]
        if neighbours == "row":
            return (rows, columns) == (0, 1) or (rows == 1 and columns <= 1)
        if neighbours == "8":
            return max(rows, abs(columns)) == 1
        return rows + abs(columns) == 1

    assert result.count == flooded((p, reach, lambda a, b: cells[a] == cells[b]))
    assert result.distinct == len(cells.unique())
    for label in range(result.count):
        assert len(cells[result.labels == label].unique()) == 1


def test_wider_neighbourhoods_join_more():
    net = dense(2, 12, 12, 1)
    counts = [grid_regions(net, points(20, 2), grid=40, neighbours=n).count for n in ("4", "8")]
    row = grid_regions(net, points(20, 2), grid=40)
    assert counts[0] > counts[1] >= row.distinct
    assert counts[0] > row.count >= row.distinct


def test_finer_grids_miss_less():
    net = dense(2, 16, 16, 1)
    grids = [grid_regions(net, SQUARE, grid=p, method="pattern") for p in (12, 40, 120, 400)]
    exact = grids[-1].distinct
    result = [grid_regions(net, SQUARE, grid=p, neighbours="8", exact=exact) for p in (12, 40, 120)]
    missed = [grid.missed for grid in result]
    assert missed[0] > missed[1] > missed[2] > 0
    assert [grid.distinct for grid in result] == [grid.distinct for grid in grids[:3]]
    assert f"{missed[0]:.1%} of {exact} missed" in str(result[0])


def test_a_tolerance_hides_small_kinks_from_slopes_but_not_from_patterns():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).double().eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.eye(2))
        net[0].bias.zero_()
        net[2].weight.copy_(torch.tensor([[1.0, 1e-5]]))
        net[2].bias.fill_(1.0)
    fine, coarse = (
        grid_regions(net, SQUARE, grid=10, tolerance=tolerance) for tolerance in (1e-8, 1e-3)
    )
    assert (fine.count, coarse.count) == (4, 2)
    assert grid_regions(net, SQUARE, grid=10, method="pattern", tolerance=1e-3).count == 4


def test_equal_slopes_are_told_apart_by_their_constants_alone():
    def steps(x):
        return x[:, :1] + (x[:, :1].detach() > 0).to(x.dtype)

    assert grid_regions(steps, SQUARE, grid=10).count == 2
    assert grid_regions(steps, SQUARE, grid=10, intercepts=False).count == 1


def test_half_precision_breaks_regions_where_the_tolerance_is_finer_than_its_rounding():
    net = dense(2, 8, 8, 1)
    exact = grid_regions(net, SQUARE, grid=24)
    half = grid_regions(net, SQUARE, grid=24, dtype="float16", tolerance=1e-6)
    kind = grid_regions(net, SQUARE, grid=24, dtype="float16", tolerance=2e-2)
    assert half.count > 2 * exact.count
    assert kind.count <= half.count
    assert next(net.parameters()).dtype == torch.float64


def test_rounded_weights_are_another_network_in_full_precision():
    net = dense(2, 8, 8, 1)
    result = grid_regions(net, SQUARE, grid=24, weights="float16")
    other = dense(2, 8, 8, 1).half().double()
    assert torch.equal(result.labels, grid_regions(other, SQUARE, grid=24).labels)
    assert result.weights == "float16"
    rounded, _, before = in_precision(net, SQUARE, "float64", weights="float16")
    assert before is None
    assert torch.equal(rounded[0].weight, other[0].weight)
    assert not torch.equal(net[0].weight, other[0].weight)


def test_maps_that_differ_in_one_number_are_different():
    compare = GridNeighbours("4", 2, 1e-3, torch.eye(2).double())
    compare.pairs(torch.tensor([[0.5, 1.0], [0.5, 2.0]]).double())
    assert compare.distinct(torch.tensor([0, 1])) == 2


def test_the_grid_spans_the_domain_and_by_default_the_points_with_a_margin():
    result = grid_regions(dense(2, 3, 1), points(5, 2), domain=BOX, grid=5)
    assert result.u.tolist() == result.v.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    result = grid_regions(dense(2, 3, 1), SQUARE, grid=5)
    assert result.u.tolist() == pytest.approx([-1.2, -0.6, 0.0, 0.6, 1.2])


def test_slices_of_a_large_space_are_those_of_the_network_on_it():
    net = dense(7, 9, 6, 2)
    result = grid_regions(net, points(3, 7), grid=30, method="pattern")

    def inside(z):
        return net(result.origin + z @ result.axes)

    (a, b), (c, d) = result.u[[0, -1]].tolist(), result.v[[0, -1]].tolist()
    box = torch.tensor([[a, c], [b, d]], dtype=torch.float64)
    flat = grid_regions(inside, SQUARE, grid=30, domain=box, method="pattern")
    assert torch.equal(result.labels, flat.labels)
    again = grid_regions(
        net,
        points(5, 7, seed=9),
        plane=through(points(3, 7)),
        domain=box,
        grid=30,
        method="pattern",
    )
    assert torch.equal(result.labels, again.labels)


def test_images_are_cut_by_planes_too():
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    x = points(3, 1, 6, 6)
    pattern = grid_regions(net.double().eval(), x, grid=12, method="pattern")
    slope = grid_regions(net, x, grid=12, memory=1)
    assert pattern.distinct >= slope.distinct > 3


def test_smooth_networks_have_a_region_for_each_point():
    net = dense(2, 5, 1, act=nn.Tanh)
    assert grid_regions(net, points(4, 2), grid=6).count == 36
    assert isinstance(grid_regions(net, points(4, 2), grid=6, method="pattern"), NotApplicable)


def test_a_line_has_no_plane():
    result = grid_regions(dense(1, 3, 1), points(4, 1))
    assert result.status == "not applicable: a plane needs at least two inputs"


def test_errors_say_what_to_do():
    net, x = dense(3, 4, 1), points(4, 3)
    line = torch.tensor([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]], dtype=torch.float64)
    with pytest.raises(ValueError, match="must not lie on one line"):
        grid_regions(net, line)
    with pytest.raises(ValueError, match="three points that span a plane, found 2: pass three"):
        grid_regions(net, x[:2])
    flat = Frame(origin=torch.zeros(2).double(), axes=torch.eye(2).double())
    with pytest.raises(ValueError, match=r"input space of shape \(3,\), found one in \(2,\)"):
        grid_regions(net, x, plane=flat)
    with pytest.raises(ValueError, match=r"a part of the plane with an area, found one from \[1.0"):
        grid_regions(net, x, domain=torch.ones(3, 2))
    with pytest.raises(ValueError, match="domain must be finite, found NaN or Inf"):
        grid_regions(net, x, domain=torch.full((3, 2), torch.nan))
    with pytest.raises(ValueError, match=r"at least two corners \(u, v\), found shape \(1, 2\)"):
        grid_regions(net, x, domain=torch.ones(1, 2))
    with pytest.raises(ValueError, match="grid must be at least 2, found 1"):
        grid_regions(net, x, grid=1)
    with pytest.raises(ValueError, match="exact must be at least 1, found 0"):
        grid_regions(net, x, exact=0)
    with pytest.raises(UnsupportedModelError, match="let gradients reach its input"):
        grid_regions(lambda x: x.detach() * 2, x)


def test_different_maps_of_many_coefficients_are_told_apart():
    from inscape.regions._grid_components import GridNeighbours, directions

    size, side = 3000, 6
    rows = points(side * side, size, seed=5)
    rows = rows / rows.norm(dim=1, keepdim=True)
    rows[1:] = rows[:1] + 0.02 * rows[1:]  # 3% apart: far more than the tolerance, yet near
    result = GridNeighbours("row", side, 0.01, directions(size))
    pairs = [result.pairs(row) for row in rows.reshape(side, side, size)]
    labels = joined_labels(side * side, pairs)
    assert result.distinct(labels) == side * side
    again = GridNeighbours("4", side, 0.01, directions(size))
    same = rows[:1].expand(side * side, -1).reshape(side, side, size)
    labels = joined_labels(side * side, [again.pairs(row) for row in same])
    assert again.distinct(labels) == 1


def joined_labels(count, pairs):
    from inscape.regions._grid_components import joined

    return joined(count, pairs)
