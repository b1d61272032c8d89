"""The built-in example is learned, in seconds, to the same weights every time."""

import json
from math import fsum

import pytest
import torch

from inscape.loaders import open_data
from inscape.report.look.example import example


def test_the_same_weights_every_time():
    data = open_data("digits", limit=100)
    state = torch.random.get_rng_state()
    (one, _), (two, _) = (example(data, quiet=True) for _ in range(2))
    torch.testing.assert_close(one.model.state_dict(), two.model.state_dict(), rtol=0, atol=0)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert one.source == "built-in example: ReLU network 64-64-10 trained on digits"
    assert "40 epochs of Adam at learning rate 0.001, batches of 64, seed 0" in one.notes[0]


#: A look whose minute is six seconds of this processor, and not longer on a loaded machine.
QUICKLY = """
import time
seconds = time.process_time
time.monotonic = time.perf_counter = time.process_time = lambda: 10 * seconds()
from inscape.cli import main
main()
"""


def test_look_without_options(process, tmp_path):
    done = process("look", "--json", python=("-c", QUICKLY))
    assert done.returncode == 0, done.stderr
    page = tmp_path / "reports" / "digits.html"
    assert list(page.parent.iterdir()) == [page]
    assert 10_000 < page.stat().st_size < 2_000_000
    printed = json.loads(done.stdout)
    (test,) = [
        s for s in printed["scores"] if s["rows"] == "test examples" and "network" in s["who"]
    ]
    assert test["accuracy"] > 0.95
    assert {measure["name"] for measure in printed["measurements"]} >= {
        "gradient_norm",
        "gradient_path_length",
        "path_length",
        "weights_product",
    }
    result = printed["attribution"]
    assert len(result["explained"]) + len(result["left_out"]) == 4  # a slow machine explains fewer
    for one in result["explained"]:
        pushes = fsum(push["amount"] for push in (*one["up"], *one["down"]))
        rest = fsum([one["others"]["up"], one["others"]["down"], *one["rest"].values()])
        assert one["initial"] + pushes + rest == pytest.approx(one["final"], abs=1e-9)
        assert one["final"] == pytest.approx(one["prediction"]["value"], abs=1e-4)
        assert abs(one["rest"]["residual"]) < 1e-10
    assert "explaining: " in done.stderr
    assert "no --model given: training the built-in example" in done.stderr
    assert "repeat: inscape look --json" in done.stderr
