"""Plane regions against exact rational arithmetic, geometry's own laws, and the network itself."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape.regions import Frame, plane_regions, through
from oracles import planes

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


def net(*layers, slope=0.0):
    """Return a network with the given weights and biases."""
    parts: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(len(weight[0]), len(weight), dtype=torch.float64)
        linear.weight.data = torch.tensor(weight, dtype=torch.float64)
        linear.bias.data = torch.tensor(bias, dtype=torch.float64)
        parts += [linear, nn.LeakyReLU(slope) if slope else nn.ReLU()]
    return nn.Sequential(*parts[:-1]).eval()


def drawn(seed, *widths, biased=True, span=4):
    """Return small whole numbers as weights: many lines then meet in one point."""
    draw = torch.Generator().manual_seed(seed)
    layers = []
    for d, c in itertools.pairwise(widths):
        weight = torch.randint(-span, span + 1, (c, d), generator=draw)
        bias = torch.randint(-span, span + 1, (c,), generator=draw) * int(biased)
        layers.append((weight.tolist(), bias.tolist()))
    return layers


def initialised(*widths):
    """Return PyTorch's default initialisation in float64 after seed 0, leaving the world alone."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        parts: list[nn.Module] = []
        for d, c in itertools.pairwise(widths):
            parts += [nn.Linear(d, c, dtype=torch.float64), nn.ReLU()]
    return nn.Sequential(*parts[:-1]).eval()


def edge_cases():
    yield "zero biases", drawn(0, 2, 5, 4, 1, biased=False)
    yield (
        "duplicate units",
        [([[1, 2], [1, 2], [2, 4], [-1, -2]], [1, 1, 2, -1]), ([[1, -1, 2, 1]], [0])],
    )
    yield (
        "dead units",
        [([[1, 0], [0, 0], [0, 0]], [0, -1, 0]), ([[1, 1, 1], [0, 1, 0]], [0, 0]), ([[1, 2]], [1])],
    )
    yield "lines through a corner", [([[1, 1], [1, -1], [2, 1]], [0, 0, 1]), ([[1, 1, 1]], [0])]
    yield (
        "parallel lines",
        [
            ([[1, 0], [1, 0], [1, 0]], [0.5, 0, -0.5]),
            ([[1, -2, 1], [1, 1, 1]], [0, -1]),
            ([[1, 1]], [0]),
        ],
    )
    yield "line on the side of the domain", [([[1, 0], [0, 1]], [1, -1]), ([[1, 1]], [0])]
    yield (
        "later line on an earlier one",
        [([[1, 0], [0, 1]], [0, 0]), ([[1, 0], [0, 1], [1, 1]], [0, 0, 0]), ([[1, 1, 1]], [0])],
    )
    for seed in range(12):
        yield f"whole numbers {seed}", drawn(seed, 2, 5, 5, 4, 2)


CASES = dict(edge_cases())


@pytest.mark.parametrize("slope", [0.0, 0.25])
@pytest.mark.parametrize("name", CASES)
def test_cells_are_those_of_rational_arithmetic(name, slope):
    layers = CASES[name]
    result = plane_regions(net(*layers, slope=slope), SQUARE, domain=SQUARE)
    expected = planes.cells(layers, SQUARE.tolist(), [slope] * (len(layers) - 1))
    assert result.cells == len(expected)
    ours = torch.cat([result.pattern(k) for k in range(len(layers) - 1)], 1).tolist()
    areas = {tuple(bits): area for bits, area in zip(ours, result.areas.tolist(), strict=True)}
    assert areas.keys() == {pattern for pattern, _, _ in expected}
    for cell, bits in enumerate(ours):
        _, polygon, maps = next(known for known in expected if known[0] == tuple(bits))
        assert_close(areas[tuple(bits)], float(planes.area(polygon)), rtol=1e-9, atol=1e-12)
        slopes = torch.tensor([[float(m[0]), float(m[1])] for m in maps], dtype=torch.float64)
        intercepts = torch.tensor([float(m[2]) for m in maps], dtype=torch.float64)
        assert_close(result.slopes[cell], slopes)
        assert_close(result.intercepts[cell], intercepts)


@pytest.mark.parametrize(
    ("widths", "count"),
    [((32,), 152), ((32, 32), 490), ((64, 64, 64), 4066), ((128, 128, 128), 23350)],
)
def test_counts_known_from_three_systems(widths, count):
    model = initialised(2, *widths, 1)
    result = plane_regions(model, SQUARE, domain=SQUARE, threads=2)
    assert result.cells == count
    assert result.complete
    assert_laws(result, model)


