"""Segments cut window by window, against the same cut whole and against the network."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import points
from inscape.functional.jacobians import jacobians
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.graph.program import Program
from inscape.piecewise.lines import evaluation, sweep
from inscape.piecewise.lines.evaluation import SegmentEvaluation
from inscape.piecewise.lines.prefix import joined, windows
from inscape.piecewise.lines.segments import NARROW, CutSegments
from inscape.piecewise.lines.sweep import Knots, SegmentSweep
from inscape.runtime.deadline import NEVER, Deadline


def cut(f, a, b, deadline=NEVER):
    """Cut segments, and stop after the operation at which the time is over."""
    parts = []
    for part in windows(SegmentEvaluation(piecewise(f, a), a, b, 2**30), NARROW, deadline):
        parts += [] if part is None else [part]
        if parts and deadline.passed():
            break
    return CutSegments(**joined(parts))


class Convolutions(nn.Module):
    """Two blocks with batch norm and a skip connection, max pooling, and a clamp."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.last = nn.BatchNorm2d(4), nn.Linear(36, 2)
        self.norm.running_mean.uniform_(-0.5, 0.5)
        self.double().eval()

    def forward(self, x):
        h = nn.functional.relu6(self.first(x))
        h = torch.relu(self.norm(self.second(h)) + h)
        return self.last(nn.functional.max_pool2d(h, 2).flatten(1))


@pytest.mark.parametrize("most", [4, 7, 30])
def test_windows_of_any_size_give_the_same_knots(most, monkeypatch):
    f, a = Convolutions(), points(3, 1, 6, 6)
    b = a + 0.2 * points(3, 1, 6, 6, seed=2)
    whole = cut(f, a, b)
    assert int(whole.pieces.min()) > 5
    monkeypatch.setattr(evaluation, "MOST", most)
    result = cut(f, a, b)
    assert torch.equal(result.offsets, whole.offsets)
    for name in ("t", "values", "slopes"):
        assert_close(getattr(result, name), getattr(whole, name), rtol=1e-10, atol=1e-12)


def by_rows(x):
    """Read the number of rows late, and add a constant that has been repeated for each."""
    h = torch.relu(x * 2 - 1)
    start = torch.ones(1, 3, dtype=x.dtype).expand(x.shape[0], 3) / 5
    h = torch.maximum(h.view(x.size(0), -1)[:, :3], start)
    return torch.cat([h, x.flatten(1)[:, :1]], 1)


def in_parts(x):
    first, second = torch.relu(x).chunk(2, 1)
    return first - 3 * second.clamp(-0.2, 0.3) + 1


FORMS = {
    "sizes": by_rows,
    "parts": in_parts,
    "hardsigmoid": lambda x: nn.functional.hardsigmoid(5 * x + 0.5) * 3 - 1,
    "softshrink": lambda x: nn.functional.softshrink(x, 0.3) - x / 2 + 4,
    "minimum": lambda x: torch.minimum(x, 0.7 - x).amax(1, keepdim=True),
    "leaky": lambda x: nn.functional.leaky_relu(1 - x, 0.2).sum(1, keepdim=True),
}


@pytest.mark.parametrize("name", FORMS)
def test_derivatives_have_no_constants_and_values_are_those_of_the_network(name):
    f, a, b = FORMS[name], points(8, 4), points(8, 4, seed=2)
    result = cut(f, a, b)
    assert int(result.pieces.sum()) > 16
    rows = SegmentEvaluation(piecewise(f, a), a, b, 2**20)
    knots = torch.repeat_interleave(torch.arange(8), result.offsets.diff())
    assert_close(result.values, f(rows.at(knots, result.t)).flatten(1))
    middle = rows.at(result.segment, result.middles)
    slopes = (jacobians(f, middle) @ (b - a)[result.segment][:, :, None])[:, :, 0]
    assert_close(result.slopes, slopes)


def priced(monkeypatch, f, x):
    """Return a clock by which one row goes through the graph in a second."""
    now, step = [0.0], Program.step
    nodes = len(piecewise(f, x).program.nodes)

    def slow(self, node, values):
        out = step(self, node, values)
        if isinstance(out, torch.Tensor) and out.ndim:
            now[0] += len(out) / nodes
        return out

    monkeypatch.setattr(Program, "step", slow)
    return lambda: now[0]


@pytest.mark.parametrize("seconds", [20.0, 60.0, 150.0])
def test_a_time_is_held_and_used(seconds, monkeypatch):
    f, a, b = Convolutions(), points(1, 1, 6, 6), 2 * points(1, 1, 6, 6, seed=2)
    whole, clock = cut(f, a, b), priced(monkeypatch, f, a)
    result = cut(f, a, b, deadline=Deadline(seconds, clock))
    assert len(result.slopes) < len(whole.slopes)
    knots = len(result.t)
    assert_close(result.t, whole.t[:knots], rtol=0, atol=1e-12)
    assert_close(result.slopes, whole.slopes[: knots - 1])
    assert clock() <= seconds + 2  # what was begun is stopped between two operations
    assert knots - 2 >= (seconds - 20) / 3  # at most three evaluations each, but for the last batch


def test_the_first_pieces_are_found_however_short_the_time(monkeypatch):
    f, a, b = Convolutions(), points(2, 1, 6, 6), points(2, 1, 6, 6, seed=2)
    clock = priced(monkeypatch, f, a)
    result = cut(f, a, b, deadline=Deadline(1e-9, clock))
    assert result.pieces.tolist() == [1]
    assert 0 < float(result.covered) < 1
    assert clock() < 8


def test_no_layer_is_evaluated_twice(monkeypatch):
    f, a, b = Convolutions(), points(1, 1, 6, 6), points(1, 1, 6, 6, seed=2)
    clock = priced(monkeypatch, f, a)
    result = cut(f, a, b)
    assert len(result.slopes) > 40
    assert clock() <= 3 * len(result.slopes)


def test_a_piece_costs_one_row_of_every_layer(monkeypatch):
    f, a = Convolutions(), points(3, 1, 6, 6)
    b = a + 0.2 * points(3, 1, 6, 6, seed=2)
    rows, affine = [], SegmentSweep.affine

    def counted(self, node, values, number, points):
        rows.append(number)
        return affine(self, node, values, number, points)

    monkeypatch.setattr(SegmentSweep, "affine", counted)
    result = cut(f, a, b)
    assert max(rows) == int(result.pieces.sum()) + len(a) + 1


@pytest.mark.parametrize("long", [1, 10**6])
def test_values_at_knots_are_summed_along_each_segment(long, monkeypatch):
    monkeypatch.setattr(sweep, "LONG", long)
    t = torch.tensor([0.0, 0.25, 1.0, 0.5, 0.75], dtype=torch.float64)
    knots = Knots(torch.tensor([4, 4, 4, 5, 5]), t)
    batch = torch.tensor([[1.0, 0.0], [2.0, 5.0], [4.0, 8.0], [-4.0, 0.0], [8.0, -4.0], [0.0, 0.0]])
    expected = [[1.0, 0.0], [2.0, 2.0], [-1.0, 2.0], [2.0, 5.0], [4.0, 4.0]]
    assert knots.values(batch.double()).tolist() == expected
