"""The cell of a point against shapely, brute force, random walks and linear programmes."""

import itertools
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import shapely
import torch
from scipy.optimize import linprog
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core.anytime import finished
from inscape._core.result import NotApplicable
from inscape.errors import BudgetError
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.regions._unit_kinks import Units
from inscape.regions.polytope import ProgrammeBudget, _first, _least, needed
from inscape.regions.region_at import region_at
from inscape.runtime.deadline import clock

MODULE = sys.modules["inscape.regions.region_at"]
KNOWN = {}


def read(net, x):
    """Read a network once, however many of its regions are looked at."""
    if id(net) not in KNOWN:
        KNOWN[id(net)] = net, piecewise(net, x)
    return KNOWN[id(net)][1]


@pytest.fixture(autouse=True)
def _read_once(monkeypatch):
    monkeypatch.setattr(MODULE, "piecewise", read)


def pattern(net, x):
    return torch.cat([op_pattern.long() for op_pattern in read(net, x).patterns(x)], 1)


def linear(weight, bias):
    weight = torch.as_tensor(weight).double()
    layer = nn.Linear(weight.shape[1], weight.shape[0]).double()
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(torch.as_tensor(bias).double())
    return layer


def one_layer(weight, bias):
    return nn.Sequential(linear(weight, bias), nn.ReLU()).eval()


CONV = nn.Sequential(
    nn.Conv2d(1, 2, 2), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
).double()
NETS = {
    "deep": cache(lambda: (dense(3, 8, 6, 2), points(3, 3))),
    "leaky": cache(lambda: (dense(2, 6, 6, 1, act=nn.LeakyReLU), points(3, 2))),
    "hardtanh": cache(lambda: (dense(3, 5, 4, 1, act=nn.Hardtanh), points(3, 3))),
    "pool": cache(lambda: (CONV.eval(), points(3, 1, 5, 5))),
    "five inputs": cache(lambda: (dense(5, 12, 12, 1), points(3, 5))),
}


@pytest.mark.parametrize("name", NETS)
def test_inside_is_the_same_pattern_and_outside_another(name):
    net, x = NETS[name]()
    for index in range(len(x)):
        result = region_at(net, x, index=index)
        assert result.contains(x[index : index + 1]).all()
        steps = points(400, *x.shape[1:], seed=index) * torch.logspace(-2, 1, 400).double().reshape(
            -1, *[1] * (x.ndim - 1)
        )
        walk = x[index] + float(result.distances.median()) * steps
        same = (pattern(net, walk) == pattern(net, x[index : index + 1])).all(1)
        assert same.any()
        assert not same.all()
        assert torch.equal(result.contains(walk), same)


@pytest.mark.parametrize("name", NETS)
def test_map_of_the_cell_is_the_network_in_it(name):
    net, x = NETS[name]()
    result = region_at(net, x, index=1)
    walk = x[1] + 0.9 * result.ball * nn.functional.normalize(
        points(20, *x.shape[1:]).flatten(1)
    ).reshape(20, *x.shape[1:])
    expected = walk.flatten(1) @ result.slopes.T + result.constants
    assert_close(net(walk).detach(), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NETS)
def test_each_face_is_needed_and_crossing_it_changes_its_makers_only(name):
    net, x = NETS[name]()
    result, every = region_at(net, x), region_at(net, x, faces="all")
    ops = len(read(net, x).ops)
    assert len(result.distances) <= len(every.distances) <= result.constraints
    assert result.proven.all()
    for k in range(len(result.distances)):
        # one programme over all others finds a point beyond the face
        others = torch.arange(len(result.offsets)) != k
        best = linprog(
            -result.normals[k].numpy(),
            A_ub=torch.cat([result.normals[others], result.normals[k : k + 1]]).numpy(),
            b_ub=torch.cat([result.offsets[others], result.offsets[k : k + 1] + 1]).numpy(),
            bounds=(None, None),
        )
        assert -best.fun > result.offsets[k] + 1e-9
    # redundant half-spaces follow from the faces
    for normal, offset in zip(every.normals, every.offsets, strict=True):
        best = linprog(
            -normal.numpy(),
            A_ub=result.normals.numpy(),
            b_ub=result.offsets.numpy(),
            bounds=(None, None),
        )
        assert -best.fun <= offset + 1e-8
    assert set(result.switching_units[:, 1].tolist()) <= set(range(ops))


