"""What stands on the paper is what stands in the result."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image
from torch.testing import assert_close

import inscape.figures.regions as figures
from cases import dense
from inscape.figures import caption, draw, has_figure, rendered
from inscape.figures.hues import by_map, by_pattern, oklch
from inscape.figures.regions import colors, draw_regions, dual, portrait
from inscape.figures.style import CATEGORIES
from inscape.piecewise.planes.raster import raster
from inscape.regions.boundary import boundary, decision_boundary
from inscape.regions.plane_regions import plane_regions

BOX = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
NET = dense(2, 8, 6, 1, seed=3)
MANY = dense(2, 7, 3, seed=1)


@pytest.fixture(scope="module")
def regions():
    return plane_regions(NET, BOX, domain=BOX)


def of(ax, kind):
    return [collection for collection in ax.collections if isinstance(collection, kind)]


def test_every_cell_is_a_polygon_with_an_edge_in_its_own_colour(regions):
    ax = draw(regions)
    (cells,) = of(ax, PolyCollection)
    assert len(cells.get_paths()) == regions.cells
    for k, path in enumerate(cells.get_paths()):
        assert_close(torch.from_numpy(path.vertices[:-1]), regions.polygon(k))
    assert np.array_equal(cells.get_facecolor(), cells.get_edgecolor())
    assert (cells.get_linewidth() > 0).all()
    assert ax.get_title().startswith(f"{regions.cells} linear regions")
    assert has_figure(regions)
    assert caption(regions).startswith("The linear regions; similar activation patterns")


def test_lines_are_told_apart_by_the_operation_that_made_them(regions):
    ax = draw_regions(regions, color="plain")
    drawn = {to_hex(collection.get_color()[0]): collection for collection in of(ax, LineCollection)}
    assert set(drawn) == {color.lower() for color in CATEGORIES[:2]}
    for op, color in enumerate(CATEGORIES[:2]):
        made = int((regions.switching_units[:, 0] == op).sum())
        assert len(drawn[color.lower()].get_segments()) == made
    first, second = (drawn[color.lower()].get_linewidth()[0] for color in CATEGORIES[:2])
    assert first > second
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "nonlinear layer 1",
        "nonlinear layer 2",
    ]


def test_equal_patterns_have_equal_colours_and_different_ones_mostly_not(regions):
    again = by_pattern(plane_regions(NET, BOX, domain=BOX))
    assert np.array_equal(by_pattern(regions), again)
    assert len({tuple(tint) for tint in again.tolist()}) == regions.cells
    assert again.min() >= 0
    assert again.max() <= 1


def test_maps_that_point_the_same_way_have_one_hue():
    net = lambda x: x[:, :1].abs() + 0.5 * x[:, 1:].relu()  # noqa: E731
    regions = plane_regions(net, BOX, domain=BOX)
    tints = by_map(regions, None)
    order = regions.slopes[:, 0].tolist()
    at = {tuple(slope): tint for slope, tint in zip(order, tints, strict=True)}
    red = at[1.0, 0.0]
    assert red[0] > red[2]
    assert at[-1.0, 0.0][0] < at[-1.0, 0.0][2]


@pytest.mark.parametrize(
    ("lightness", "chroma", "hue", "expected"),
    [
        (1.0, 0.0, 0.0, (1.0, 1.0, 1.0)),
        (0.0, 0.0, 0.3, (0.0, 0.0, 0.0)),
        (0.6279554, 0.2576833, 29.2338859 / 360, (1.0, 0.0, 0.0)),  # red of the screen
        (0.4520137, 0.3132144, 264.0520206 / 360, (0.0, 0.0, 1.0)),
    ],
)
def test_colours_of_oklab_are_the_known_ones(lightness, chroma, hue, expected):
    tint = oklch(*(np.array(number) for number in (lightness, chroma, hue)))
    assert tint == pytest.approx(expected, abs=2e-3)


def test_pixels_are_coloured_by_the_exact_value(regions):
    ax = draw_regions(regions, color="value", lines=False, boundary=True)
    (image,) = ax.images
    values = image.get_array()
    rows, columns = values.shape
    u = -1 + 2 * (torch.arange(columns, dtype=torch.float64) + 0.5) / columns
    v = -1 + 2 * (torch.arange(rows, dtype=torch.float64) + 0.5) / rows
    sample = torch.randint(0, rows, (300, 2), generator=torch.Generator().manual_seed(0))
    at = torch.stack([u[sample[:, 1]], v[sample[:, 0]]], 1)
    result = torch.from_numpy(np.asarray(values)[sample[:, 0], sample[:, 1]])
    assert_close(result, NET(at).detach()[:, 0])
    assert not np.ma.getmaskarray(values).any()


def test_raster_names_the_cell_under_each_pixel(regions):
    arrays = (a.numpy() for a in (regions.vertices, regions.corners, regions.first))
    cells = raster(*arrays, np.array([-1.0, -1.0]), np.array([1.0, 1.0]), (60, 40))
    u = -1 + 2 * (torch.arange(40, dtype=torch.float64) + 0.5) / 40
    v = -1 + 2 * (torch.arange(60, dtype=torch.float64) + 0.5) / 60
    at = torch.stack(torch.meshgrid(v, u, indexing="ij"), -1).flip(2).reshape(-1, 2)
    patterns = [(NET[0](at) > 0), (NET[2](NET[0](at).relu()) > 0)]
    cell = torch.from_numpy(cells.reshape(-1))
    for op, pattern in enumerate(patterns):
        assert torch.equal(regions.pattern(op)[cell].bool(), pattern)


def test_many_cells_become_one_picture_of_the_same_colours(regions, monkeypatch):
    monkeypatch.setattr(figures, "LIMIT", 3)
    ax = draw_regions(regions)
    assert not of(ax, PolyCollection)
    assert not of(ax, LineCollection)
    image, lines = ax.images
    tints = colors(regions)
    big = int(regions.areas.argmax())
    u, v = ((regions.centroids[big] + 1) / 2).tolist()
    rows, columns = image.get_array().shape[:2]
    pixel = np.asarray(image.get_array())[int(v * rows), int(u * columns)]
    assert pixel == pytest.approx([*tints[big], 1.0], abs=1e-6)
    assert list(lines.get_extent()) == [-1.0, 1.0, -1.0, 1.0]
    assert lines.get_array().shape == (1200, 1200, 4)
    inked = np.asarray(lines.get_array())[:, :, 3] > 0
    assert 0.001 < inked.mean() < 0.2
    assert dual(regions).collections[-1].get_rasterized()


def test_hundred_thousand_cells_are_drawn_at_once():
    draw_from = torch.Generator().manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 460), torch.nn.ReLU(), torch.nn.Linear(460, 1))
    net = net.double().eval()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.rand(p.shape, generator=draw_from, dtype=p.dtype) - 0.5)
        net[0].bias *= 0.4
    regions = plane_regions(net, BOX, domain=BOX)
    assert regions.cells > 50_000
    axes = draw_regions(regions, color="map")
    assert len(axes.get_children()) < 30  # all cells are one image or collection
    picture = rendered(axes, ".svg")
    assert len(picture) < 6_000_000
    width, height = embedded(picture)
    assert width == height == figures.PIXELS  # whole, not as coarse as the screen


def test_shapes_stay_shapes_where_asked(regions, monkeypatch):
    monkeypatch.setattr(figures, "LIMIT", 3)
    monkeypatch.setattr(figures, "TOGETHER", 4)
    ax = draw_regions(regions, vector=True)
    assert not ax.images
    assert len(of(ax, PolyCollection)[0].get_paths()) == regions.cells
    drawn = [path for collection in of(ax, PathCollection) for path in collection.get_paths()]
    assert max(map(len, drawn)) == 8
    inner = int((regions.switching_units[:, 0] >= 0).sum())
    assert sum(map(len, drawn)) == 2 * inner
    assert b"<image" not in rendered(ax, ".svg")
    assert b"<image" in rendered(draw_regions(regions), ".svg")
    assert not dual(regions, vector=True).collections[-1].get_rasterized()
    titles = [ax.get_title() for ax in portrait(regions).axes]
    assert titles[1] == "their slopes: a dot for each region"


def test_a_mosaic_says_that_the_budget_was_reached(regions):
    part = plane_regions(NET, BOX, domain=BOX, regions=8)
    said = f"{part.cells} linear regions on {part.covered:.1%} of the window"
    assert draw_regions(part).get_title() == portrait(part).axes[0].get_title() == said
    assert draw_regions(regions).get_title() == ""


def embedded(svg):
    """Return the size of the first picture in an SVG."""
    coded = re.search(rb'xlink:href="data:image/png;base64,([^"]+)"', svg, re.DOTALL)[1]
    with Image.open(io.BytesIO(base64.b64decode(coded))) as picture:
        return picture.size


def test_boundary_lies_on_top(regions):
    line = decision_boundary(regions)
    ax = draw_regions(regions, boundary=True)
    top = max(of(ax, LineCollection), key=lambda collection: collection.get_zorder())
    drawn = np.concatenate(top.get_segments())
    assert_close(torch.from_numpy(drawn), line.points)


def test_boundary_has_a_figure_of_its_own(regions):
    line = boundary(NET, BOX, domain=BOX)
    ax = draw(line)
    (drawn,) = of(ax, LineCollection)
    assert len(drawn.get_segments()) == len(line.lengths)
    assert ax.get_title() == f"decision boundary of length {line.length:.4g}"
    nowhere = draw(boundary(lambda x: x[:, :1] + 9, BOX, domain=BOX))
    assert not of(nowhere, LineCollection)[0].get_segments()
    assert nowhere.get_title() == "no decision boundary"


def test_dual_has_a_dot_at_the_slopes_of_each_cell(regions):
    ax = dual(regions, color="map")
    dots = ax.collections[-1]
    order = regions.areas.sort(descending=True, stable=True).indices
    assert_close(torch.from_numpy(np.asarray(dots.get_offsets())), regions.slopes[order, 0])
    sizes = dots.get_sizes()
    assert (np.diff(sizes) <= 0).all()
    links = of(ax, LineCollection)[0]
    assert len(links.get_segments()) == int((regions.neighbours >= 0).all(1).sum())


def test_several_outputs_share_two_components_or_one_is_chosen():
    regions = plane_regions(MANY, BOX, domain=BOX)
    at = np.asarray(dual(regions, color="map").collections[-1].get_offsets())
    assert at.shape == (regions.cells, 2)
    ax = dual(regions, output=2, color="area")
    assert ax.get_xlabel() == "slope in the first direction"
    figure = portrait(regions)
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 2


@pytest.mark.parametrize("color", ["pattern", "map", "area", "value", "plain"])
@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_every_colour_in_every_form_gives_the_same_bytes_again(regions, color, suffix):
    first, second = (
        rendered(draw_regions(regions, color=color, boundary=True), suffix) for _ in range(2)
    )
    assert first == second


def test_network_without_kinks_is_one_cell():
    regions = plane_regions(torch.nn.Linear(2, 1).double().eval(), BOX, domain=BOX)
    for color in ("pattern", "map", "area", "value", "plain"):
        ax = draw_regions(regions, color=color, boundary=True)
        assert ax.has_data()
    assert dual(regions).has_data()
