"""``inscape look`` with a recorded training: what made predictions, on screen and as JSON."""

import json
import re
from math import fsum
from pathlib import Path

import numpy as np
import pytest
import torch

from inscape.models import mlp
from inscape.report.look.recorded_training import RecordedTraining
from inscape.report.look.watch import BudgetWatch
from inscape.training import Trajectory, fit

NETS = """
from torch import nn


def good():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def wide():
    return nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 3))
"""

WORDS = ("look", "--model", "nets.py:good", "--data", "points.npz", "--trajectory", "run.npz")
ALONE = (*WORDS, "--only", "attribution", "--no-page")


@pytest.fixture(scope="module")
def way() -> tuple[torch.nn.Module, Trajectory]:
    model = mlp(4, 8, 3, seed=3)
    run = fit(
        model, torch.from_numpy(points()), torch.arange(30) % 3, loss="cross_entropy",
        optimizer="adam", lr=0.02, batch=10, epochs=4, record=5, progress=False,
    )  # fmt: skip
    assert run.trajectory is not None
    return model, run.trajectory


@pytest.fixture
def folder(run, way):
    """Return how to run a verb in a folder with a network, its data and its training."""
    model, trajectory = way
    Path("nets.py").write_text(NETS)
    np.savez("points.npz", x=points(), y=np.arange(30) % 3)
    np.savez("others.npz", x=points() + 1, y=np.arange(30) % 3)
    torch.save(model.state_dict(), "weights.pt")
    torch.save(mlp(4, 8, 3, seed=4).state_dict(), "start.pt")
    trajectory.save("run.npz")
    return run


def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


def test_weights_of_the_end_are_taken_and_predictions_split(folder, way):
    done = folder(*ALONE, "--explain", "4,11")
    assert done.exit_code == 0, done.stderr
    assert "model: took the weights after the last of the 12 updates of the trajectory" in (
        done.stderr
    )
    assert re.search(
        r"explaining: 2 predictions by 12 updates of Adam, batches of 10; \w+", done.stderr
    )
    lines = done.stdout.replace("\n    ", " ").splitlines()
    assert (
        "What made these predictions: 30 training examples in 12 updates of Adam, batches of 10."
        in (lines)
    )
    output = way[0](torch.from_numpy(points()))[4].detach()
    said = next(
        line for line in lines if line.startswith(f"example 4 says {int(output.argmax())} (")
    )
    whole, _, parts = said.replace("\N{MINUS SIGN}", "-").rpartition(" = ")
    assert float(whole.split()[-1]) == pytest.approx(float(output.max()), abs=1e-3)
    numbers = [float(n) for n in re.findall(r"(?:^| )([+-]?[\d.]+) b", parts)]
    assert len(numbers) == 8
    assert fsum(numbers) == pytest.approx(float(output.max()), abs=0.02)
    assert any(line.startswith("All parts add up to the outputs within ") for line in lines)


def test_json_has_the_numbers_of_the_screen(folder, way):
    done = folder(*ALONE, "--weights", "weights.pt", "--explain", "4", "--json")
    (one,) = json.loads(done.stdout)["attribution"]["explained"]
    pushes = [push["amount"] for push in (*one["up"], *one["down"])]
    rest = [one["initial"], *one["rest"].values()]
    total = fsum([*pushes, one["others"]["up"], one["others"]["down"], *rest])
    output = way[0](torch.from_numpy(points()))[4].detach()
    assert total == pytest.approx(float(output.max()), abs=1e-5)
    shown = folder(*ALONE, "--explain", "4").stdout
    assert all(f"by example {push['row']} ({push['label']})" in shown for push in one["up"][:3])


def test_page_is_written(folder):
    done = folder(*WORDS, "--only", "attribution", "--out", "a.html")
    assert done.exit_code == 0, done.stderr
    page = Path("a.html").read_text()
    assert "Which training examples made these predictions" in page
    assert "<span>--only</span> <span>attribution</span> <span>--explain</span>" in page


def test_without_a_trajectory_it_says_how_to_record_one(folder):
    done = folder(*ALONE[:5], "--only", "attribution", "--no-page")
    text = " ".join(done.stdout.split())
    assert "Of 30 examples, those with the most similar gradients:" in text
    assert "by cosine of gradients example " in text
    assert "Not attributed to training examples: there is no record of the training." in text
    assert "`run = inscape.training.fit(model, x, y, record=100)`" in text
    assert "by 30 neighbours (there is no record of the training)" in done.stderr


def test_dry_run_says_the_cost(folder):
    printed = json.loads(folder(*ALONE, "--dry-run", "--json").stdout)
    assert set(printed["seconds"]) == {"attribution"}
    assert 0 < printed["seconds"]["attribution"] <= printed["whole"]
    none = json.loads(folder(*ALONE, "--explain", "none", "--dry-run", "--json").stdout)
    assert none["seconds"] == {}


def test_what_does_not_fit_is_left_out_with_its_command(folder, monkeypatch):
    monkeypatch.setattr(RecordedTraining, "seconds", lambda self, asked: 10.0 * len(asked.queries))
    monkeypatch.setattr(BudgetWatch, "spent", 0.0)  # a busy machine would leave less
    done = folder(*ALONE, "--explain", "1,2,3", "--budget", 50)
    assert "left out for time: examples 3: inscape look --model nets.py:good" in done.stdout
    assert "--only attribution --explain 1,2,3 --budget 90" in " ".join(done.stdout.split())


BAD = {
    "missing file": (("--trajectory", "none.npz"), r"cannot find none\.npz: no such file"),
    "other file": (("--trajectory", "points.npz"), r"must be a trajectory saved by Inscape"),
    "other network": (("--model", "nets.py:wide"), r"that of another: '0\.weight' is 8x4 in"),
    "other weights": (("--weights", "start.pt"), r"must end at the weights of the model, found"),
    "other data": (("--data", "others.npz"), r"these very data, found one on other values"),
    "fewer data": (("--limit", "9"), r"points\.npz has \(9x4 in float32.*without --limit"),
    "other type": (("--dtype", "float64"), r"is 8x4 in float32 in it and 8x4 in float64 in"),
    "no row": (("--explain", "30"), r"explain must name measured examples, 0 to 29, found 30"),
    "no number": (("--explain", "1,x"), r"--explain must be indices of examples .* found '1,x'"),
}


@pytest.mark.parametrize(("words", "text"), BAD.values(), ids=list(BAD))
def test_what_cannot_be_is_said_in_one_line(folder, words, text):
    done = folder(*ALONE, *words)
    assert done.exit_code == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("inscape: ")
    assert re.search(text, line), line


def test_a_trajectory_is_of_a_model_of_the_users(run):
    done = run("look", "--trajectory", "run.npz")
    assert done.exit_code == 2
    assert "--trajectory describes a model of your own, found no --model" in done.stderr
    done = run("look", "--boolean", "27030:4", "--explain", "3")
    assert "--boolean looks at a function, found --explain too" in done.stderr