def test_makers_are_the_units_that_turn_beyond_the_face():
    net, x = dense(3, 8, 6, 2), points(4, 3)
    result = region_at(net, x)
    before = [pattern[0] for pattern in read(net, x).patterns(x[:1])]
    for k in range(len(result.distances)):
        if result.facet_distances[k] > result.distances[k] + 1e-9:
            continue  # the foot is not on the face
        beyond = x[:1] + (result.distances[k] + 1e-9) * result.normals[k]
        after = [pattern[0] for pattern in read(net, x).patterns(beyond)]
        turned = {
            (op, unit)
            for op, (a, b) in enumerate(zip(before, after, strict=True))
            for unit in (a != b).nonzero().flatten().tolist()
        }
        switching_units = {(b, u) for face, b, u, _ in result.switching_units.tolist() if face == k}
        assert switching_units <= turned
        assert result.layers[k] == min(b for b, _ in switching_units)


def test_polygon_radius_and_area_agree_with_shapely():
    net, x = dense(2, 10, 8, 1), points(6, 2)
    for index in range(6):
        every = region_at(net, x, index=index, faces="all", box=(-9.0, 9.0))
        result = region_at(net, x, index=index, box=(-9.0, 9.0))
        shape = shapely.box(-9, -9, 9, 9)
        for normal, offset in zip(every.normals.tolist(), every.offsets.tolist(), strict=True):
            shape = shape.intersection(half_plane(normal, offset))
        assert shapely.Polygon(result.polygon(30.0).numpy()).symmetric_difference(
            shape
        ).area == pytest.approx(0, abs=1e-9)
        assert len(result.distances) == len(shape.simplify(1e-9).exterior.coords) - 1
        ball = shapely.maximum_inscribed_circle(shape, tolerance=1e-6).length
        assert result.radius == pytest.approx(ball, abs=1e-5)
        assert result.bounded
        point = shapely.Point(*x[index].tolist())
        assert result.ball == pytest.approx(shape.exterior.distance(point))
        sides = itertools.pairwise(shape.simplify(1e-9).exterior.coords)
        lengths = sorted(shapely.LineString(side).distance(point) for side in sides)
        assert sorted(result.facet_distances.tolist()) == pytest.approx(lengths)


def half_plane(normal, offset, far=1000.0):
    normal = np.array(normal)
    along = np.array([-normal[1], normal[0]])
    foot = offset * normal
    corners = [foot + far * along, foot - far * along]
    return shapely.Polygon([*corners, corners[1] - far * normal, corners[0] - far * normal])


def test_facet_distances_agree_with_all_active_sets():
    result = region_at(dense(4, 9, 7, 1), points(3, 4))
    q, p = result.normals.numpy(), result.distances.numpy()
    for k in range(len(p)):
        best = np.inf
        others = [j for j in range(len(p)) if j != k]
        for size in range(4):
            for subset in itertools.combinations(others, size):
                rows = [k, *subset]
                u = np.linalg.lstsq(q[rows], p[rows])[0]
                if (q @ u <= p + 1e-9).all():
                    best = min(best, np.linalg.norm(u))
        assert result.facet_distances[k].item() == pytest.approx(best)
    assert (result.facet_distances > result.distances + 1e-3).any()


def test_all_cells_of_a_tiny_network_by_brute_force():
    net = dense(2, 4, 3, 1)
    x = 4 * points(3000, 2)
    seen = {tuple(row) for row in pattern(net, x).tolist()}
    starts = {tuple(row): k for k, row in enumerate(pattern(net, x).tolist())}
    cells = [region_at(net, x, index=starts[key]) for key in sorted(seen)]
    inside = torch.stack([cell.contains(x) for cell in cells])
    assert (inside.sum(0) == 1).all()
    assert len({tuple(c.point.tolist()) for c in cells}) == len(seen)


def test_a_cube_has_its_sides_and_an_octant_none_on_the_far_side():
    box = one_layer(torch.cat([torch.eye(3), -torch.eye(3)]), [1.0] * 6)
    result = region_at(box, torch.tensor([[0.25, 0.0, 0.0]], dtype=torch.float64))
    assert_close(result.distances, torch.tensor([0.75, 1, 1, 1, 1, 1.25]).double())
    assert result.radius == pytest.approx(1)
    assert_close(result.centre, torch.zeros(3, dtype=torch.float64), atol=1e-9, rtol=0)
    assert result.bounded
    octant = region_at(box, torch.tensor([[2.0, 2.0, 2.0]], dtype=torch.float64))
    assert (len(octant.distances), octant.radius, octant.bounded) == (3, float("inf"), False)


