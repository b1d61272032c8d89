"""Budgets of planes: the clock is looked at everywhere, and what is left is right."""

import itertools
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from inscape._core import BudgetError
from inscape._core.anytime import finished, step_within
from inscape.piecewise.graph.affine_maps import AffineMap
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.piecewise.planes import (
    arrangement,
    budget,
    coefficients,
    cutting,
    in_canonical_order,
    subdivision,
)
from inscape.piecewise.planes.patterns import PatternHistory
from inscape.piecewise.planes.threads import Workers
from inscape.regions import boundary, plane_regions
from inscape.runtime.deadline import clock

planes = sys.modules["inscape.regions.plane_regions"]

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


def dense(*widths):
    torch.manual_seed(0)
    parts = [nn.Linear(2, widths[0])]
    for a, b in zip(widths, [*widths[1:], 2], strict=True):
        parts += [nn.ReLU(), nn.Linear(a, b)]
    return nn.Sequential(*parts).double().eval()


def convolution(channels=2):
    torch.manual_seed(0)
    parts = [nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    model = nn.Sequential(*parts, nn.Linear(channels * 49, 3)).double().eval()
    return model, torch.randn(3, 1, 14, 14, dtype=torch.float64)


def assert_right(result, model):
    """The cells are apart, and each has the map that the network has in its middle."""
    assert float(result.areas.sum()) <= float(4 * result.covered) * (1 + 1e-9)
    values = result.values(torch.arange(result.cells), result.centroids)
    torch.testing.assert_close(values, model(result.frame.at(result.centroids)).detach())
    for cell in range(min(result.cells, 5)):
        slopes = torch.autograd.functional.jacobian(model, result.centroids[cell : cell + 1])
        torch.testing.assert_close(result.slopes[cell], slopes[0, :, 0])


def steps_of(model, **more):
    """Return the steps in which the cells of the square are cut."""
    marks = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    limits = budget.CutBudget(regions=10**6, **more)
    net = piecewise(model, SQUARE)
    return cutting.cutting(
        net, marks, marks[1:], SQUARE.numpy(), budget=limits, watched=True, threads=2
    )


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.9])
def test_wherever_the_work_is_stopped_nothing_is_left_behind(monkeypatch, part):
    monkeypatch.setattr(arrangement, "BATCH", 16)
    model, before = dense(60, 12), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with clock(ticking()):
            number = sum(1 for _ in steps_of(model))
            assert number > 10
            steps = steps_of(model)
            for _ in range(int(part * number)):
                next(steps)
                assert torch.get_num_threads() == 2
            workers = threading.active_count()
            steps.close()
        assert threading.active_count() <= workers
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_small_steps_give_the_cells_of_one_large_step(monkeypatch):
    monkeypatch.setattr(arrangement, "BATCH", 16)
    model = dense(60, 12)
    with clock(ticking()):
        cut = finished(steps_of(model))
    whole = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
    result = planes._result(
        in_canonical_order(cut), whole.frame, SQUARE, SQUARE, piecewise(model, SQUARE)
    )
    assert (result.cells, result.complete) == (whole.cells, True)
    torch.testing.assert_close(result.areas, whole.areas)
    torch.testing.assert_close(result.slopes, whole.slopes)


def ticking(step=1.0):
    """Return a clock that goes on each time it is looked at."""
    count = itertools.count()
    return lambda: step * next(count)


@pytest.mark.parametrize("seconds", [60.0, 100.0, 150.0])
def test_a_time_is_spent_on_ever_larger_windows_and_the_largest_is_whole(monkeypatch, seconds):
    monkeypatch.setattr(arrangement, "BATCH", 16)
    model = dense(60, 12)
    now = ticking()
    with clock(now):
        result = plane_regions(model, SQUARE, domain=SQUARE, seconds=seconds, threads=1)
    assert now() <= 1.1 * seconds + 10  # one look is a second here
    assert (result.complete, result.ended_by) == (False, "seconds")
    assert torch.equal(result.asked, SQUARE)
    side = float(result.domain[2, 0])
    torch.testing.assert_close(result.domain, side * SQUARE)
    assert result.covered == pytest.approx(side**2)
    assert 0 < result.covered < 1
    alone = plane_regions(model, SQUARE, domain=result.domain, threads=1)
    assert (result.cells, alone.complete) == (alone.cells, True)
    torch.testing.assert_close(result.areas, alone.areas)
    assert_right(result, model)
    said = result.summary()
    assert said.kind == "lower bound"
    assert said.basis.startswith(
        f"{result.covered:.1%} of the window, then the budget (seconds) was spent"
    )