class Everything(nn.Module):
    """All supported operations in one network of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.lift = nn.Linear(2, 2 * 36)
        self.first, self.second = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.norm, self.kink = nn.BatchNorm2d(3), nn.PReLU(3)
        self.last = nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x).reshape(-1, 2, 6, 6)
        h = functional.relu(self.norm(self.first(h)))
        h = h + functional.leaky_relu(self.second(h), 0.2)
        h = functional.max_pool2d(self.kink(h), 3, 2, 1)
        h = functional.relu6(6 * h)
        h = functional.interpolate(h, scale_factor=2.0, mode="bilinear")
        h = torch.maximum(h, 0.3 * h.abs() + 1)
        h = functional.hardtanh(functional.adaptive_avg_pool2d(h, 2) - 3)
        return self.last(torch.minimum(h, h.flip(1)).flatten(1))


def everything(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Everything()
    return model.double().eval()


def assert_laws(result, model):
    """Hold a complete arrangement against what must be true of every one."""
    assert len(result.vertices) - len(result.edges) + result.cells == 1  # Euler, outside left out
    assert_close(float(result.areas.sum()), float(area_of(result.domain)) * result.frame.area)
    assert float(result.areas.min()) > 0
    centre = result.centroids
    with torch.no_grad():
        expected = model(result.frame.at(centre)).flatten(1)
    scale = float(expected.abs().max())
    cells = torch.arange(result.cells)
    assert float((result.values(cells, centre) - expected).abs().max()) <= 1e-12 * scale
    inner = (result.neighbours >= 0).all(1)
    ends, sides = result.edges[inner].long(), result.neighbours[inner].long()
    for end in range(2):
        at = result.vertices[ends[:, end]]
        left, right = (result.values(sides[:, side], at) for side in range(2))
        assert float((left - right).abs().max()) <= 1e-12 * scale  # continuous over every edge


def area_of(corners):
    after = corners.roll(-1, 0)
    return (corners[:, 0] * after[:, 1] - corners[:, 1] * after[:, 0]).sum() / 2


def test_every_operation_at_once():
    model = everything()
    result = plane_regions(model, SQUARE, domain=0.3 * SQUARE)
    assert result.cells > 300
    assert_laws(result, model)
    all_patterns = torch.cat([result.pattern(k) for k in range(len(result.ops))], 1)
    assert len(all_patterns.unique(dim=0)) == result.cells  # no cell is cut in two
    inside = Frame(origin=result.origin, axes=result.axes).at(result.centroids)
    from inscape.piecewise.graph.network import piecewise

    expected = piecewise(model, SQUARE).patterns(inside)
    for k, pattern in enumerate(expected):
        assert torch.equal(result.pattern(k), pattern)


def test_a_maximum_of_three_planes_is_three_cells():
    def f(x):
        u, v = x[:, :1], x[:, 1:]
        return functional.max_pool1d(torch.cat([u, v, -u - v], 1)[:, None], 3)[:, 0]

    result = plane_regions(f, SQUARE, domain=SQUARE)
    assert (result.cells, result.regions) == (3, 3)
    assert_laws(result, f)
    assert_close(result.areas.sum(), torch.tensor(4.0, dtype=torch.float64))


def test_relu_and_max_pool_in_either_order_differ_in_cells_only():
    weight = points(4, 2, seed=3)

    def pool(h):
        return functional.max_pool1d(h[:, None], 2)[:, 0].sum(1, keepdim=True)

    first = plane_regions(lambda x: pool((x @ weight.T).relu()), SQUARE, domain=SQUARE)
    second = plane_regions(
        lambda x: (
            pool(x @ weight.T).relu()
            if False
            else functional.max_pool1d((x @ weight.T)[:, None], 2)[:, 0].relu().sum(1, keepdim=True)
        ),
        SQUARE,
        domain=SQUARE,
    )
    assert first.regions == second.regions
    assert first.cells > second.cells
    assert_close(first.integral(), second.integral())


def test_cells_without_effect_merge():
    layers = [([[1, 0], [0, 1], [1, 1]], [0, 0, 0]), ([[1, 1, 0]], [0])]
    result = plane_regions(net(*layers), SQUARE, domain=SQUARE)
    assert (result.cells, result.regions) == (6, 4)
    straight = plane_regions(nn.Sequential(nn.Linear(2, 5), nn.PReLU(init=1.0)).eval(), SQUARE)
    assert straight.regions == 1
    assert straight.cells > 1


def test_a_dead_network_is_one_cell():
    result = plane_regions(lambda x: (x[:, :1] * 0 - 1).relu(), SQUARE, domain=SQUARE)
    assert (result.cells, result.regions) == (1, 1)
    assert result.integral().tolist() == [0.0]


def rearranged(model, seed=0):
    """Return the network with hidden units in another order and at other scales."""
    draw = torch.Generator().manual_seed(seed)
    linears = [m for m in model if isinstance(m, nn.Linear)]
    for first, second in itertools.pairwise(linears):
        order = torch.randperm(first.out_features, generator=draw)
        scale = 10 ** (4 * torch.rand(first.out_features, generator=draw, dtype=torch.float64) - 2)
        first.weight.data = (scale[:, None] * first.weight.data)[order]
        first.bias.data = (scale * first.bias.data)[order]
        second.weight.data = (second.weight.data / scale)[:, order]
    return model


def test_order_and_scale_of_units_change_only_their_labels():
    first = plane_regions(initialised(2, 24, 24, 2), SQUARE, domain=SQUARE)
    second = plane_regions(rearranged(initialised(2, 24, 24, 2)), SQUARE, domain=SQUARE)
    assert torch.equal(first.first, second.first)
    assert torch.equal(first.corners, second.corners)
    assert torch.equal(first.neighbours, second.neighbours)
    assert torch.equal(first.switching_units[:, 0], second.switching_units[:, 0])
    for name in ("vertices", "slopes", "intercepts", "areas"):
        assert_close(getattr(first, name), getattr(second, name), rtol=1e-9, atol=1e-11)


def test_polygons_are_those_of_shapely():
    shapely = pytest.importorskip("shapely")
    result = plane_regions(dense(2, 12, 8, 1), SQUARE, domain=SQUARE)
    shapes = [shapely.Polygon(result.polygon(k).numpy()) for k in range(result.cells)]
    assert all(shape.is_valid for shape in shapes)
    assert_close(torch.tensor([s.area for s in shapes], dtype=torch.float64), result.areas)
    together = shapely.union_all(shapes)
    assert math.isclose(together.area, 4.0, rel_tol=1e-12)
    assert_close(
        torch.tensor([[s.centroid.x, s.centroid.y] for s in shapes], dtype=torch.float64),
        result.centroids, rtol=1e-7, atol=1e-9,
    )  # fmt: skip


def test_slice_through_three_points_of_an_image_space():
    model, x = dense(9, 16, 8, 3, seed=4), points(5, 9)
    result = plane_regions(model, x)
    assert_laws(result, model)
    assert_close(result.frame.of(x[:1]), torch.zeros(1, 2, dtype=torch.float64))
    assert_close(result.frame.gram, torch.eye(2, dtype=torch.float64))
    slanted = Frame(origin=x[0], axes=torch.stack([x[1] - x[0], x[2] - x[0]]))
    triangle = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    inside = plane_regions(model, x, plane=slanted, domain=triangle)
    assert_laws(inside, model)
    a, b = x[1] - x[0], x[2] - x[0]
    true_area = float((a @ a * (b @ b) - (a @ b) ** 2).sqrt()) / 2
    assert_close(float(inside.areas.sum()), true_area)
    assert inside.cells <= result.cells


def test_two_threads_find_the_same():
    model = initialised(2, 64, 64, 1)
    first, second = (plane_regions(model, SQUARE, domain=SQUARE, threads=k) for k in (1, 2))
    assert torch.equal(first.vertices, second.vertices)
    assert torch.equal(first.corners, second.corners)
    assert torch.equal(first.slopes, second.slopes)


def test_a_small_window_far_from_zero_keeps_its_cells():
    model = initialised(2, 32, 32, 1)
    shifted = initialised(2, 32, 32, 1)
    shifted[0].bias.data -= shifted[0].weight.data @ torch.tensor(
        [1000.0, -1000.0], dtype=torch.float64
    )
    there = torch.tensor([1000.0, -1000.0], dtype=torch.float64)
    first = plane_regions(model, SQUARE, domain=1e-3 * SQUARE)
    second = plane_regions(shifted, SQUARE + there, domain=1e-3 * SQUARE + there)
    assert first.cells == second.cells
    assert_close(first.areas, second.areas, rtol=1e-4, atol=1e-12)  # inputs of 1000 keep 13 digits


def test_budgets_end_early_and_say_so():
    model = initialised(2, 128, 128, 128, 1)
    result = plane_regions(model, SQUARE, domain=SQUARE, regions=1000)
    assert not result.complete
    assert 500 <= result.cells <= 1000
    assert 0 < result.covered < 1
    assert "then the budget" in result.summary().basis
    assert result.summary().kind == "lower bound"
    centre = result.centroids
    with torch.no_grad():
        assert_close(result.values(torch.arange(result.cells), centre), model(centre))
    by_memory = plane_regions(model, SQUARE, domain=SQUARE, memory=2**20)
    assert not by_memory.complete
    assert by_memory.cells < 1000


def test_a_network_with_a_billion_regions_keeps_to_its_budget():
    model = initialised(2, *[512] * 6, 1)
    result = plane_regions(model, SQUARE, domain=1000 * SQUARE, regions=2000, seconds=20.0)
    assert 1 <= result.cells <= 2000
    assert not result.complete


def test_half_precision_is_converted_and_said():
    with pytest.warns(UserWarning, match="the model is in float16: measured as a copy in float32"):
        result = plane_regions(nn.Sequential(nn.Linear(2, 4), nn.ReLU()).half().eval(), SQUARE)
    assert result.converted == "float32"
    assert plane_regions(dense(2, 4, 1), SQUARE).converted is None


def test_other_models_get_the_reason():
    result = plane_regions(nn.Sequential(nn.Linear(2, 3), nn.Softmax(1)).eval(), SQUARE.float())
    assert isinstance(result, NotApplicable)
    assert "'softmax' in module '1'" in result.reason
    assert "analyse the logits" in result.reason
    curved = plane_regions(nn.Sequential(nn.Linear(2, 3), nn.Tanh()).eval(), SQUARE.float())
    assert isinstance(curved, NotApplicable)
    assert "'tanh' in module '1'" in curved.reason
    flat = plane_regions(dense(1, 3, 1), points(4, 1))
    assert isinstance(flat, NotApplicable)
    assert "at least two input dimensions" in flat.reason


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (torch.zeros(4, 2), "must have an area"),
        (torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), "must have an area"),
        (torch.tensor([[0.0, 0.0], [math.nan, 1.0], [2.0, 2.0]]), "must be finite"),
        (torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.5, 0.5], [0.0, 2.0]]), "must be convex"),
        (torch.tensor([[0.0, 0.0], [2.0, 0.0]]), "at least three corners"),
    ],
)
def test_bad_domains_are_refused(domain, text):
    with pytest.raises(ValueError, match=text):
        plane_regions(dense(2, 3, 1), SQUARE, domain=domain)


def test_bad_planes_and_budgets_are_refused():
    model, x = dense(3, 4, 1), points(6, 3)
    with pytest.raises(ValueError, match="must not lie on one line"):
        through(torch.stack([x[0], (x[0] + x[1]) / 2, x[1]]))
    with pytest.raises(ValueError, match="must not lie on one line"):
        through(torch.stack([x[0], x[0], x[1]]))
    with pytest.raises(ValueError, match="goes through three points, found 2"):
        through(x[:2])
    with pytest.raises(ValueError, match="two different directions"):
        Frame(origin=x[0], axes=torch.stack([x[1], 2 * x[1]]))
    with pytest.raises(ValueError, match="must be finite"):
        Frame(origin=x[0] * math.nan, axes=x[1:3])
    with pytest.raises(ValueError, match="two directions of the shape of its origin"):
        Frame(origin=x[0], axes=points(2, 4))
    with pytest.raises(ValueError, match=r"must lie in the input space of shape \(3,\)"):
        plane_regions(model, x, plane=through(points(3, 4)))
    with pytest.raises(ValueError, match="three points that span a plane, found 2"):
        plane_regions(model, x[:2])
    with pytest.raises(ValueError, match="regions must be at least 1, found 0"):
        plane_regions(model, x, regions=0)
    with pytest.raises(ValueError, match="seconds must be above 0"):
        plane_regions(model, x, seconds=0.0)
    with pytest.raises(ValueError, match="memory must be at least"):
        plane_regions(model, x, memory=10)
    with pytest.raises(ValueError, match="spread in both directions"):
        plane_regions(dense(2, 3, 1), torch.tensor([[0.0, 0.0], [1.0, 0.0]]).double())


def test_rows_and_neighbours():
    result = plane_regions(dense(2, 5, 1), SQUARE, domain=SQUARE)
    rows = list(result.rows())
    assert len(rows) == result.cells
    assert_close(sum(row["area"] for row in rows), 4.0)
    assert set(np.unique(result.switching_units[:, 0])) <= {-1, 0}
    outer = (result.neighbours < 0).any(1)
    assert torch.equal(outer, result.switching_units[:, 0] < 0)


def test_convolutions_come_out_alike_by_columns_and_by_the_graph(monkeypatch):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = nn.Sequential(
            nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(3, 4, 3, padding=1), nn.LeakyReLU(0.1), nn.MaxPool2d(3, 2, 1),
            nn.Flatten(), nn.Linear(4, 3),
        ).double().eval()  # fmt: skip
    x = points(3, 2, 4, 4)
    quick = plane_regions(model, x)
    assert_laws(quick, model)
    monkeypatch.setattr("inscape.piecewise.planes.cutting.affine_steps", lambda *_: iter(()))
    slow = plane_regions(model, x)
    assert torch.equal(quick.patterns, slow.patterns)
    for name in ("vertices", "slopes", "intercepts"):
        assert_close(getattr(quick, name), getattr(slow, name))


def test_a_maximum_over_a_whole_map():
    with torch.random.fork_rng():
        torch.manual_seed(2)
        lift = nn.Linear(2, 2 * 400, dtype=torch.float64)

    def f(x):
        return functional.max_pool2d(lift(x).reshape(-1, 2, 20, 20), 20).flatten(1)

    result = plane_regions(f, SQUARE, domain=SQUARE)
    assert int(result.pattern(0).max()) > 255
    assert_laws(result, f)
    assert result.cells == result.regions


def test_units_that_are_zero_where_the_window_is_probed():
    with torch.random.fork_rng():
        torch.manual_seed(34)
        model = nn.Sequential(
            nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 12), nn.Unflatten(1, (1, 12)),
            nn.MaxPool1d(4, 2, 1), nn.Flatten(), nn.Linear(6, 6), nn.ReLU(),
            nn.Unflatten(1, (1, 6)), nn.MaxPool1d(3), nn.Flatten(),
        ).double().eval()  # fmt: skip
    result = plane_regions(model, SQUARE, domain=3 * SQUARE)
    assert result.complete
    assert result.cells < 300
    assert_laws(result, model)


def test_wide_windows_do_not_add_cells_of_rounding():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(2, 16), nn.Hardtanh(), nn.Linear(16, 16), nn.Hardtanh(),
            nn.Unflatten(1, (1, 16)), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(8, 8), nn.ReLU(),
        ).double().eval()  # fmt: skip
    far, farther = (plane_regions(model, SQUARE, domain=w * SQUARE) for w in (1e4, 1e5))
    assert far.cells == farther.cells
    assert len(farther.vertices) - len(farther.edges) + farther.cells == 1
    centre = farther.centroids
    with torch.no_grad():  # a window of 1e5 leaves five digits less
        expected = model(centre)
    ours = farther.values(torch.arange(farther.cells), centre)
    assert_close(ours, expected, rtol=0, atol=1e-11)


def test_sums_that_cancel_cut_nothing():
    layers = [
        ([[-4, 4]] * 3, [-1, -2, -3]),
        ([[1, -2, 1], [-1, 2, -1], [3, -6, 3]], [0, 0, 0]),
        ([[1, 1, 1]], [0]),
    ]
    window = SQUARE + torch.tensor([0.0137, -0.0211], dtype=torch.float64)
    result = plane_regions(net(*layers), SQUARE, domain=window)
    assert (result.cells, result.regions) == (4, 4)
    assert result.cells == len(planes.cells(layers, window.tolist()))


def test_merging_goes_by_the_rounding_of_the_two_maps():
    def steep(x):
        return 1e9 * (x[:, :1] - 0.5).relu() + 1e-3 * x[:, 1:].relu()

    assert plane_regions(steep, SQUARE, domain=SQUARE).regions == 4

    def high(x):
        return x[:, :1].relu() + 1e6

    assert plane_regions(high, SQUARE, domain=1e-6 * SQUARE).regions == 2


def test_domains_far_away_and_stars():
    result = plane_regions(lambda x: (x - 1e8).relu(), SQUARE, domain=(SQUARE + 1e8).flip(0))
    assert result.cells == 4
    angles = torch.arange(5, dtype=torch.float64) * 4 * math.pi / 5
    star = torch.stack([angles.sin(), angles.cos()], 1)
    with pytest.raises(ValueError, match="crosses itself"):
        plane_regions(lambda x: x.relu(), SQUARE, domain=star)


def test_planes_with_gradients_or_in_single_precision_will_do():
    x = points(3, 4)
    model = dense(4, 6, 1)
    plane = Frame(origin=x[0].float(), axes=(x[1:] - x[0]).requires_grad_())
    result = plane_regions(model, x, plane=plane, domain=SQUARE.clone().requires_grad_())
    assert result.vertices.dtype == torch.float64
    assert not result.axes.requires_grad
    with pytest.raises(ValueError, match="threads must be at least 1, found -1"):
        plane_regions(model, x, threads=-1)