def test_a_plane_that_only_touches_a_corner_makes_no_face():
    sides = torch.cat([torch.eye(3), -torch.eye(3), -torch.ones(1, 3)])
    box = one_layer(sides, [1.0] * 6 + [3.0])
    result = region_at(box, torch.zeros(1, 3, dtype=torch.float64))
    assert sorted(result.switching_units[:, 2].tolist()) == [0, 1, 2, 3, 4, 5]


def test_a_half_strip_is_not_bounded():
    net = one_layer([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 1.0])
    result = region_at(net, torch.zeros(1, 2, dtype=torch.float64))
    assert (len(result.distances), result.bounded, result.radius) == (3, False, pytest.approx(1))


def test_doubles_are_one_face_with_all_their_makers():
    net = one_layer([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1.0, 2.0, 0.0, 5.0])
    result = region_at(net, torch.tensor([[0.0, 1.0]], dtype=torch.float64))
    assert_close(result.distances, torch.ones(2, dtype=torch.float64))
    assert len(result.switching_units) == 3
    names = {
        tuple(sorted(m[2] for m in result.switching_units.tolist() if m[0] == k)) for k in range(2)
    }
    assert names == {(0, 1), (2,)}
    assert result.constraints == 4


def test_dead_and_constant_units_make_no_face():
    net = nn.Sequential(
        linear([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0]),
        nn.ReLU(),
        linear([[0.0, 3.0], [1.0, 1.0], [0.0, 0.0]], [1.0, -9.0, 0.0]),
        nn.ReLU(),
    ).eval()
    result = region_at(net, torch.zeros(1, 2, dtype=torch.float64))
    assert result.constant == 3
    assert_close(result.distances, torch.tensor([1.0, 7.0]).double())
    assert result.layers.tolist() == [0, 1]
    assert result.by_layer() == {0: 1, 1: 1}


def test_a_network_without_kinks_has_one_region():
    result = region_at(nn.Linear(2, 1).double().eval(), points(2, 2))
    assert result.ball == result.radius == float("inf")
    assert not result.bounded
    assert next(iter(result.rows()))["distance"] == float("inf")


def test_a_point_on_a_face_is_said_and_belongs_to_the_side_where_units_are_off():
    net = one_layer([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, -1.0, -9.0])
    result = region_at(net, torch.zeros(1, 2, dtype=torch.float64))
    assert result.on_faces.tolist() == [0]
    assert result.ball == 0
    inside = torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert result.contains(inside).tolist() == [True, False]
    assert len(result.distances) == 2
    assert result.status == "ok"


def test_a_corner_of_many_planes_that_opens_without_end():
    turns = torch.linspace(0, 3, 7).double()
    net = one_layer(torch.stack([turns.cos(), turns.sin()], 1), [0.0] * 7)
    result = region_at(net, torch.zeros(1, 2, dtype=torch.float64))
    assert (result.radius, result.bounded, result.status) == (float("inf"), False, "ok")
    assert sorted(result.switching_units[:, 2].tolist()) == [0, 6]
    assert torch.equal(result.centre, result.point)


