"""Affine maps between kinks: dense where they are full, columns within a budget, in steps."""

import numpy as np
import pytest
import torch
from torch import nn

from inscape._core.anytime import finished
from inscape.piecewise.graph import affine_maps
from inscape.piecewise.graph.affine_maps import ROWS, affine_steps
from inscape.piecewise.graph.matrix_chain import matrix
from inscape.piecewise.graph.network import piecewise

ROOM = 2**30


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def steps_of(*args):
    return finished(affine_steps(*args))


def net_of(*parts, shape=(2,)):
    torch.manual_seed(0)
    model = nn.Sequential(*parts).double().eval()
    return piecewise(model, torch.randn(3, *shape, dtype=torch.float64))


def normed(width):
    parts = [nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width)]
    return net_of(*parts, nn.ReLU(), nn.Linear(width, 1))


def pooled(outputs=10):
    parts = [nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return net_of(*parts, nn.Linear(36, outputs), shape=(1, 8, 8))


@torch.no_grad()
def exact(net, at):
    end = net.ops[at + 1].node.args[0] if at + 1 < len(net.ops) else net.program.output
    return matrix(net, net.ops[at].node, end)[0]


def test_a_full_matrix_stays_whole_however_large_and_takes_its_room(monkeypatch):
    monkeypatch.setattr(affine_maps, "LARGEST", 1)
    net = net_of(nn.Linear(2, 30), nn.ReLU(), nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 1))
    for at, step in enumerate(steps_of(net, ROOM)):
        np.testing.assert_array_equal(step.dense.T, exact(net, at))
    sizes = 8 * 30 * 20, 8 * 20
    kept = {room: [s.dense is not None for s in steps_of(net, room)] for room in
            (sum(sizes), sum(sizes) - 1, sizes[0] - 1, 0)}  # fmt: skip
    assert list(kept.values()) == [[True, True], [True, False], [False, True], [False, False]]


def test_a_matrix_of_zeros_does_not_stay_whole():
    layer = nn.Linear(30, 20)
    net = net_of(nn.Linear(2, 30), nn.ReLU(), layer, nn.ReLU(), nn.Linear(20, 1))
    with torch.no_grad():
        layer.weight *= torch.arange(30) < 3
    first, last = steps_of(net, ROOM)
    assert first.dense is None
    assert last.dense is not None


def test_full_columns_come_whole_and_others_sparse(monkeypatch):
    monkeypatch.setattr(affine_maps, "LARGEST", 1)
    net, units = normed(40), np.array([2, 3, 7, 39])
    step = steps_of(net, ROOM)[0]
    assert step.dense is None
    result = finished(step.columns(units, ROOM))
    np.testing.assert_allclose(result.whole[result.slot[units]], exact(net, 0).T[units], rtol=1e-12)
    conv = net_of(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Conv1d(2, 2, 3), nn.ReLU(), nn.Flatten(),
                  nn.Linear(72, 1), shape=(1, 40))  # fmt: skip
    step, want = steps_of(conv, ROOM)[0], exact(conv, 0)
    result, at = finished(step.columns(units, ROOM)), np.zeros_like(want[:, units])
    assert result.whole is None
    for k, j in enumerate(result.slot[units]):
        span = slice(result.start[j], result.start[j + 1])
        at[result.index[span], k] = result.value[span]
    np.testing.assert_allclose(at, want[:, units], atol=1e-14)


def test_what_goes_straight_into_a_maximum_has_columns_without_any_run(monkeypatch):
    step, units = steps_of(pooled(), ROOM)[0], np.array([5, 6, 100])
    monkeypatch.setattr(step, "_run", None)
    result = finished(step.columns(units, ROOM))
    np.testing.assert_array_equal(result.index, units)
    np.testing.assert_array_equal(result.value, np.ones(3))


def test_columns_are_made_in_steps_and_look_at_the_room_between_parts(monkeypatch):
    monkeypatch.setattr(affine_maps, "LARGEST", 1)
    step, runs = steps_of(normed(4 * ROWS), ROOM)[0], []
    run = step._run
    monkeypatch.setattr(step, "_run", lambda rows: runs.append(len(rows)) or run(rows))
    units = np.arange(4 * ROWS)
    columns = step.columns(units, ROOM)
    assert [next(columns) for _ in range(3)] == [None] * 3
    assert runs[1:] == [ROWS, ROWS]  # after the probe
    columns.close()
    assert finished(step.columns(units, 8 * step.units * step.size - 1)) is None
    assert finished(step.columns(units, 8 * step.units * step.size)) is not None


@pytest.mark.parametrize("outputs", [1, 10, 33])
def test_rows_come_out_alike_to_the_last_bit_in_any_company(outputs):
    step = steps_of(pooled(outputs), ROOM)[1]
    rows = np.random.default_rng(0).standard_normal((130, step.units))
    whole = step.linear(rows)
    for begin, end in [(0, 1), (0, 2), (3, 6), (5, 12), (90, 99), (0, 97), (1, 130)]:
        np.testing.assert_array_equal(step.linear(rows[begin:end]), whole[begin:end])