def test_steps_are_short_and_windows_ever_wider(monkeypatch):
    monkeypatch.setattr(arrangement, "BATCH", 16)
    model, now = dense(60, 12), ticking(0.01)
    with clock(now), step_within(0.3):
        results, times = [], [now()]
        for result in plane_regions.refine(model, SQUARE, domain=SQUARE, threads=1):
            results += [] if result is None else [result]
            times.append(now())
    assert max(b - a for a, b in itertools.pairwise(times[1:])) <= 0.3 + 0.05
    covered = [result.covered for result in results]
    assert covered == sorted(covered)
    assert len(set(covered)) > 3
    assert [result.complete for result in results[:-1]] == [False] * (len(results) - 1)
    whole = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
    assert (results[-1].complete, results[-1].cells) == (True, whole.cells)
    for result in results[:: len(results) // 3]:
        alone = plane_regions(model, SQUARE, domain=result.domain, threads=1)
        assert result.cells == alone.cells
        assert_right(result, model)


def test_a_boundary_in_time_is_that_of_its_window(monkeypatch):
    monkeypatch.setattr(arrangement, "BATCH", 16)
    model = dense(60, 12)
    with clock(ticking()):
        result = boundary(model, SQUARE, domain=SQUARE, seconds=60.0, threads=1)
    assert (result.complete, result.ended_by) == (False, "seconds")
    alone = boundary(model, SQUARE, domain=result.domain, threads=1)
    assert result.length == pytest.approx(alone.length)


def test_enough_time_covers_all_and_says_so():
    model = dense(12, 12)
    with clock(ticking(1e-6)):
        result = plane_regions(model, SQUARE, domain=SQUARE, seconds=100.0, threads=1)
    whole = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
    assert (result.complete, result.ended_by, result.covered) == (True, "complete", 1.0)
    assert whole.ended_by == "complete"
    assert result.cells == whole.cells


def test_other_budgets_are_named():
    model = dense(60, 12)
    few = plane_regions(model, SQUARE, domain=SQUARE, regions=50, threads=1)
    assert (few.complete, few.ended_by) == (False, "regions")
    small = plane_regions(model, SQUARE, domain=SQUARE, memory=2**20, threads=1)
    assert (small.complete, small.ended_by) == (False, "memory")
    with clock(ticking(1e-6)):
        both = plane_regions(model, SQUARE, domain=SQUARE, regions=50, seconds=100.0, threads=1)
        single = plane_regions(
            Apex().eval(), SQUARE, domain=SQUARE, regions=1, seconds=100.0, threads=1
        )
    assert (both.ended_by, both.cells <= 50) == ("regions", True)
    assert float(both.areas.sum()) == pytest.approx(float(4 * both.covered))
    assert (single.ended_by, single.cells) == ("regions", 1)


class Apex(nn.Module):
    """Two kinks that cross in the centre, so that no window has one cell."""

    def forward(self, x):
        return x.abs().sum(1, keepdim=True)


def test_ranges_are_taken_some_at_a_time_where_somebody_looks_at_the_clock():
    faces = object.__new__(arrangement.Arrangement)
    faces.workers, faces.watched = Workers(1), True
    with clock(ticking()):
        steps = faces.over(35, lambda a, b: (a, b), 5, batch=10)
        assert len([next(steps) for _ in range(4)]) == 4
        with pytest.raises(StopIteration) as end:
            next(steps)
    assert end.value.value == [(0, 10), (10, 20), (20, 30), (30, 35)]
    faces.watched = False
    assert finished(faces.over(95, lambda a, b: (a, b), 5)) == [(0, 95)]
    assert finished(faces.over(0, lambda a, b: (a, b), 5)) == [(0, 0)]


def test_the_clock_begins_with_the_call_and_an_export_that_takes_it_all_is_told(monkeypatch):
    module, now = sys.modules["inscape.regions.plane_regions"], [50.0]
    export = module.piecewise

    def slow(*args):
        now[0] += 7.0
        return export(*args)

    monkeypatch.setattr(module, "piecewise", slow)
    said = (
        "the time must do for a window of about one linear region, but 4 s are over, 7 s of it "
        r"to read the network: raise seconds \(a network of the same structure is not exported "
        r"again\), or cut lines with line_regions, which is quicker."
    )
    with clock(lambda: now[0]), pytest.raises(BudgetError, match=said):
        plane_regions(dense(3), SQUARE, domain=SQUARE, seconds=4.0)
    with clock(lambda: now[0]):
        assert plane_regions(dense(3), SQUARE, domain=SQUARE, seconds=8.0).complete


def test_columns_are_made_in_steps_and_without_them_the_graph_is_asked(monkeypatch):
    model, x = convolution()
    monkeypatch.setattr(AffineMap, "_matrix", lambda *_: iter(()))
    domain = 0.05 * SQUARE + 0.3
    whole, asked = plane_regions(model, x, domain=domain, threads=1), []
    monkeypatch.setattr(
        AffineMap, "columns", lambda self, units, room: iter(asked.append(units) or ())
    )
    without = plane_regions(model, x, domain=domain, threads=1)
    assert len(asked) >= 1
    assert (without.cells, without.complete) == (whole.cells, True)
    torch.testing.assert_close(without.slopes, whole.slopes)


def test_for_a_few_faces_no_columns_are_made(monkeypatch):
    model, x = convolution(8)
    want, asked, columns = plane_regions(model, x, regions=1, threads=1), [], AffineMap.columns
    monkeypatch.setattr(
        AffineMap,
        "columns",
        lambda self, units, *more: asked.append(len(units)) or columns(self, units, *more),
    )
    monkeypatch.setattr(coefficients, "ROWS", 1)
    result = plane_regions(model, x, regions=1, threads=1)
    assert asked == [0]  # one cell is not cut by the maxima
    torch.testing.assert_close(result.slopes, want.slopes)
    values = result.values(torch.zeros(1, dtype=torch.int64), result.centroids)
    torch.testing.assert_close(values, model(result.frame.at(result.centroids)).detach())


def test_full_columns_give_the_cells_of_the_whole_matrix(monkeypatch):
    model = dense(12, 12)
    whole = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
    monkeypatch.setattr(AffineMap, "_matrix", lambda *_: iter(()))
    result = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
    assert result.cells == whole.cells
    torch.testing.assert_close(result.areas, whole.areas)
    torch.testing.assert_close(result.slopes, whole.slopes)


def test_small_windows_have_three_points_nearby_which_are_measured_once(monkeypatch):
    model, x = convolution()
    rows, measured = [], Piecewise.in_turn
    monkeypatch.setattr(
        Piecewise, "in_turn", lambda self, x, *rest: rows.append(len(x)) or measured(self, x, *rest)
    )
    monkeypatch.setattr(cutting, "CLOSE", 0.01)
    result = [r for r in plane_regions.refine(model, x) if r is not None]
    assert result[-1].complete
    assert rows[0] == 3
    assert rows.count(3) == 1 < len(rows)  # wider windows have their corners too
    assert set(rows) == {3, 10}


def test_the_graph_gives_faces_alike_to_the_last_bit_in_any_company():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 10)).double().eval()
    points = torch.randn(3, 40, dtype=torch.float64)
    history, bits = PatternHistory(), np.random.default_rng(0).integers(0, 2**30, (50, 1))
    history.add(bits.astype(np.uint64), 30, np.zeros(50, np.int64))
    graph = coefficients.GraphCoefficients(
        piecewise(model, points), points, coefficients.NearbyPoints(points), history
    )
    finished(graph.measured())
    whole, faces = np.empty((50, 4, 10)), np.arange(50)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    graph.coefficients(1, faces, whole)
    for begin, end in [(0, 1), (3, 5), (7, 16), (30, 50)]:
        block = np.empty((end - begin, 4, 10))
        graph.coefficients(1, faces[begin:end], block)
        np.testing.assert_array_equal(block, whole[begin:end])
    torch.set_num_threads(before)


