"""``inscape look --boolean``: text, JSON, page, and everything that can be asked wrongly."""

import json
from pathlib import Path

import pytest

from inscape.report.boolean import summary


@pytest.fixture
def quick(monkeypatch):
    """Train one small size only."""
    monkeypatch.setattr(summary, "sizes", lambda n, swaps: [(2, 1)])


def test_text_and_page(run, quick):
    done = run("look", "--boolean", "6:2", "--threads", 1)
    assert done.exit_code == 0, done.stderr
    assert "function 6 of 2 inputs changes 2 times" in done.stdout
    for word in ("swaps", "theorem 3.3.2", "leaky ReLU", "95% interval"):
        assert word in done.stdout
    assert "report: reports/boolean-6-2.html" in done.stderr
    assert "repeat: inscape look --boolean 6:2 --threads 1" in done.stderr
    assert "<!DOCTYPE html>" in Path("reports/boolean-6-2.html").read_text()


def test_json(run, quick):
    done = run("look", "--boolean", "x1 ^ x2", "--json", "--no-page", "--quiet", "--threads", 1)
    assert done.exit_code == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["function"] == {"asked": "x1 ^ x2", "inputs": 2, "number": 6, "table": "0110"}
    assert printed["page"] is None
    assert printed["smallest"]["size"] == "2-2-1"
    assert len(printed["training"]) == 2
    assert not Path("reports").exists()


def test_dry_run_trains_nothing(run):
    done = run("look", "--boolean", "27030:4", "--dry-run")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "looking: function 27030 of 4 inputs" in done.stderr
    assert not Path("reports").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["27030"], r"--boolean must be NUMBER:INPUTS or a formula of x1, x2, ..., found '27030'"),
        ([""], "must be NUMBER:INPUTS or a formula of x1, x2, ..., found ''"),
        (["99:2"], "a function of 2 inputs must have a number from 0 to"),
        (["1:0"], "n must be from 1 to"),
        (["1:11"], "a function must have at most 10 inputs to be looked at, found 11"),
        (["x1 +"], "found"),
        (["6:2", "--model", "a.py:b"], "found --model too, which describes a model"),
        (["6:2", "--data", "mnist"], "found --data too"),
        (["6:2", "--seed", "-1"], "--seed must be an integer"),
        (["6:2", "--budget", "0"], "--budget must be a positive number"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(run, words, text):
    done = run("look", "--boolean", *words)
    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    last = done.stderr.rstrip("\n").splitlines()[-1]
    assert last.startswith("inscape: ")
    assert text in last
    assert not Path("reports").exists()
