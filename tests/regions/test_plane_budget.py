"""Budgets of planes: the clock is looked at everywhere, and what is left is right."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from inscape._core.pieces import affine
from inscape._core.pieces.affine import Step
from inscape._core.pieces.piecewise import piecewise
from inscape._core.pieces.plane import budget, sources, subdivision, turns, work
from inscape._core.pieces.plane.history import History
from inscape._core.pieces.plane.workers import Workers
from inscape.regions import plane_regions

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


def assert_right(found, model):
    """The cells are apart, and each has the map that the network has in its middle."""
    assert float(found.areas.sum()) <= float(4 * found.covered) * (1 + 1e-9)
    values = found.values(torch.arange(found.cells), found.centroids)
    torch.testing.assert_close(values, model(found.frame.at(found.centroids)).detach())
    for cell in range(min(found.cells, 5)):
        slopes = torch.autograd.functional.jacobian(model, found.centroids[cell : cell + 1])
        torch.testing.assert_close(found.slopes[cell], slopes[0, :, 0])


class Clock:
    """A clock that jumps once it was looked at some times."""

    def __init__(self, looks):
        self.looks = looks

    def monotonic(self):
        self.looks -= 1
        return 0.0 if self.looks >= 0 else 1e6


@pytest.mark.parametrize("looks", [5, 12, 20, 26, 60])
def test_wherever_the_time_ends_what_is_left_is_right(monkeypatch, looks):
    clock = Clock(looks)
    for module in (affine, budget, turns, work):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(sys.modules["inscape.regions.plane_regions"], "monotonic", lambda: 0.0)
    monkeypatch.setattr(work, "SOME", 16)
    model = dense(60, 12)
    found = plane_regions(model, SQUARE, domain=SQUARE, seconds=100.0, threads=1)
    assert not found.complete
    assert found.covered < 1
    assert_right(found, model)


def test_ranges_end_with_the_time(monkeypatch):
    monkeypatch.setattr(work, "time", Clock(3))
    monkeypatch.setattr(work, "SOME", 10)
    one = object.__new__(work.Work)
    one.workers, one.until = Workers(1), 1.0
    assert one.in_time(95, lambda a, b: (a, b), 5) == [(0, 10), (10, 20), (20, 30), (30, 40)]
    one.until = float("inf")
    assert one.in_time(95, lambda a, b: (a, b), 5) == [(0, 95)]
    assert one.in_time(0, lambda a, b: (a, b), 5) == [(0, 0)]


def test_the_clock_begins_with_the_call_and_not_after_the_export(monkeypatch):
    module, now = sys.modules["inscape.regions.plane_regions"], [50.0]
    export, cells, seen = module.piecewise, module.cells, []

    def slow(*args):
        now[0] += 7.0
        return export(*args)

    def watched(*args, budget, **more):
        seen.append(budget.until)
        return cells(*args, budget=budget, **more)

    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "piecewise", slow)
    monkeypatch.setattr(module, "cells", watched)
    plane_regions(dense(3), SQUARE, domain=SQUARE, seconds=4.0)
    assert seen == [54.0]


def test_columns_are_told_when_to_stop_and_without_them_the_graph_is_asked(monkeypatch):
    model, x = convolution()
    monkeypatch.setattr(Step, "_matrix", lambda *_: None)
    whole, until = plane_regions(model, x, regions=200, threads=1), []
    monkeypatch.setattr(Step, "columns", lambda self, units, room, end: until.append(end))
    late = plane_regions(model, x, regions=200, seconds=1e6, threads=1)
    assert len(until) == 2
    assert all(np.isfinite(until))
    assert late.cells == whole.cells
    torch.testing.assert_close(late.slopes, whole.slopes)


def test_for_a_few_faces_no_columns_are_made(monkeypatch):
    model, x = convolution(8)
    want, asked, columns = plane_regions(model, x, regions=1, threads=1), [], Step.columns
    monkeypatch.setattr(
        Step,
        "columns",
        lambda self, units, *more: asked.append(len(units)) or columns(self, units, *more),
    )
    monkeypatch.setattr(sources, "ROWS", 1)
    found = plane_regions(model, x, regions=1, threads=1)
    assert asked == [0]  # one cell is not cut by the maxima
    torch.testing.assert_close(found.slopes, want.slopes)
    values = found.values(torch.zeros(1, dtype=torch.int64), found.centroids)
    torch.testing.assert_close(values, model(found.frame.at(found.centroids)).detach())


def test_full_columns_give_the_cells_of_the_whole_matrix(monkeypatch):
    model = dense(12, 12)
    whole = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
    monkeypatch.setattr(Step, "_matrix", lambda *_: None)
    found = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
    assert found.cells == whole.cells
    torch.testing.assert_close(found.areas, whole.areas)
    torch.testing.assert_close(found.slopes, whole.slopes)


def test_the_graph_gives_faces_alike_to_the_last_bit_in_any_company():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 10)).double().eval()
    points = torch.randn(3, 40, dtype=torch.float64)
    history, bits = History(), np.random.default_rng(0).integers(0, 2**30, (50, 1))
    history.add(bits.astype(np.uint64), 30, np.zeros(50, np.int64))
    graph = sources.Graph(piecewise(model, points), points, points, history)
    whole, faces = np.empty((50, 4, 10)), np.arange(50)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    graph.coefficients(1, faces, whole)
    for begin, end in [(0, 1), (3, 5), (7, 16), (30, 50)]:
        some = np.empty((end - begin, 4, 10))
        graph.coefficients(1, faces[begin:end], some)
        np.testing.assert_array_equal(some, whole[begin:end])
    torch.set_num_threads(before)


def test_torch_has_one_thread_meanwhile_and_its_own_after(monkeypatch):
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    run = Step._run
    monkeypatch.setattr(
        Step, "_run", lambda self, rows: seen.append(torch.get_num_threads()) or run(self, rows)
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
