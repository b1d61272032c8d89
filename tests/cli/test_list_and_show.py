"""``inscape list`` and ``inscape show`` tell the truth about what is there."""

import ast
import inspect
import json

import pytest

import fake_paper
from inscape import index
from inscape._core import instruments
from inscape.data import catalogue
from inscape.lab.catalogue import experiments
from inscape.report.paper.description import _axis


def test_list_names_every_registered_instrument(run):
    done = run("list")
    assert done.exit_code == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    titles = [line for line in lines if line.endswith("?") and not line.startswith(" ")]
    families = list(dict.fromkeys(value.family for value in instruments().values()))
    assert [title.partition(":")[0] for title in titles[: len(families)]] == families
    assert titles[0] == lines[0]
    assert "regions: Of which linear regions is it made?" in titles
    for name, instrument in instruments().items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert line.split()[1:3] == [instrument.cost, instrument.reads]
        assert line.endswith(instrument.title.replace("``", ""))


def test_list_as_json(run):
    listed = json.loads(run("list", "--json").stdout)
    result = {entry["name"]: entry for entry in listed["instruments"]}
    registered = instruments()
    assert set(result) == set(registered)
    for name, entry in result.items():
        assert entry["family"] == registered[name].family
        assert entry["cites"] == registered[name].cites
        assert entry["question"].endswith("?")
    assert [run["id"] for run in listed["experiments"]] == [run.id for run in experiments()]


def test_list_of_one_family(run):
    done = run("list", "smoothness")
    assert done.stdout.startswith("smoothness: How rough is it?\n")
    for entry in index.entries():
        assert (entry.name in done.stdout) == (entry.family == "smoothness")
    assert "reproduce" not in done.stdout


def test_list_of_an_unknown_family_or_paper(run):
    done = run("list", "smothness")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "inscape: no family or paper is called 'smothness': did you mean smoothness or "
        "robustness?\n"
    )


def test_list_names_every_experiment(run, tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    for words in (["list"], ["list", "fake"]):
        lines = run(*words).stdout.splitlines()
        at = lines.index("fake: experiments, for inscape reproduce")
        assert [line.split()[0] for line in lines[at + 3 :]] == [
            "fake/counting",
            "fake/figure-2",
            "fake/table-1.1",
        ]
        assert lines[-1].endswith("Sums of small numbers, counted twice.")
    assert "gradient_norm" not in run("list", "fake").stdout
    listed = json.loads(run("list", "fake", "--json").stdout)["experiments"][1]
    assert (listed["id"], listed["same_as"]) == ("fake/figure-2", "table-1.1")


def test_show_an_experiment(run, tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    done = run("show", "fake/table-1.1")
    assert done.exit_code == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[:4] == ["fake/table-1.1", "==============", "", "Sums of <small> numbers"]
    assert "laptop 9 cells, about 18 s on one core: 3 size, 3 seed and shift 0" in lines
    assert "departures_at_laptop Three seeds instead of four." in lines
    assert "claim mean-1 The mean at size 1 is 1.12. (published 1.12)" in lines
    assert "claim grows Sums grow." in lines
    assert not any(line.startswith("claim paper-3") for line in lines)
    assert "more_claims 1 about other scales: --scale paper" in lines
    assert "errata F1" in lines
    assert "inscape reproduce fake/table-1.1 --scale laptop" in lines
    record = json.loads(run("show", "fake/figure-2", "--json").stdout)
    assert record["records_of"] == "table-1.1"
    assert record["paper"].startswith("12 cells, ")
    record = json.loads(run("show", "fake/table-1.1", "--scale", "paper", "--json").stdout)
    assert record["claim paper-3"] == "The mean at size 3 is 3.15. (published 3.15)"
    assert record["more_claims"] == ""
    record = json.loads(run("show", "fake/counting", "--json").stdout)
    assert record["smoke"] == "1 cell, about 1.0 s on one core: seed 0"


def test_settings_with_one_value_are_shown():
    assert _axis("lr", [0.01]) == "lr 0.01"
    assert _axis("n", [None]) == "n none"
    assert _axis("seed", range(3)) == "3 seed"
    assert _axis("measures", [["a", "b"]]) == "measures (a, b)"
    assert _axis("measures", [["path_length"] * 20]).endswith("path_length, ...)")


def test_show_a_paper(run, tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    record = json.loads(run("show", "fake", "--json").stdout)
    assert record["doc"] == "On <small> & large numbers"
    assert record["authors"] == ["Ada Adder", "Carl Counter"]
    assert record["experiments"] == ["counting", "figure-2", "table-1.1"]
    assert run("show", "fake").stdout.endswith("    inscape reproduce fake --dry-run\n")


@pytest.mark.parametrize("entry", index.entries(), ids=lambda entry: entry.name)
def test_show_an_instrument(run, entry):
    done = run("show", entry.name)
    assert done.exit_code == 0
    function = instruments()[entry.name].function
    assert inspect.getdoc(function) in done.stdout
    for name, parameter in inspect.signature(function).parameters.items():
        assert name in done.stdout
        if isinstance(parameter.default, bool):
            assert f"{name}: bool={parameter.default}" in done.stdout
    assert entry.cites in done.stdout
    assert f"inscape look --only {entry.name}\n" in done.stdout


@pytest.mark.parametrize("entry", index.entries(), ids=lambda entry: entry.name)
def test_the_shown_call_fits_the_signature(run, entry):
    record = json.loads(run("show", entry.name, "--json").stdout)
    imports, call = ast.parse(record["python"]).body
    assert ast.unparse(imports) == f"from inscape.{entry.family} import {entry.name}"
    arguments = call.value.args
    inspect.signature(instruments()[entry.name].function).bind(*arguments)


@pytest.mark.parametrize("name", ["path_length", "path-length", "PATH_LENGTH"])
def test_spelling_of_names_is_forgiven(run, name):
    assert run("show", name).stdout.startswith("path_length\n===========\n")


@pytest.mark.parametrize("name", catalogue.names())
def test_show_a_data_set(run, name):
    from inscape.data.catalogue import parse

    done = run("show", name, "--json")
    assert done.exit_code == 0
    record = json.loads(done.stdout)
    spec = record["command_line"].split("--data ")[1]
    entry, settings = parse(spec)
    assert entry.name == name
    assert set(settings) == set(entry.needs)
    assert repr(spec).strip("'") in record["python"]
    assert catalogue.describe()[name] in run("show", name).stdout


def test_show_an_unknown_name(run):
    done = run("show", "path_lenght")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("inscape: nothing is called 'path_lenght': did you mean path_l")


def test_show_a_name_that_is_near_to_nothing(run):
    done = run("show", "zzz")
    assert done.stderr.startswith(
        "inscape: nothing is called 'zzz': choose from boolean_function, "
    )
