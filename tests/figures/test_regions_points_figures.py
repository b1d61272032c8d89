"""What stands on the paper is what stands in the result."""

import numpy as np
import pytest
import torch
from matplotlib.patches import Polygon
from torch import nn
from torch.testing import assert_close

import inscape.figures.regions_points  # noqa: F401
from cases import dense, points
from inscape.figures import caption, draw, has_figure
from inscape.regions.grid_regions import grid_regions
from inscape.regions.local_maps import local_maps
from inscape.regions.region_at import region_at
from inscape.regions.region_bounds import region_bounds
from inscape.regions.tropical import tropical


def test_coefficients_are_images_side_by_side():
    result = local_maps(dense(6, 5, 3), points(4, 6), image=(2, 3))
    ax = draw(result)
    picture = torch.as_tensor(np.asarray(ax.images[0].get_array().filled(np.nan)))
    assert picture.shape == (2, 3 * 3 + 2)
    assert_close(picture[:, 4:7], result.images[0, 1])
    assert picture[:, 3].isnan().all()
    low, high = ax.images[0].get_clim()
    assert low == -high == -float(result.images[0].abs().max())
    assert ax.get_title() == "what each pixel adds to outputs 0 to 2, at the first point"


def test_many_outputs_stand_in_two_rows_and_channels_are_added():
    ax = draw(local_maps(dense(12, 5, 9), points(2, 12), image=(3, 2, 2)))
    assert ax.images[0].get_array().shape == (2 * 2 + 1, 5 * 2 + 4)


def test_slopes_without_an_image_are_rows_sorted_by_map():
    result = local_maps(dense(2, 5, 1), points(30, 2))
    ax = draw(result)
    order = result.labels.sort(stable=True).indices
    shown = torch.as_tensor(np.asarray(ax.images[0].get_array()))
    assert_close(shown, result.jacobians[order, 0])


def test_region_of_the_plane_is_its_polygon_with_edges_by_operation():
    result = region_at(dense(2, 6, 6, 1), points(3, 2))
    ax = draw(result)
    filled, circle = (patch for patch in ax.patches if isinstance(patch, Polygon))
    corners = result.polygon(3 * max(result.radius, float(result.distances.max())))
    assert_close(torch.as_tensor(filled.get_xy()[:-1]), corners)
    assert len(ax.lines) == len(result.distances) + 1
    names = {text.get_text() for text in ax.get_legend().get_texts()}
    assert names == {f"made by nonlinear layer {k + 1}" for k in result.by_layer()}
    rest = torch.as_tensor(circle.get_xy()) - result.point
    assert_close(rest.norm(dim=1), torch.full((len(rest),), result.ball).double())


def test_faces_in_more_dimensions_stand_at_their_distances():
    result = region_at(dense(3, 8, 6, 1), points(3, 3))
    ax = draw(result)
    bars = np.concatenate([line.get_xdata() for line in ax.lines[::2]])
    dots = np.concatenate([line.get_xdata() for line in ax.lines[1::2]])
    assert_close(torch.as_tensor(bars), result.distances)
    assert_close(torch.as_tensor(dots), result.facet_distances)
    assert ax.get_yticklabels()[0].get_text() == f"nonlinear layer 1\n{result.by_layer()[0]} faces"


def test_grid_is_drawn_where_it_lies():
    result = grid_regions(torch.abs, torch.tensor([[-1.0, -1], [1, 1]]), grid=4, exact=5)
    ax = draw(result)
    assert np.array_equal(ax.images[0].get_array(), result.labels.numpy())
    assert ax.images[0].get_extent() == pytest.approx([-1.6, 1.6, -1.6, 1.6])
    assert ax.get_title() == "4 regions by jacobian, 20.0% of 5 missed"


def test_both_maxima_and_the_network_of_one_input():
    net = dense(1, 6, 1)
    ax = draw(tropical(net, points(2, 1)))
    plus, minus, both = ax.lines
    at = torch.as_tensor(both.get_xdata())[:, None]
    assert_close(torch.as_tensor(both.get_ydata()), net(at).detach()[:, 0])
    assert_close(torch.as_tensor(plus.get_ydata() - minus.get_ydata()), net(at).detach()[:, 0])


def test_terms_stand_at_their_slopes():
    result = tropical(dense(2, 6, 2), points(2, 2))
    ax = draw(result)
    for part, dots in zip(result.terms(0), ax.collections, strict=True):
        assert_close(torch.as_tensor(np.asarray(dots.get_offsets())), part[0])


def test_bounds_are_bars_with_their_numbers():
    ax = draw(region_bounds(dense(2, 3, 3, 1), points(2, 2), count=20))
    assert [text.get_text().strip() for text in ax.texts] == ["64", "49", "7", "7", "20"]
    assert ax.patches[1].get_width() == pytest.approx(np.log10(49))


def test_a_constant_map_and_a_network_without_kinks_can_be_drawn():
    flat = nn.Linear(3, 1).double().eval()
    with torch.no_grad():
        flat.weight.zero_()
    draw(local_maps(flat, points(2, 3)))
    assert draw(region_at(flat, points(2, 3))).texts[0].get_text().startswith("no faces")
    draw(tropical(nn.Linear(1, 1).double().eval(), points(2, 1)))


def test_captions_say_what_is_seen():
    for result in (
        local_maps(dense(2, 3, 1), points(3, 2)),
        region_bounds(dense(2, 3, 1), points(3, 2)),
    ):
        assert has_figure(result)
        assert caption(result).endswith(".")
