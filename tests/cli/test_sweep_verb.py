"""``inscape sweep``: quick help, tables and JSON, files, exit codes, kills and clusters."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from inscape.lab.store import Store
from inscape.models import mlp

NET = '''"""A factory that takes its time."""

import os
import time

from torch import nn


class Slow(nn.Sequential):
    def forward(self, x):
        time.sleep(float(os.environ.get("NET_SLEEP", "0")))
        return super().forward(x)


def make():
    return Slow(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2))
'''
ONLY = "gradient_norm,path_length,weights_product"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Return a folder with a factory, three checkpoints, data and a column."""
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "ckpts").mkdir()
    for k in (1, 2, 10):
        torch.save(mlp(3, 6, 2, seed=k).state_dict(), tmp_path / "ckpts" / f"e-{k}.pt")
    x = np.random.default_rng(0).normal(size=(50, 3)).astype("float32")
    np.savez(tmp_path / "data.npz", x=x, y=(x[:, 0] > 0).astype("int64"))
    (tmp_path / "acc.csv").write_text("model,acc\ne-1,0.5\ne-2,0.7\ne-10,0.9\n")
    return tmp_path


WORDS = ("sweep", "ckpts", "--model", "net.py:make", "--data", "data.npz", "--only", ONLY)


def table(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "sweep.csv").read_text().splitlines()))


def test_help_loads_nothing_heavy(process):
    code = (
        "import sys, inscape.cli\n"
        "try:\n    inscape.cli.app(['sweep', '--help'])\n"
        "except SystemExit:\n    print(sorted({'torch', 'numpy', 'pandas'} & set(sys.modules)))\n"
    )
    done = process(python=("-c", code))
    assert "[]" in done.stdout
    assert "--compare" in done.stdout


def test_json_holds_the_numbers_and_stdout_nothing_else(run, folder):
    done = run(*WORDS, "--executor", "serial", "--with", "acc.csv", "--json")
    printed = json.loads(done.stdout)
    assert done.exit_code == 0
    assert [model["name"] for model in printed["models"]] == ["e-1", "e-2", "e-10"]
    assert {row["instrument"] for row in printed["measurements"]} == {
        *ONLY.split(","),
        "accuracy",
        "loss",
    }
    assert {row["column"] for row in printed["correlations"]} == {"acc", "accuracy"}
    out = folder / "sweeps" / "data"
    assert {path.name for path in out.glob("*.*")} >= {
        *("sweep.html", "sweep.csv", "sweep.tex", "sweep.json"),
        *("correlations.csv", "differences.csv"),
    }
    rows = table(out)
    assert [float(r["value"]) for r in rows] == [r["value"] for r in printed["measurements"]]
    again = run(*WORDS, "--executor", "serial", "--compare", "e-10", "e-1")
    assert "12 cells, 0 to measure: all records are there" in again.stderr
    assert "e-10 minus e-1" in again.stdout
    assert "repeat: inscape sweep ckpts --model net.py:make" in again.stderr


def test_a_dry_run_forecasts_and_writes_nothing(run, folder):
    done = run(*WORDS, "--dry-run", "--budget", "60")
    assert done.exit_code == 0
    assert "gradient_norm" in done.stdout
    assert (
        "3 models x 3 instruments on 50 examples of data.npz: 12 cells, 12 to measure, about"
        in (done.stderr)
    )
    assert not (folder / "sweeps").exists()


def test_a_model_that_fails_has_its_row_and_the_exit_code_is_1(run, folder):
    torch.save(mlp(4, 6, 2).state_dict(), folder / "ckpts" / "other.pt")
    done = run(*WORDS, "--executor", "serial")
    assert done.exit_code == 1
    assert "1 of 4 models could not be opened or measured: other." in done.stdout
    rows = table(folder / "sweeps" / "data")
    (row,) = [row for row in rows if row["model"] == "other"]
    assert row["status"].startswith("failed: UnsupportedModelError: the weights in")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sweep", "ckpts"), "--data must say what to measure the models on, found none"),
        ((*WORDS[:-1], "smoothnes"), "called 'smoothnes': did you mean smoothness"),
        ((*WORDS, "--budget", "-1"), "budget must be a positive number of seconds, found -1"),
        ((*WORDS, "--with", "gone.csv"), "found gone.csv, which cannot be read"),
        ((*WORDS, "--jobs", "0"), "jobs must be at least 1, found 0"),
        ((*WORDS, "--limit", "0"), "--limit must be at least 1, found 0"),
        (("sweep", "nothing*", *WORDS[2:]), "no file matches nothing*: check the pattern."),
        ((*WORDS[:5], "gone.npz"), "gone.npz"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(run, folder, words, said):
    done = run(*words)
    assert done.exit_code == 2
    assert said in done.stderr.splitlines()[-1]


def values(root: Path) -> dict[str, object]:
    """Return what every record holds but how it was made."""
    return {
        record.key: (record.settings["instrument"], repr(record.values))
        for record in Store(root).records("sweep/cells", "laptop")
    }


def start(folder: Path, out: str, *more: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "inscape", *WORDS, "--out", out, "--json", *more]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_sweep_that_is_killed_goes_on_where_it_was(run, folder):
    calm = run(*WORDS, "--out", "calm", "--executor", "serial", "--json")
    rough = folder / "rough" / "sweep" / "cells" / "laptop"
    process = start(folder, "rough", "--executor", "joblib", "--jobs", "2", NET_SLEEP="0.05")
    until = time.monotonic() + 240
    while len(list(rough.glob("*.json"))) < 4 and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = {path.name: path.read_bytes() for path in rough.glob("*.json")}
    assert 4 <= len(before) < 12
    again = start(folder, "rough", "--executor", "joblib", "--jobs", "2")
    out, error = again.communicate(timeout=300)
    assert again.returncode == 0, error
    printed = json.loads(out)
    assert printed["computed"] == 12 - len(before)
    after = {path.name: path.read_bytes() for path in rough.glob("*.json")}
    assert len(after) == 12
    assert {name: after[name] for name in before} == before  # nothing lost, nothing measured twice
    assert values(folder / "rough") == values(folder / "calm")
    assert [row["value"] for row in printed["measurements"]] == [
        row["value"] for row in json.loads(calm.stdout)["measurements"]
    ]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
def test_ray_gives_the_same_numbers(run, folder):
    on_ray = start(folder, "ray", "--executor", "ray", "--jobs", "2")
    assert run(*WORDS, "--out", "calm", "--executor", "serial").exit_code == 0
    _, error = on_ray.communicate(timeout=300)
    assert on_ray.returncode == 0, error
    assert values(folder / "ray") == values(folder / "calm")
    records = Store(folder / "ray").records("sweep/cells", "laptop")
    assert {record.provenance["executor"] for record in records} == {"ray"}
