"""``inscape compare``: quick help, table and JSON, the page, and what is refused."""

import json

import numpy as np
import pytest
import torch

from inscape.models import mlp


@pytest.fixture
def folder(tmp_path):
    net = "from inscape.models import mlp\n\ndef make():\n    return mlp(3, 6, 2)\n"
    (tmp_path / "net.py").write_text(net)
    for k in (1, 2):
        torch.save(mlp(3, 6, 2, seed=k).state_dict(), tmp_path / f"e-{k}.pt")
    x = np.random.default_rng(0).normal(size=(50, 3)).astype("float32")
    np.savez(tmp_path / "data.npz", x=x, y=(x[:, 0] > 0).astype("int64"))
    return tmp_path


WORDS = ("compare", "e-1.pt", "e-2.pt", "--model", "net.py:make", "--data", "data.npz",
         "--budget", "300", "--only", "disagreement,layer_alignment,gradient_norm")  # fmt: skip


def test_table_and_page(run, folder):
    done = run(*WORDS)
    assert done.exit_code == 0, done.stderr
    assert "different classes to" in done.stdout
    assert "whatever leaves classes alone" in done.stdout
    assert "e-1 minus e-2" in done.stdout
    assert "How alike they are" in (folder / "reports" / "e-1-and-e-2-data.html").read_text()
    assert "repeat: inscape compare e-1.pt e-2.pt" in done.stderr


def test_json_without_a_page(run, folder):
    done = run(*WORDS, "--json", "--no-page", "--quiet", "--names", "before,after")
    report = json.loads(done.stdout)
    assert [model["name"] for model in report["models"]] == ["before", "after"]
    assert {row["instrument"] for row in report["pairs"]} == {"disagreement", "layer_alignment"}
    assert report["page"] is None
    assert not (folder / "reports").exists()


def test_dry_run_measures_nothing(run, folder):
    done = run(*WORDS, "--dry-run")
    assert "to measure" in done.stdout
    assert "comparing 2 networks on 50 examples of data" in done.stderr


def test_what_is_missing_is_said(run, folder):
    done = run("compare", "e-1.pt", "e-2.pt")
    assert done.exit_code == 2
    assert "--data must say what to measure the networks on" in done.stderr
    done = run("compare", "net.py:make", "--data", "data.npz")
    assert "needs at least two different networks, found 1" in done.stderr