def test_a_cell_without_inside_is_said():
    net = one_layer([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [0.0, 0.0, 3.0])
    result = region_at(net, torch.zeros(1, 2, dtype=torch.float64))
    assert result.radius == 0
    assert result.status.startswith("the cell has no inside")


def test_rescaled_and_permuted_units_make_the_same_cell():
    net, x = dense(3, 8, 6, 2), points(1, 3)
    other = dense(3, 8, 6, 2)
    order = torch.tensor([3, 1, 0, 7, 6, 2, 5, 4])
    scale = torch.logspace(-8, 7, 8).double()
    with torch.no_grad():
        other[0].weight.copy_((net[0].weight * scale[:, None])[order])
        other[0].bias.copy_((net[0].bias * scale)[order])
        other[2].weight.copy_((net[2].weight / scale)[:, order])
    first, second = region_at(net, x), region_at(other, x)
    assert_close(first.normals, second.normals)
    assert_close(first.offsets, second.offsets)
    assert_close(first.facet_distances, second.facet_distances)


def test_wide_first_layers_need_no_programme():
    net, x = dense(60, 20, 3), points(1, 60)
    result = region_at(net, x)
    assert (len(result.distances), result.programmes) == (20, 0)
    w, b = net[0].weight.detach(), net[0].bias.detach()
    expected = (x @ w.T + b).abs()[0] / w.norm(dim=1)
    assert_close(result.distances, expected.sort().values)


@pytest.mark.parametrize("seed", range(3))
def test_least_squares_and_linear_programmes_find_the_same_faces(seed, monkeypatch):
    draw = np.random.default_rng(seed)
    normals = draw.standard_normal((40, 4))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    slacks = draw.uniform(0.5, 2.0, 40)
    by_least, sure = needed(normals, slacks, np.zeros(4), ProgrammeBudget(10**6))
    assert sure.all()
    polytope = sys.modules["inscape.regions.polytope"]
    monkeypatch.setattr(polytope, "_reached", lambda *_: None)
    monkeypatch.setattr(polytope, "_shot", lambda *_: iter(()))
    by_programme, sure = needed(normals, slacks, np.zeros(4), ProgrammeBudget(10**6))
    assert sure.all()
    assert 0 < by_least.sum() < 40
    assert by_least.tolist() == by_programme.tolist()


@pytest.mark.parametrize("far", [1.0, 3e8, 5e8, 9e8])
def test_the_nearest_point_of_a_half_space_far_away_is_where_its_plane_is(far):
    point, size = _least(np.array([[1.0]]), np.array([far]))
    assert point.tolist() == pytest.approx([far], rel=1e-12)
    assert size == pytest.approx(1 / np.hypot(1, far), rel=1e-12)


def test_rays_that_leave_two_half_spaces_at_once_prove_nothing():
    speed = np.array([[1.0, 1.0, -1.0], [1.0, 0.5, -1.0]])
    assert _first(speed, np.array([1.0, 1.0])).tolist() == [-1, 0, -1]


def test_the_three_bands_of_the_xor_network_s9():
    first, second = linear([[1.0, 1.0], [1.0, 1.0]], [2.0, 0.0]), linear([[1.0, -2.0]], [-1.0])
    net = nn.Sequential(first, nn.ReLU(), second).eval()
    x = torch.tensor([[1.0, 1.0], [-1.0, 0.5], [-2.0, -2.0]], dtype=torch.float64)
    cells = [region_at(net, x, index=k) for k in range(3)]
    assert [cell.slopes.tolist() for cell in cells] == [[[-1, -1]], [[1, 1]], [[0, 0]]]
    assert [cell.constants.item() for cell in cells] == pytest.approx([1, 1, -1])
    root = 2**0.5
    assert cells[0].offsets.tolist() == pytest.approx([0])  # -s <= 0
    assert sorted(cells[1].offsets.tolist()) == pytest.approx([0, root])  # s <= 0, -s <= 2
    assert cells[1].radius == pytest.approx(root / 2)
    assert cells[2].offsets.tolist() == pytest.approx([-root])  # s <= -2


def test_a_spent_budget_keeps_what_is_open_and_says_so():
    net, x = dense(3, 30, 30, 1), points(1, 3)
    result = region_at(net, x, programmes=0)
    full = region_at(net, x)
    assert result.status.startswith("budget spent (programmes): ")
    assert (result.ended_by, full.ended_by) == ("programmes", "complete")
    assert len(full.distances) < len(result.distances)
    assert result.facet_distances is None
    exactly = "donot_use_mm_for_euclid_dist"  # a product would leave the root of the rounding
    gaps = torch.cdist(result.normals, full.normals, compute_mode=exactly).amin(1)
    assert result.proven.any()
    assert bool((gaps[result.proven] < 1e-9).all())
    assert not torch.equal(result.proven, result.proven.sort().values)  # so that order counts
    inside = result.contains(x + 0.1 * points(200, 3))
    assert torch.equal(inside, full.contains(x + 0.1 * points(200, 3)))


def test_no_time_leaves_everything_open_and_says_so(monkeypatch):
    net, x = dense(3, 30, 30, 1), points(1, 3)
    result = region_at(net, x, seconds=0.0)
    assert not result.proven.any()
    assert len(result.distances) == result.constraints
    assert result.status.startswith("budget spent (seconds): 60 of 60 faces may be redundant")
    assert result.bounded is None
    monkeypatch.setattr(sys.modules["inscape.regions.polytope"], "_solve", lambda *_: None)
    blind = region_at(net, x, seconds=0.0)
    assert blind.status.endswith(", the largest ball is not known")
    assert torch.equal(blind.centre, blind.point)


def test_rows_name_place_and_unit():
    row = next(iter(region_at(*NETS["pool"]()).rows()))
    assert row["place"] in ("'max_pool2d' in module '1'", "'relu' in module '2'")
    assert row["switching_units"] >= 1


def test_a_float32_model_is_read_in_float64():
    result = region_at(dense(3, 4, 1).float(), points(2, 3).float())
    assert result.converted == "float32"


def test_errors_say_what_to_do():
    net, x = dense(2, 4, 1), points(3, 2)
    with pytest.raises(ValueError, match="index must name one of 3 points, found 3: choose 0 to 2"):
        region_at(net, x, index=3)
    with pytest.raises(ValueError, match=r"the box must hold the point, .* widen the box"):
        region_at(net, x, box=(50.0, 60.0))
    with pytest.raises(
        BudgetError, match=r"half-spaces must fit .* 4 of them in 2 dim.* raise mem"
    ):
        region_at(net, x, memory=8)
    with pytest.raises(ValueError, match="a polygon needs two inputs, found 3"):
        region_at(dense(3, 4, 1), points(2, 3)).polygon(1.0)
    with pytest.raises(ValueError, match="programmes must be at least 0, found -1"):
        region_at(net, x, programmes=-1)


def test_unknown_words_are_named(unchecked):
    with pytest.raises(ValueError, match="faces must be one of 'irredundant', 'all'"):
        region_at(dense(2, 4, 1), points(3, 2), faces="some")


def test_smooth_networks_have_no_regions():
    result = region_at(dense(2, 3, 1, act=nn.Tanh), points(2, 2))
    assert isinstance(result, NotApplicable)
    assert "'tanh' in module '1'" in result.reason


def test_a_longer_time_by_any_clock_leaves_fewer_faces_open():
    net, x = dense(3, 30, 30, 1), points(1, 3)
    full, opened = region_at(net, x), []
    for seconds in (60.0, 80.0, 120.0):
        count = itertools.count()
        with clock(lambda count=count: float(next(count))):  # each look takes a second
            result = region_at(net, x, seconds=seconds)
        opened.append(int((~result.proven).sum()))
        inside = result.contains(x + 0.1 * points(200, 3))
        assert torch.equal(inside, full.contains(x + 0.1 * points(200, 3)))
        assert result.status.startswith(
            f"budget spent (seconds): {opened[-1]} of {len(result.proven)} faces"
        )
        assert next(count) < 2 * seconds + 200  # every face that is left looks once
    assert 60 > opened[0] > opened[1] > opened[2] > 0
    assert full.proven.all()


def test_the_nearest_half_spaces_come_one_by_one_and_the_map_after_as_many_as_it_has_rows():
    net, x = dense(12, 60, 40, 30), points(2, 12)
    result = [r for r in region_at.refine(net, x) if r is not None]
    early = [r for r in result if r.examined < r.constraints]
    assert [r.examined for r in early[:5]] == [1, 2, 3, 4, 5]
    assert min(r.examined for r in result if r.slopes is not None) >= 30
    balls = [r.ball for r in result]
    # a product of one row rounds otherwise than one of many: by units in the last place
    assert all(after <= before * (1 + 1e-14) for before, after in pairwise(balls))
    assert_close(result[-1].ball, region_at(net, x).ball)


def test_a_gradient_goes_back_from_the_operation_of_its_unit_and_shares_one_forward_pass(
    monkeypatch,
):
    net, x = dense(12, 60, 40, 3), points(2, 12)
    units, runs = Units(read(net, x), x[0].double()), []
    finished(units.look())
    traced = Piecewise.traced_in_turn
    monkeypatch.setattr(Piecewise, "traced_in_turn", lambda *args: runs.append(1) or traced(*args))
    order, moving = units.nearest(10**6)
    assert (len(order), moving) == (100, 100)
    normals = finished(units.gradients(order))
    assert len(runs) == 1
    every = finished(units.all_faces(2**30))
    back = np.argsort(order)
    assert_close(units.faces(np.arange(100), normals[back]).normals, every.normals)


@pytest.mark.parametrize("most", [1, 7, 99])
def test_a_few_of_the_nearest_are_the_first_of_all(most):
    net, x = dense(12, 60, 40, 3), points(2, 12)
    units = Units(read(net, x), x[0].double())
    finished(units.look())
    every, _ = units.nearest(10**6)
    nearest, moving = units.nearest(most)
    assert moving == 100
    np.testing.assert_array_equal(nearest, every[:most])


def test_a_spent_memory_is_named():
    net, x = dense(12, 60, 40, 3), points(2, 12)
    result = region_at(net, x, memory=48 * 12 * 5)
    assert (result.examined, result.constraints, result.ended_by) == (5, 100, "memory")
    assert result.status.startswith(
        "budget spent (memory): only 5 of 100 half-spaces were examined"
    )
