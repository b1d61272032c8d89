"""``inscape look`` on models and data of the user."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import inscape
from inscape._core.instrument import _REGISTER

NETS = """
import torch
from torch import nn


def good():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def double():
    return good().double()


def flat():
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)).eval()


def image():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 4), nn.ReLU(), nn.Linear(4, 1)).eval()
"""

MODEL = ("look", "--model", "nets.py:good", "--weights", "weights.pt", "--data", "points.npz")
QUICK = (*MODEL, "--only", "gradient_norm", "--only", "weights_product")


@pytest.fixture
def look(run):
    """Return a function that looks at a model of the working folder, which must succeed."""
    Path("nets.py").write_text(NETS)
    weights = model().state_dict()
    torch.save(weights, "weights.pt")
    save_file(weights, "weights.safetensors")
    np.savez("points.npz", x=points(), y=np.arange(30) % 3)

    def looks(*words: object):
        done = run(*words)
        assert done.exit_code == 0, done.stderr
        return done

    return looks


def model() -> torch.nn.Module:
    """Return the network of which the weights are."""
    return inscape.models.mlp(4, 8, 3, seed=3)


def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


def numbers(done) -> dict[str, float]:
    return {m["name"]: m["summary"]["value"] for m in json.loads(done.stdout)["measurements"]}


def test_says_what_it_does_and_where_the_report_is(look):
    done = look(*QUICK)
    lines = done.stderr.splitlines()
    assert "model: was in training mode: switched to eval" in lines
    assert any(line.startswith("data: x is 'x', y is 'y'") for line in lines)
    assert any(line.startswith("looking: 2 instruments on cpu in float32") for line in lines)
    page = Path("reports/nets-good-weights-points.html")
    assert lines[-2] == f"report: {page}"
    assert lines[-1].startswith(f"repeat: {shlex.join(['inscape', *QUICK])} --work threads=")
    assert ",batch=" in lines[-1]
    assert [page] == list(Path("reports").iterdir())
    assert "<!DOCTYPE html>" in page.read_text()


def test_the_terminal_shows_the_table_of_the_report(look):
    shown = look(*QUICK).stdout.splitlines()
    start = next(k for k, line in enumerate(shown) if line.startswith("instrument "))
    head, _, *rows = shown[start:]
    rows, others = rows[: rows.index("")], rows[rows.index("") + 1 :]
    assert others[0].startswith("linear model: not applicable: the model is not a two-layer ReLU")
    heads = ("instrument", "this network", "95% interval", "mark", "at initialisation", "direction")
    assert all(name in head for name in (*heads, "linear model", "lower bound"))
    page = next(Path("reports").iterdir()).read_text()
    assert {row.split()[0] for row in rows} == {"gradient_norm", "weights_product"}
    order = [page.index(f'<th scope="row"><a href="#{row.split()[0]}"') for row in rows]
    assert order == sorted(order)  # as on the page
    for cell in (cell for row in rows for cell in row.split()[1:] if cell not in ("-", "to")):
        assert cell in page


def test_the_numbers_are_those_of_python(look):
    words = ("--only", "path_length", "--json", "--no-page", "--seed", 5)
    result = numbers(look(*QUICK, *words))
    x, y = torch.from_numpy(points()), torch.arange(30) % 3
    again = inscape.look(model(), (x, y), only=list(result), seed=5, quiet=True)
    assert result == {m.name: m.summary.value for m in again.measurements}


def test_json_tells_everything(look):
    printed = json.loads(look(*QUICK, "--json").stdout)
    assert printed["command"] == shlex.join(
        ["inscape", *QUICK, "--json", "--work", printed["work"]]
    )
    assert printed["page"] == "reports/nets-good-weights-points.html"
    assert printed["model"]["parameters"] == sum(p.numel() for p in model().parameters())
    assert printed["model"]["notes"]
    assert printed["data"]["n"] == 30
    assert {score["loss_name"] for score in printed["scores"]} == {"cross_entropy"}
    assert printed["failed"] == []


def test_the_printed_command_repeats_it(look):
    words = (*MODEL, "--json", "--no-page", "--only", "path_length", "--seed", 4, "--limit", 9)
    first = look(*words)
    repeat = shlex.split(first.stderr.splitlines()[-1].removeprefix("repeat: inscape "))
    assert numbers(look(*repeat)) == numbers(first)
    assert numbers(look(*words, "--seed", 6)) != numbers(first)


@pytest.mark.parametrize(
    ("out", "page"),
    [
        ("a/b", "a/b/nets-good-weights-points.html"),
        ("mine.html", "mine.html"),
        (".", "nets-good-weights-points.html"),
    ],
)
def test_out(look, out, page):
    look(*QUICK, "--out", out)
    assert Path(page).is_file()
    assert not Path("reports").exists()


def test_no_page(look):
    done = look(*QUICK, "--no-page")
    assert "report:" not in done.stderr
    assert not Path("reports").exists()


def test_quiet(look):
    done = look(*QUICK, "--quiet")
    assert done.stderr == ""
    assert "gradient_norm" in done.stdout


def usual():
    """Return the names of what a look takes without being asked for it."""
    return {
        name
        for name, instrument in inscape.instruments().items()
        if instrument.by_default and instrument.reads not in ("trajectory", "pair")
    }


def test_dry_run_lists_what_a_look_takes(look):
    done = look(*MODEL, "--dry-run")
    listed = {line.split()[0] for line in done.stdout.splitlines()[2:]}
    assert listed == usual() | {"attribution"}


def test_dry_run_measures_nothing(look, monkeypatch):
    monkeypatch.setattr("inscape.report.look", None)
    done = look(*MODEL, "--dry-run")
    listed = {line.split()[0] for line in done.stdout.splitlines()[2:]}
    assert usual() <= listed
    assert "region_evolution" not in listed
    assert not Path("reports").exists()
    printed = json.loads(look(*QUICK, "--dry-run", "--json").stdout)
    assert set(printed["seconds"]) == {"gradient_norm", "weights_product"}
    assert 0 < sum(printed["seconds"].values()) <= printed["whole"] <= printed["budget"] == 60


def test_threads(look):
    before = torch.get_num_threads()
    try:
        done = look(*QUICK, "--threads", before + 1, "--json", "--no-page")
        assert torch.get_num_threads() == before + 1
        assert json.loads(done.stdout)["provenance"]["threads"] == before + 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("words", "dtype"),
    [
        (["nets.py:good"], "float32"),
        (["nets.py:double"], "float64"),
        (["nets.py:good", "--dtype", "float64"], "float64"),
    ],
    ids=str,
)
def test_precision_follows_the_model_or_the_option(look, words, dtype):
    only = ("--only", "gradient_norm", "--json", "--no-page")
    printed = json.loads(look("look", "--data", "points.npz", *only, "--model", *words).stdout)
    assert printed["provenance"]["dtype"] == printed["model"]["dtype"] == dtype


def test_double_data_stay_double_for_a_double_model(look):
    x = torch.rand(30, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    np.savez("double.npz", x=x)
    torch.save(model().double().state_dict(), "double.pt")
    words = ("look", "--model", "nets.py:double", "--weights", "double.pt", "--data", "double.npz")
    result = numbers(look(*words, "--only", "path_length", "--json", "--no-page"))
    expected = inscape.smoothness.path_length(model().double(), x).summary().value
    assert result == {"path_length": pytest.approx(expected, rel=1e-13)}


def test_other_ways_in(look):
    expected = numbers(look(*QUICK, "--json"))
    words = ("look", "--model", "nets.py:good", "--json", *QUICK[7:])
    safe = ("--weights", "weights.safetensors")
    assert numbers(look(*words, *safe, "--data", "points.npz")) == expected
    table = np.column_stack([points(), np.arange(30) % 3])
    np.savetxt("points.csv", table, delimiter=",", header="a,b,c,d,kind", comments="")
    done = look(*words, *safe, "--data", "points.csv", "--target", "kind")
    assert numbers(done) == pytest.approx(expected)


def test_a_named_data_set(look):
    words = ("look", "--model", "nets.py:flat", "--data", "disc:n=64", "--only", "path_length")
    printed = json.loads(look(*words, "--json").stdout)
    assert (printed["data"]["name"], printed["data"]["task"]) == ("disc", "regression")
    references = {reference["name"] for reference in printed["measurements"][0]["references"]}
    assert references == {"initialisation", "linear", "bound"}
    assert Path("reports/nets-flat-disc-n-64.html").is_file()


@pytest.mark.data
def test_real_mnist(look, data_dir):
    words = ("look", "--model", "nets.py:image", "--data", "mnist-binary:4-9", "--limit", "50")
    shape = ("--input-shape", "1x28x28", "--data-dir", data_dir, "--only", "gradient_norm")
    printed = json.loads(look(*words, *shape, "--json").stdout)
    assert printed["data"]["shape"] == [1, 28, 28]
    assert any("kept 50 of" in note for note in printed["data"]["notes"])


def test_a_failing_instrument_is_said_and_exits_with_one(look, run, monkeypatch):
    whole = inscape.instruments()["weights_product"]
    broken = replace(whole, function=lambda model, x: 1 / 0)
    monkeypatch.setitem(_REGISTER, "weights_product", broken)
    done = run(*QUICK)
    assert done.exit_code == 1
    assert "weights_product: failed: ZeroDivisionError" in done.stdout
    assert list(Path("reports").iterdir())


def test_what_a_model_prints_is_no_result(look, tmp_path):
    (tmp_path / "loud.py").write_text(
        "import torch\n"
        "class Loud(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        print('called')\n"
        "        return super().forward(x)\n"
        "def make():\n"
        "    return Loud(4, 3)\n"
    )
    words = ("look", "--model", "loud.py:make", "--data", "points.npz", "--json", "--no-page")
    done = look(*words, "--only", "gradient_norm")
    assert json.loads(done.stdout)["measurements"]
    assert "called" in done.stderr
