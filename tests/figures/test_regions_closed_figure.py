"""The figure of closed regions: outline, corners by distance, or a word."""

import numpy as np
import torch

from inscape.figures import caption, draw, has_figure
from inscape.regions import closed_regions, expanded_simplex, hyperoctahedron
from inscape.regions.closed_regions import from_weights


def test_outline_in_the_plane_with_both_circles():
    result = closed_regions(expanded_simplex(2).network(radius=2.0), torch.zeros(1, 2))
    ax = draw(result)
    assert has_figure(result)
    assert ax.get_title().startswith("hexagon, R = 1.15")
    inner, outer, ring = (np.array(line.get_xydata()) for line in ax.lines)
    assert np.allclose(np.linalg.norm(outer, axis=1), 2.0)
    assert np.allclose(np.linalg.norm(inner, axis=1), np.sqrt(3))
    assert len(ring) == 7
    assert caption(result).startswith("What is enclosed")


def test_corners_by_their_distance_in_space():
    ax = draw(closed_regions(hyperoctahedron(3).network(), torch.zeros(1, 3)))
    assert len(ax.patches) == 6
    assert np.allclose([bar.get_height() for bar in ax.patches], 1.0)
    assert "hyperoctahedron" in ax.get_title()


def test_nothing_enclosed_is_said():
    ax = draw(from_weights(np.eye(2), np.zeros(2), np.ones(2), 1.0))
    assert [text.get_text() for text in ax.texts] == ["every region reaches to infinity"]


def test_without_an_inner_radius_the_outer_one_is_told():
    ax = draw(closed_regions(expanded_simplex(17).network(radius=2.0), torch.zeros(1, 17)))
    assert ax.get_title() == "expanded simplex, R = 2"
    assert not ax.lines
