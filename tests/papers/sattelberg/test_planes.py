"""Cells of a plane as records keep them: class lines, drawings and the analyses built on them."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from inscape.models import mlp
from inscape.papers.sattelberg import _planes
from inscape.papers.sattelberg import toy_problems as figure_6_7
from inscape.papers.sattelberg import xor_by_hand as figure_5_3
from inscape.papers.sattelberg._planes import Cells, boundary, packed, positive_parts
from inscape.regions.plane_regions import plane_regions

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()


def cells_of(f, domain=SQUARE) -> Cells:
    return Cells.of(packed(plane_regions(f, domain, domain=domain)))


def diamond(x):
    """Half minus the sum of magnitudes: the boundary is a square on its corner."""
    return 0.5 - x.abs().sum(1, keepdim=True)


def area(polygon) -> float:
    x, y = np.asarray(polygon).T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


def test_packed_maps_give_the_network_back():
    model = mlp(2, 6, 5, 3, seed=4, dtype=torch.float64)
    found = plane_regions(model, SQUARE, domain=SQUARE)
    cells = Cells.of(packed(found, "at/"), "at/")
    assert len(cells) == found.cells
    assert sum(map(area, cells.polygons)) == pytest.approx(4.0, rel=1e-6)
    for corners, values in zip(cells.polygons, cells.outputs, strict=True):
        middle = corners.mean(0)
        expected = model(torch.from_numpy(middle)[None])[0].detach().numpy()
        np.testing.assert_allclose(values.mean(0), expected, rtol=0, atol=2e-6)  # float32 is kept


def test_boundary_of_one_output_is_its_zero_set():
    pieces = boundary(cells_of(diamond))
    assert len(pieces) == 4
    np.testing.assert_allclose(np.abs(pieces).sum(2), 0.5, atol=1e-6)
    length = np.linalg.norm(pieces[:, 1] - pieces[:, 0], axis=1).sum()
    assert length == pytest.approx(4 * np.sqrt(0.5), rel=1e-6)


def test_boundary_of_three_outputs_meets_where_all_are_equal():
    def star(x):
        zero = 0 * x[:, :1]
        return torch.cat([x[:, :1], x[:, 1:], zero], 1)

    pieces = boundary(cells_of(star))
    # x = y > 0, x = 0 > y, y = 0 > x: three rays from the origin.
    ends = sorted(tuple(np.round(end, 6) + 0.0) for piece in pieces for end in piece)
    assert ends.count((0.0, 0.0)) == 3
    assert {(1.0, 1.0), (0.0, -1.0), (-1.0, 0.0)} <= set(ends)


def test_boundary_agrees_with_the_largest_output_on_both_sides():
    model = mlp(2, 12, 5, init="he_normal", seed=2, dtype=torch.float64)
    pieces = boundary(cells_of(model))
    assert len(pieces) > 3
    middle = torch.from_numpy(pieces.mean(1))
    top = model(middle).detach().topk(2).values
    np.testing.assert_allclose(top[:, 0], top[:, 1], atol=1e-5)  # the cells are kept in float32


def test_no_boundary_where_the_class_never_changes():
    assert boundary(cells_of(lambda x: x.abs().sum(1, keepdim=True) + 1)).shape == (0, 2, 2)


def test_parts_of_both_signs_fill_the_square():
    cells = cells_of(diamond)
    inside = sum(map(area, positive_parts(cells)))
    outside = sum(map(area, positive_parts(cells, positive=False)))
    assert inside == pytest.approx(0.5, rel=1e-6)
    assert inside + outside == pytest.approx(4.0, rel=1e-6)


def test_drawings_hold_every_cell_and_edge():
    cells = cells_of(mlp(2, 5, 4, 1, init="he_normal", seed=3, dtype=torch.float64))
    figure = Figure()
    flat, solid = figure.add_subplot(), figure.add_subplot(projection="3d")
    _planes.tiles(flat, cells)
    assert len(flat.collections[0].get_paths()) == len(cells)
    _planes.bends(flat, cells)
    assert len(flat.collections[1].get_segments()) == int((cells.makers[:, 0] >= 0).sum())
    _planes.signs(flat, cells)
    _planes.class_lines(flat, cells)
    assert len(flat.collections[-1].get_segments()) == len(boundary(cells))
    _planes.surface(solid, cells)
    assert solid.collections


def test_three_lines_and_xor_have_their_regions():
    values = figure_5_3.plane_cell("corrected")
    assert (values["cells"], values["three lines"], values["areas"]["01"]) == (3, 7, 0.0)
    # s = x1 + x2 on [-2, 2]^2: half above 0, an eighth below -2.
    assert values["areas"]["11"] == pytest.approx(8)
    assert values["areas"]["00"] == pytest.approx(2)


def test_bends_are_counted_where_lines_bend():
    # The second layer's only line is |x1| = x2 + 1/2: it bends once, at the first layer's line.
    def fold(x):
        return (x[:, :1].abs() - x[:, 1:] - 0.5).relu()

    cells = cells_of(fold)
    assert figure_6_7.bent(cells, 0) == (0, 0)
    assert figure_6_7.bent(cells, 1) == (1, 0)
    # Were that line another unit of the same layer, the bend would have no reason.
    makers = np.where((cells.makers == (0, 0)).all(1)[:, None], (1, 1), cells.makers)
    same = Cells(**{**vars(cells), "makers": makers})
    assert figure_6_7.bent(same, 1) == (1, 1)
