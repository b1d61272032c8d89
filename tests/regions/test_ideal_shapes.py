"""Hyperoctahedron and expanded simplex against hulls, the printed equations and balls."""

from fractions import Fraction
from math import comb, e, factorial, gamma, isclose, pi, sqrt

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

from inscape.regions.ideal_shapes import (
    IdealShape,
    ball_volume,
    expanded_simplex,
    hyperoctahedron,
    shell_share,
)

BOTH = [hyperoctahedron, expanded_simplex]
#: Table 4.1 with erratum S29: sqrt(5/12) rounds to 0.65.
PRINTED = {
    2: (Fraction(3, 4), 0.87),
    3: (Fraction(4, 8), 0.71),
    4: (Fraction(5, 12), 0.65),
    5: (Fraction(6, 18), 0.58),
    6: (Fraction(7, 24), 0.54),
    7: (Fraction(8, 32), 0.5),
    8: (Fraction(9, 40), 0.47),
    9: (Fraction(10, 50), 0.45),
    10: (Fraction(11, 60), 0.43),
}


def distinct(rows: np.ndarray) -> np.ndarray:
    return np.unique(np.round(rows, 9), axis=0)


@pytest.mark.parametrize("n", range(2, 7))
@pytest.mark.parametrize("make", BOTH)
def test_hull_of_the_vertices_has_these_facets_radii_and_volume(make, n):
    shape = make(n)
    corners = shape.coordinates()
    hull = ConvexHull(corners)
    assert len(hull.vertices) == len(corners) == shape.vertex_count
    planes = distinct(hull.equations)
    assert len(planes) == shape.facet_count == len(shape.facets)
    assert np.allclose(np.linalg.norm(corners, axis=1), 1)
    assert isclose((-planes[:, -1]).min(), sqrt(shape.inner_square), rel_tol=1e-8)
    result = sorted({round(float(d) ** 2, 6) for d in planes[:, -1]})
    assert result == sorted({round(float(d), 6) for d in shape.facet_distances().values()})
    assert isclose(hull.volume, shape.volume, rel_tol=1e-9)


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("make", BOTH)
def test_facets_hold_all_vertices_and_each_touches_enough(make, n):
    shape = make(n)
    sides = shape.facets @ shape.vertices.T
    assert sides.max(1).tolist() == [1] * shape.facet_count  # all touch, none cuts
    rank = [np.linalg.matrix_rank(shape.vertices[row == 1]) for row in sides]
    assert rank == [n] * shape.facet_count


@pytest.mark.parametrize("n", PRINTED)
def test_table_4_1(n):
    square, rounded = PRINTED[n]
    assert expanded_simplex(n).inner_square == square
    assert round(sqrt(square), 2) == rounded


@pytest.mark.parametrize("n", range(2, 60))
def test_equations_4_5_to_4_12(n):
    odd = Fraction(n % 2)
    assert expanded_simplex(n).ratio_square == (n * (n + 2) + odd) / (2 * (n + 1))
    assert hyperoctahedron(n).ratio_square == n
    k = n // 2 if n % 2 == 0 else (n + 1) // 2
    assert max(expanded_simplex(n).facet_distances()) == k
    assert expanded_simplex(n).inner_square == Fraction(n + 1, 2 * (k * n - k * (k - 1)))


def test_planar_and_spatial_forms_4_1_to_4_4():
    assert [hyperoctahedron(n).ratio_square for n in (2, 3)] == [2, 3]
    assert [expanded_simplex(n).ratio_square for n in (2, 3)] == [Fraction(4, 3), 2]


def test_s7_the_expanded_simplex_is_rounder_by_root_two():
    ratios = [
        float(expanded_simplex(n).inner_square / hyperoctahedron(n).inner_square)
        for n in (10, 1000, 100_000)
    ]
    assert ratios == sorted(ratios)
    assert isclose(ratios[-1], 2, rel_tol=1e-4)


def test_s8_ratio_of_the_shells_falls_short_of_the_printed_limit_by_root_e():
    def share(n):
        return shell_share(hyperoctahedron(n)) / shell_share(expanded_simplex(n)) / 2 ** (n / 2)

    assert isclose(share(150), 1 / sqrt(e), rel_tol=0.01)
    assert abs(share(150) - 1) > 0.3


@pytest.mark.parametrize("n", range(1, 8))
def test_shells_are_those_between_two_balls(n):
    for make in BOTH:
        shape = make(n)
        outer, inner = ball_volume(n), ball_volume(n, sqrt(shape.inner_square))
        assert isclose(shell_share(shape), (outer - inner) / inner, rel_tol=1e-9, abs_tol=1e-12)
        assert inner - 1e-12 <= shape.volume <= outer + 1e-12
    assert isclose(ball_volume(n, 1.5), pi ** (n / 2) / gamma(n / 2 + 1) * 1.5**n)


def test_volumes_in_closed_form():
    assert hyperoctahedron(5).volume_square == Fraction(2**5, factorial(5)) ** 2
    assert isclose(expanded_simplex(2).volume, 3 * sqrt(3) / 2)  # hexagon of side one
    assert isclose(expanded_simplex(3).volume, 5 * sqrt(2) / 3)  # cuboctahedron of side one
    assert expanded_simplex(9).volume_square == Fraction(comb(18, 9), factorial(9)) ** 2 * 10 / 512


@pytest.mark.parametrize("leak", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("make", BOTH)
def test_network_is_zero_at_the_vertices_and_facets_and_positive_only_inside(make, n, leak):
    shape = make(n)
    net = shape.network(radius=1.5, leak=leak)
    corners = torch.from_numpy(shape.coordinates(1.5))
    assert net[0].out_features == n + 1
    with torch.no_grad():
        assert net(corners).abs().max() < 1e-12
        rng = torch.Generator().manual_seed(n)
        rays = torch.randn(500, n, generator=rng, dtype=torch.float64)
        x = 2 * rays / rays.norm(dim=1, keepdim=True) * torch.rand(500, 1, generator=rng)
        inside = (x @ torch.from_numpy(normals(shape)).T).amax(1) < 1.5
        assert ((net(x)[:, 0] > 0) == inside).all()
        assert 0 < inside.sum() < 500


def normals(shape: IdealShape) -> np.ndarray:
    """Return the facets a x <= 1 of the shape with outer radius one, found by the hull."""
    corners = shape.coordinates()
    if shape.dimension == 1:
        return np.array([[1.0], [-1.0]])
    planes = distinct(ConvexHull(corners).equations)
    return planes[:, :-1] / -planes[:, -1:]


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="n must be at least 1, found 0"):
        hyperoctahedron(0)
    with pytest.raises(ValueError, match="n must be at least 1, found 0"):
        expanded_simplex(0)
    with pytest.raises(ValueError, match="leak must be at least 0 and less than 1, and radius"):
        hyperoctahedron(2).network(leak=1.0)
    with pytest.raises(ValueError, match=r"facets lists at most 1048576 facets.*use facet_count"):
        _ = hyperoctahedron(21).facets
