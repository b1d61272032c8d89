"""``inscape list`` and ``inscape show`` tell the truth about what is there."""

import ast
import inspect
import json

import pytest

from inscape import index
from inscape._core import instruments
from inscape.data import catalogue


def test_list_names_every_registered_instrument(run):
    done = run("list")
    assert done.exit_code == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "smoothness: How rough is it?"
    for name, instrument in instruments().items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert line.split()[1:3] == [instrument.cost, instrument.reads]
        assert line.endswith(instrument.title.replace("``", ""))


def test_list_as_json(run):
    found = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
    registered = instruments()
    assert set(found) == set(registered)
    for name, entry in found.items():
        assert entry["family"] == registered[name].family
        assert entry["cites"] == registered[name].cites
        assert entry["question"].endswith("?")


def test_list_of_one_family(run):
    assert run("list", "smoothness").stdout == run("list").stdout


def test_list_of_an_unknown_family(run):
    done = run("list", "smothness")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == ("inscape: no family is called 'smothness': did you mean smoothness?\n")


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
    assert done.stderr.startswith("inscape: nothing is called 'zzz': choose from gradient_norm, ")