def test_torch_has_one_thread_meanwhile_and_its_own_after(monkeypatch):
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    run = AffineMap._run
    monkeypatch.setattr(
        AffineMap,
        "_run",
        lambda self, rows: seen.append(torch.get_num_threads()) or run(self, rows),
    )
    try:
        plane_regions(dense(3), SQUARE, domain=SQUARE)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_compact_planes_have_no_edge_or_vertex_that_no_face_has():
    square = subdivision.polygon(SQUARE.numpy())
    two = SimpleNamespace(first=np.array([0, 3, 6]), halves=np.array([0, 2, 8, 9, 4, 6]))
    ends, made = np.concatenate([square.ends, [[2, 0]]]).astype(np.int32), np.arange(10)
    plane = subdivision.Subdivision(
        place=square.place, ends=ends, made=made.reshape(5, 2).astype(np.int32),
        first=two.first, halves=two.halves.astype(np.int32),
    )  # fmt: skip
    half = plane.taken(np.array([1]))
    small = half.compact()
    assert (len(small.place), len(small.ends), len(small.made)) == (3, 3, 3)
    np.testing.assert_array_equal(small.place[small.corners()], half.place[half.corners()])
    np.testing.assert_array_equal(small.made[small.halves >> 1], half.made[half.halves >> 1])
    np.testing.assert_array_equal(plane.compact().ends, plane.ends)
