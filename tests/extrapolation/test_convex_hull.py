import sys

import numpy as np
import pytest
import torch
from scipy.spatial import Delaunay

from cases import points
from inscape.extrapolation import convex_hull
from inscape.extrapolation.convex_hull import TOLERANCE, separated

MODULE = sys.modules["inscape.extrapolation.convex_hull"]  # the function hides it


def means(x, count, seed=0):
    """Return weighted means of points."""
    weights = torch.rand(count, len(x), generator=torch.Generator().manual_seed(seed)).double() ** 6
    return weights / weights.sum(1, keepdim=True) @ x


@pytest.mark.parametrize(("n", "d"), [(12, 1), (40, 2), (40, 3), (40, 5)])
def test_facets_say_what_a_triangulation_says(n, d):
    x, q = points(n, d), 1.3 * points(300, d, seed=2)
    if d == 1:
        expected = (q >= x.min()) & (q <= x.max())
        expected = expected[:, 0].numpy()
    else:
        expected = Delaunay(x.numpy()).find_simplex(q.numpy()) >= 0
    found = convex_hull(x).contains(q).numpy()
    assert 20 < expected.sum() < 290
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("d", [2, 4])
def test_the_linear_programme_says_what_the_facets_say(d, monkeypatch):
    x, q = points(25, d), 1.2 * points(60, d, seed=3)
    q[:5] = x[:5]
    by_facets = convex_hull(x).contains(q)
    monkeypatch.setattr(MODULE, "FACETS", 0)
    by_steps = convex_hull(x).contains(q)
    monkeypatch.setattr(MODULE, "STEPS", 0)
    by_weights = convex_hull(x).contains(q)
    monkeypatch.setattr(MODULE._Planes, "_solve_least_squares", lambda self, q: None)
    alone = convex_hull(x).contains(q)
    assert torch.equal(by_facets, by_steps)
    assert torch.equal(by_facets, by_weights)
    assert torch.equal(by_facets, alone)
    assert by_facets[:5].all()


def test_many_dimensions():
    x = points(60, 9)
    inside = means(x, 8)
    way = points(8, 9, seed=5)
    far = (way @ x.T).max(1).values[:, None] * way / way.square().sum(1, keepdim=True)
    hull = convex_hull(x)
    assert hull.contains(inside).all()
    assert hull.contains(x[:4]).all()
    assert not hull.contains(far * 1.0001).any()  # just beyond a plane that touches the hull
    assert not separated(x.numpy(), inside.numpy()).any()


def test_points_inside_take_no_linear_programme(monkeypatch):
    x = points(250, 60)
    weights = torch.distributions.Dirichlet(torch.full((250,), 0.1)).sample((4,)).double()
    inside = weights / weights.sum(1, keepdim=True) @ x
    monkeypatch.setattr("scipy.optimize.linprog", None)  # which takes a minute in 784 dimensions
    assert convex_hull(x).contains(inside).all()


def test_too_much_work_is_left_undecided():
    x = points(60, 9)
    hull, q = convex_hull(x), torch.cat([means(x, 5), 100 + points(3, 9, seed=5)])
    inside, known = hull.within(q, work=2.5 * 60 * 9 * 9)
    assert known.tolist() == [True, True, False, False, False, True, True, True]
    assert inside.tolist() == [True, True, *[False] * 6]
    assert hull.within(q)[1].all()


def test_weights_that_take_too_many_steps_tell_nothing(monkeypatch):
    def endless(*args, **settings):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", endless)
    assert convex_hull(points(40, 7)).contains(means(points(40, 7), 2)).all()


def test_edges_count_as_inside_to_the_tolerance_and_no_further():
    square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).double()
    hull = convex_hull(square)
    beyond = torch.tensor([[1.0, 0.5], [1.0, 1.0], [1 + TOLERANCE / 10, 0.5], [1 + 1e-7, 0.5]])
    assert hull.contains(beyond.double()).tolist()[:2] == [True, True]
    beyond = torch.tensor([[1 + TOLERANCE / 10, 0.5], [1 + 1e-7, 0.5]], dtype=torch.float64)
    assert hull.contains(beyond).tolist() == [True, False]


def test_planes_that_cut_one_point_off_serve_for_the_next():
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    for way in ("_solve_least_squares", "_solve_linear_programme"):
        planes = MODULE._Planes(corner)
        assert not planes.cut(np.array([0.9, 0.9]))  # none is known yet
        assert getattr(planes, way)(np.array([0.9, 0.9])) is False
        assert planes.cut(np.array([0.8, 0.7]))
        assert not planes.cut(np.array([0.2, 0.2]))
        assert getattr(planes, way)(np.array([0.2, 0.2])) is True
    assert planes.solve(np.array([0.2, 0.2]))


def test_flat_hulls():
    x = torch.cat([points(10, 2), torch.zeros(10, 1).double()], dim=1)
    hull = convex_hull(x)
    assert hull.dimensions == 2
    middle = means(x, 3)
    assert hull.contains(middle).all()
    assert not hull.contains(middle + torch.tensor([0.0, 0.0, 1e-6])).any()
    few = points(3, 7)
    hull = convex_hull(few, flat=True)
    assert hull.dimensions == 2
    assert hull.contains(means(few, 5)).all()
    assert not hull.contains(points(5, 7, seed=8)).any()
    one = convex_hull(points(1, 2), flat=True)
    assert one.contains(torch.cat([points(1, 2), points(1, 2) + 1])).tolist() == [True, False]


def test_pictures_are_flattened():
    x = points(20, 2, 2)
    assert convex_hull(x).contains(x).all()


def test_bad_input_is_refused(monkeypatch):
    with pytest.raises(
        ValueError,
        match=r"needs more points than the 3 dimensions, found 3 points: pass more points, .*flat",
    ):
        convex_hull(points(3, 3))
    broken = points(5, 2)
    broken[1, 0] = torch.nan
    with pytest.raises(ValueError, match="x must be finite, found NaN or Inf in 1 of 5 points"):
        convex_hull(broken)
    hull = convex_hull(points(5, 2))
    with pytest.raises(ValueError, match="queries must be finite"):
        hull.contains(broken)
    with pytest.raises(ValueError, match=r"queries must have 2 coordinates .* found 3: reshape"):
        hull.contains(points(4, 3))


def test_a_programme_without_an_answer_is_told(monkeypatch):
    class Failed:
        status, message = 4, "numerical trouble"

    monkeypatch.setattr("scipy.optimize.linprog", lambda *args, **settings: Failed())
    monkeypatch.setattr(MODULE._Planes, "_solve_least_squares", lambda self, q: None)
    monkeypatch.setattr(MODULE, "FACETS", 0)
    with pytest.raises(RuntimeError, match="must have a solution, found 'numerical trouble'"):
        convex_hull(points(9, 2)).contains(torch.zeros(1, 2, dtype=torch.float64))
