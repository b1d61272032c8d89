"""Linear regions narrower than rounding are found, or their loss is reported."""

import pytest
import torch
from torch import Tensor, nn

from inscape._core import NotApplicable
from inscape.piecewise.planes import Frame
from inscape.regions import boundary, line_regions, plane_regions

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
DIAGONAL = SQUARE[[0, 2]]


def saturated(scale: float):
    """Return a function with a strip of width 2 / scale between two constant regions."""

    def f(x: Tensor) -> Tensor:
        return nn.functional.hardtanh(scale * x[:, :1] + 0.3 * scale)

    return f


def crease(x: Tensor) -> Tensor:
    """Return a function with one kink, through (1, 1)."""
    return (x.sum(1, keepdim=True) - 2).relu()


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e12])
def test_a_strip_that_float64_can_show_is_found_and_exact(scale):
    regions = plane_regions(saturated(scale), SQUARE, domain=SQUARE)
    assert (regions.cells, regions.unresolved) == (3, 0)
    assert regions.summary().kind == "exact"


@pytest.mark.parametrize("scale", [1e15, 1e17, 1e30, 1e100])
def test_a_strip_below_rounding_is_reported_with_its_area(scale):
    regions = plane_regions(saturated(scale), SQUARE, domain=SQUARE)
    assert regions.cells < 3
    assert regions.unresolved == 1
    assert 2 * 2 / scale <= regions.unresolved_area <= 1e-12
    summary = regions.summary()
    assert summary.kind == "lower bound"
    assert "regions too narrow for float64 may be missing in 1 place, of an area" in summary.basis


def test_all_strips_below_rounding_are_counted():
    steps = 1e17 * torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)

    def f(x: Tensor) -> Tensor:
        return nn.functional.hardtanh(4e17 * x[:, :1] + steps).sum(1, keepdim=True)

    regions = plane_regions(f, SQUARE, domain=SQUARE)
    assert (regions.cells, regions.unresolved) == (4, 3)


@pytest.mark.parametrize("width", [1e-15, 1e-16])
def test_nearly_parallel_kinks_are_reported_as_coinciding(width):
    def f(x: Tensor) -> Tensor:
        u, v = x[:, :1] + 0.1, x[:, 1:]
        return (u + v).relu() - (u + (1 + width) * v).relu()

    regions = plane_regions(f, SQUARE, domain=SQUARE)
    assert (regions.cells, regions.coinciding) == (2, 1)
    assert width <= regions.unresolved_area <= 1e-12


def test_parallel_kinks_that_float64_can_show_do_not_coincide():
    def f(x: Tensor) -> Tensor:
        u, v = x[:, :1] + 0.1, x[:, 1:]
        return (u + v).relu() - (u + (1 + 1e-12) * v).relu()

    regions = plane_regions(f, SQUARE, domain=SQUARE)
    assert (regions.cells, regions.coinciding, regions.unresolved) == (4, 0, 0)


def test_overlapping_windows_of_a_maximum_coincide():
    def f(x: Tensor) -> Tensor:
        pairs = torch.stack([x[:, 0], x[:, 1], x[:, 0]], 1)
        return nn.functional.max_pool1d(pairs[:, None], 2, 1).sum(1)

    regions = plane_regions(f, SQUARE, domain=SQUARE)
    assert (regions.cells, regions.coinciding, regions.unresolved) == (2, 1, 0)


@pytest.mark.parametrize("side", [1e-14, 1e-15, 1e-17, 1e-20])
def test_a_window_below_rounding_is_reported(side):
    plane = Frame(
        origin=torch.ones(2, dtype=torch.float64),
        axes=side * torch.eye(2, dtype=torch.float64),
    )
    regions = plane_regions(crease, SQUARE, plane=plane, domain=SQUARE)
    assert regions.unresolved == 1
    assert regions.unresolved_area == pytest.approx(4 * side**2)
    assert regions.summary().kind == "lower bound"


def test_a_small_window_around_zero_is_exact():
    plane = Frame(
        origin=torch.zeros(2, dtype=torch.float64),
        axes=1e-20 * torch.eye(2, dtype=torch.float64),
    )
    regions = plane_regions(torch.abs, SQUARE, plane=plane, domain=SQUARE)
    assert (regions.cells, regions.unresolved, regions.summary().kind) == (4, 0, "exact")


def test_a_unit_within_rounding_of_its_kink_on_a_whole_cell_is_reported():
    plane = Frame(
        origin=torch.ones(2, dtype=torch.float64),
        axes=2e-14 * torch.eye(2, dtype=torch.float64),  # a window that rounding does not hide
    )
    regions = plane_regions(crease, SQUARE, plane=plane, domain=SQUARE)
    assert (regions.cells, regions.unresolved) == (1, 1)
    assert regions.unresolved_area == pytest.approx(4 * 2e-14**2)
    assert regions.summary().kind == "lower bound"


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_random_networks_lose_nothing(seed, bias):
    torch.manual_seed(seed)
    layers = [nn.Linear(2, 12, bias=bias), nn.ReLU(), nn.Linear(12, 12, bias=bias), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(12, 3, bias=bias)).double().eval()
    regions = plane_regions(net, 3 * SQUARE)
    assert regions.unresolved == 0
    assert regions.unresolved_area <= 1e-9 * float(regions.areas.sum())


def test_a_boundary_next_to_lost_regions_is_an_estimate():
    def f(x: Tensor) -> Tensor:
        return x[:, 1:] + 0.5 + 1e-5 * saturated(1e17)(x)

    line = boundary(f, SQUARE, domain=SQUARE)
    assert line.unresolved == 1
    assert line.summary().kind == "estimate"
    assert "regions too narrow for float64 may be missing in 1 places" in line.summary().basis


def test_lost_regions_along_a_line_are_refused():
    reply = line_regions(saturated(1e17), DIAGONAL)
    assert isinstance(reply, NotApplicable)
    assert "the network must be linear between its knots, but it is not: a value is off by 2" in (
        reply.reason
    )
    assert "Where linear regions are narrower than rounding, take a shorter line" in reply.reason


def test_a_shorter_line_shows_the_regions_that_a_longer_one_hides():
    def f(x: Tensor) -> Tensor:
        return nn.functional.hardtanh(1e17 * x[:, :1])

    assert isinstance(line_regions(f, DIAGONAL), NotApplicable)
    line = line_regions(f, 1e-15 * DIAGONAL)
    assert line.cells.tolist() == [3]
    assert line.values.flatten().tolist() == pytest.approx([-1.0, -1.0, 1.0, 1.0])


def test_a_line_below_rounding_is_refused():
    ends = 1 + 1e-15 * DIAGONAL
    with pytest.raises(ValueError, match=r"a segment must be longer than the rounding of its ends"):
        line_regions(crease, ends)
