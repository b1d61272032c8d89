"""Planes, domains and data that do not fit are refused in words, or mended where that is plain."""

import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.regions import Frame, boundary, grid_regions, line_regions, plane_regions, region_at

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()
NET = dense(2, 5, 1)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("ask", [plane_regions, grid_regions])
def test_a_plane_has_two_axes(unchecked, ask, count):
    axes = torch.eye(4)[:count]
    with pytest.raises(ValueError, match=f"plane must have two axes, found {count}: pass two"):
        ask(dense(4, 5, 1), points(3, 4), plane=Frame(origin=torch.zeros(4), axes=axes))


def test_a_closed_ring_is_a_polygon():
    ring = torch.cat([SQUARE, SQUARE[:1]])
    twice = SQUARE.repeat_interleave(2, 0)
    plain = plane_regions(NET, SQUARE, domain=SQUARE)
    for corners in (ring, twice, ring.flip(0)):
        result = plane_regions(NET, SQUARE, domain=corners)
        assert len(result.domain) == 4
        assert result.cells == plain.cells
        assert_close(result.areas.sum(), plain.areas.sum())


def test_one_corner_many_times_has_no_area():
    with pytest.raises(ValueError, match="domain must have an area"):
        plane_regions(NET, SQUARE, domain=SQUARE[:1].repeat(4, 1))


@pytest.mark.parametrize("ask", [plane_regions, boundary, region_at, line_regions])
def test_data_of_another_width_are_named(ask):
    with pytest.raises(UnsupportedModelError, match=r"must accept a batch of shape \(1, 3\)"):
        ask(NET, points(4, 3))


def test_a_model_of_another_precision_is_still_not_applicable():
    result = plane_regions(dense(2, 5, 1, act=torch.nn.Tanh).float(), points(4, 2))
    assert "found 'tanh'" in result.reason


@pytest.mark.parametrize("ask", [plane_regions, grid_regions])
def test_a_domain_is_a_tensor(unchecked, ask):
    with pytest.raises(TypeError, match=r"domain must be a torch\.Tensor, found list: convert it"):
        ask(NET, SQUARE, domain=SQUARE.tolist())


@pytest.mark.parametrize("name", ["threads", "regions"])
def test_counts_are_whole_numbers(unchecked, name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number, found 1.5"):
        plane_regions(NET, SQUARE, **{name: 1.5})


def test_domains_whose_area_is_no_number_are_refused():
    with pytest.raises(ValueError, match=r"less than 1e\+150 wide and high, found 2e\+200"):
        plane_regions(NET, SQUARE, domain=SQUARE * 1e200)
    with pytest.raises(ValueError, match=r"more than 1e-150 wide and high, found 2e-200"):
        plane_regions(NET, SQUARE, domain=SQUARE * 1e-200)
    assert plane_regions(NET, SQUARE, domain=SQUARE * 1e100).complete
