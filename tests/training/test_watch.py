"""Measures during a training: the same numbers as by hand, and the same training as without."""

import csv

import pytest
import torch
from torch import nn

import inscape
from inscape.smoothness import gradient_norm
from inscape.training import watch
from recorded_loops import batches, data, with_everything


def train(model, optimizer, step=lambda: None, steps=6):
    x, y = data()
    torch.manual_seed(7)
    for rows in batches(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        step()


class Board:
    def __init__(self):
        self.scalars = []

    def add_scalar(self, name, value, step):
        self.scalars.append((name, value, step))


class Tracker:
    def __init__(self):
        self.logged = []

    def log(self, values, step):
        self.logged.append((values, step))


def test_the_training_is_the_same_and_measures_are_those_by_hand(tmp_path):
    x, _ = data()
    model, bare = with_everything().train(), with_everything().train()
    model[1].eval()
    bare[1].eval()
    train(bare, torch.optim.Adam(bare.parameters(), lr=0.01))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    board, tracker = Board(), Tracker()
    to = [tmp_path / "watch.csv", board, tracker]
    with inscape.watch(model, x[:6], every=4, optimizer=optimizer, to=to) as watched:
        train(model, optimizer)
    assert all(torch.equal(model.state_dict()[k], t) for k, t in bare.state_dict().items())
    assert [m.training for m in model.modules()] == [m.training for m in bare.modules()]
    assert [row["step"] for row in watched.rows] == [0, 4, 6]
    expected = gradient_norm(model.eval(), x[:6], points=16).summary().value
    assert watched.rows[-1]["gradient_norm"] == expected
    with (tmp_path / "watch.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [float(row["gradient_norm"]) for row in table] == [
        row["gradient_norm"] for row in watched.rows
    ]
    assert board.scalars[-2] == ("inscape/gradient_norm", expected, 6)
    assert tracker.logged[-1][1] == 6
    assert 0 < watched.share <= 1


def test_steps_can_be_counted_by_hand_and_the_cost_is_told(capfd, monkeypatch):
    monkeypatch.delenv("INSCAPE_QUIET", raising=False)
    x, _ = data()
    model = with_everything().train()
    with watch(model, x[:4], every=3, measures=["gradient_norm"]) as watched:
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), watched.step)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(" | ")[0] for line in lines[:-1]] == ["step 0", "step 3", "step 6"]
    assert lines[-1].startswith("watched 6 updates; measuring took")


def test_a_measure_that_fails_is_left_out_and_said(monkeypatch):
    x, _ = data()
    model = with_everything().train()
    with (
        pytest.warns(RuntimeWarning, match="watch leaves out total_variation from step 0 on"),
        watch(model, x[:4], measures=["gradient_norm", "total_variation"], to=Board()) as watched,
    ):
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), watched.step)
    assert "gradient_norm" in watched.rows[-1]


def test_what_cannot_be_watched_is_refused(tmp_path):
    x, _ = data()
    model = with_everything()
    with pytest.raises(ValueError, match="measures must be one of"):
        watch(model, x, measures=["smoothness"])
    with pytest.raises(ValueError, match=r"robustness needs labels, found none: pass watch\(model"):
        watch(model, x, measures=["robustness"])
    with pytest.raises(ValueError, match=r"to must be 'terminal', a path ending in .csv"):
        watch(model, x, to="loss.txt")


def test_tensorboard_gets_its_files(tmp_path):
    pytest.importorskip("tensorboard")
    x, _ = data()
    model = with_everything().train()
    with watch(model, x[:4], measures=["gradient_norm"], to=f"tensorboard:{tmp_path / 'board'}"):
        pass
    assert any((tmp_path / "board").iterdir())
