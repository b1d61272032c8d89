"""The path kernel while a training runs: the other way round, and the same to rounding."""

import itertools
import shutil
from collections import namedtuple

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels import PathWatch, path_kernel
from inscape.kernels.path import optimizer_state
from inscape.training import fit

X, Y, Q = points(9, 2), points(9, 2, seed=4), points(3, 2, seed=9)

ADAM = {"optimizer": "adam", "batch": 4, "weight_decay": 0.1}

WAYS = {
    "descent": {},
    "decay": {"batch": 4, "weight_decay": 0.1},
    "momentum": {"batch": 4, "momentum": 0.9, "weight_decay": 0.1},
    "nesterov": {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    "adam": ADAM,
    "adamw": ADAM | {"optimizer": "adamw"},
}


def ridge(model, x):
    return sum(p.square().sum() for p in model.parameters())


def watched_training(watch, *, act=nn.GELU, model=None, **settings):
    model = dense(2, 4, 3, 2, act=act) if model is None else model
    run = fit(model, X, Y, lr=0.03, epochs=2, record=2, progress=False, watch=watch, **settings)
    return model, run.trajectory


def assert_same(one, two):
    for name in ("initial", "final", "samples", "decay", "penalty", "layers"):
        assert_close(getattr(one, name), getattr(two, name))
    assert (one.tensors, one.optimizer, one.nodes) == (two.tensors, two.optimizer, two.nodes)


@pytest.mark.parametrize(
    ("way", "decay"), [*itertools.product(WAYS, ["own"]), *itertools.product(WAYS, ["samples"])]
)
def test_forwards_and_backwards_agree(way, decay):
    watch = PathWatch(Q, decay=decay, by_layer=True)
    model, trajectory = watched_training(watch, **WAYS[way])
    back = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, decay=decay, by_layer=True)
    found = watch.result()
    assert_same(found, back)
    assert found.unattributed < 1e-12
    assert (found.passes, found.disk, found.steps) == (0, 0, None)
    rows = (way not in ("descent", "decay")) + (way != "descent" and decay == "samples")
    assert found.bytes == rows * (len(X) + 2) * 8 * sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("decay", ["own", "samples"])
@pytest.mark.parametrize("way", WAYS)
def test_steps_agree_with_those_gone_back(way, decay):
    watch = PathWatch(Q, decay=decay, by_step=True)
    model, trajectory = watched_training(watch, **WAYS[way])
    found = watch.result()
    back = path_kernel(model, X, Y, trajectory=trajectory, queries=Q, decay=decay, by_step=True)
    assert_close(found.steps, back.steps)
    assert_close(found.samples, back.samples)
    rows = (way not in ("descent", "decay")) + (way != "descent" and decay == "samples")
    carried = len(X) + 2 + trajectory.steps + 2
    assert found.bytes == rows * carried * 8 * sum(p.numel() for p in model.parameters())


def test_steps_of_a_training_that_stops_early():
    watch = PathWatch(Q, by_step=True)
    watched_training(watch, stop_loss=1e9, **ADAM)
    found = watch.result()
    assert found.steps.shape[1] < 6
    assert_close(found.steps.sum(1), found.samples.sum(1))


def test_penalties_kinks_and_first_order():
    for act, mode in ((nn.ReLU, "exact"), (nn.GELU, "first-order")):
        watch = PathWatch(Q, decay="samples", by_layer=True, mode=mode)
        model, trajectory = watched_training(
            watch, act=act, penalties=[(0.05, ridge)], **WAYS["nesterov"]
        )
        back = path_kernel(
            model, X, Y, trajectory=trajectory, queries=Q, decay="samples", by_layer=True,
            penalties=[(0.05, ridge)], mode=mode,
        )  # fmt: skip
        assert_same(watch.result(), back)
        assert float(watch.result().penalty.abs().min()) > 0


class Doubled(nn.Module):
    """No chain that could be known as one."""

    def __init__(self):
        super().__init__()
        self.inner = dense(2, 3, 2, act=nn.Tanh)

    def forward(self, x):
        return 2 * self.inner(x)


def test_any_module():
    watch = PathWatch(Q[:1], by_layer=True)
    model, trajectory = watched_training(watch, model=Doubled(), momentum=0.9)
    back = path_kernel(model, X, Y, trajectory=trajectory, queries=Q[:1], by_layer=True)
    assert_same(watch.result(), back)


def own_gradients(model, rows):
    """Return the part of each sample in the gradient of a batch, one after the other."""
    found = torch.zeros(len(X), sum(p.numel() for p in model.parameters())).double()
    for k in rows.tolist():
        loss = (model(X[k]) - Y[k]).square().sum() / (len(rows) * 2)
        parts = torch.autograd.grad(loss, list(model.parameters()))
        found[k] = torch.cat([g.flatten() for g in parts])
    return found


def test_moments_are_the_sums_of_own_past_gradients():
    watch = PathWatch(Q)
    model = dense(2, 4, 3, 2, act=nn.GELU)
    run = fit(
        model, X, Y, optimizer="adam", batch=4, epochs=2, record=1, progress=False, watch=watch
    )
    way = run.trajectory
    expected = torch.zeros(len(X), sum(p.numel() for p in model.parameters())).double()
    for step in range(way.steps):
        model.load_state_dict(way.at(step))
        age = way.steps - 1 - step
        expected += 0.1 * 0.9**age * own_gradients(model, way.rows(step))
    moments = watch._run._sample_moments._moments
    assert_close(moments[: len(X)], expected)
    state = way.optimizer_state(way.steps)
    whole = torch.cat([state[k]["exp_avg"].flatten() for k in sorted(state)])
    assert_close(moments.sum(0), whole)


def test_watching_changes_nothing():
    one, two = (watched_training(watch, **WAYS["adamw"])[0] for watch in (PathWatch(Q), None))
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)


def test_small_chunks_and_blocks_give_the_same(monkeypatch):
    whole = PathWatch(Q, decay="samples", by_layer=True)
    watched_training(whole, **WAYS["adamw"])
    monkeypatch.setattr(optimizer_state, "CHUNK", 1)
    least = 2 * 11 * 8 * 35 + (2 + 3) * 8 * 35
    parts = PathWatch(Q, decay="samples", by_layer=True, memory=least)
    watched_training(parts, **WAYS["adamw"])
    assert len(parts._run._blocks) == 3
    assert_same(parts.result(), whole.result())


def test_moments_go_to_disk_if_memory_is_short(tmp_path, monkeypatch):
    monkeypatch.setattr(optimizer_state, "CHUNK", 1)
    inside, work = 11 * 8 * 35, (2 + 3) * 8 * 35
    text = (
        rf"take.* {inside:,} bytes for moments of 9 samples .* at least {inside + work:,}, or pass"
    )
    with pytest.raises(BudgetError, match=text):
        watched_training(PathWatch(Q, memory=inside + work - 1), **ADAM)
    plain = PathWatch(Q, by_layer=True)
    watched_training(plain, **ADAM)
    stored = PathWatch(Q, by_layer=True, memory=inside + work - 1, disk=tmp_path)
    watched_training(stored, **ADAM)
    assert_same(stored.result(), plain.result())
    assert stored.result().disk == stored.result().bytes == inside
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BudgetError, match=rf"raise memory to at least {work:,}\."):
        watched_training(PathWatch(Q, memory=work - 1, disk=tmp_path), **ADAM)
    usage = namedtuple("usage", "free")(inside - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(BudgetError, match=rf"take {inside:,} bytes on disk, found {inside - 1:,}"):
        watched_training(PathWatch(Q, memory=work, disk=tmp_path), **ADAM)


def test_what_cannot_be_watched_is_refused():
    watch = PathWatch(Q)
    with pytest.raises(ValueError, match="has a result after a training, found none"):
        watch.result()
    watched_training(watch)
    with pytest.raises(ValueError, match="watches one training, found a second"):
        watched_training(watch)
    with pytest.raises(UnsupportedModelError, match="supports sgd, adam and adamw"):
        fit(dense(2, 3, 2), X, Y, optimizer=lambda p: torch.optim.Adagrad(p), watch=PathWatch(Q))
    normed = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    with pytest.raises(UnsupportedModelError, match="each sample acts for itself"):
        watched_training(PathWatch(Q), model=normed)
