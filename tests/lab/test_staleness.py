"""Records made under other claims are named."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inscape.lab import Store, catalogue, plan, run, stale_records
from inscape.lab.encoding import cell_key
from inscape.lab.staleness import difference, other_code, rewrites


@pytest.fixture
def shelf(toy, monkeypatch) -> Path:
    """Return the toy as a paper of ours, ``toys/table-1`` and ``toys/figure-1``."""
    monkeypatch.setattr(catalogue, "PAPERS", toy.folder.parent)
    monkeypatch.setattr(catalogue, "_import_ours", catalogue._import_file)
    (toy.folder / "command.py").unlink()
    return toy.folder


@pytest.fixture
def store(shelf, toy, tmp_path) -> Store:
    made = Store(tmp_path / "results")
    run(plan("toys/table-1", scale="smoke", seeds=1, store=made), store=made)
    toy.forget()
    return made


def test_under_the_same_claims_nothing_is_stale(store):
    assert stale_records(store) == []


def test_many_claims_are_counted(store, toy):
    (record, *_) = store.records("toys/table-1", "smoke")
    today = {**record.claims, **{f"new-{i}": "x" for i in range(7)}}
    assert difference(record, today) == (
        "claim new-0, new-1, new-2, new-3, new-4 and 2 more added after the run"
    )


def test_a_changed_claim_is_named(store, toy):
    toy.edit(("the sum is one", "the sum is about one"))
    result = stale_records(store)
    assert len(result) == 2
    assert {item.experiment for item in result} == {"toys/table-1"}
    assert {item.key for item in result} == {key for _, _, key in store.places()}
    assert result[0].scale == "smoke"
    assert result[0].reason == "claim one changed after the run"


def test_an_added_and_a_dropped_claim_are_named(store, toy):
    toy.edit(('name="up"', 'name="upwards"'))
    assert stale_records(store)[0].reason == (
        "claim upwards added after the run; claim up dropped after the run"
    )


def test_claims_of_a_figure_on_the_same_records_count(store, toy, shelf):
    path = shelf / "figure_1.py"
    path.write_text(path.read_text().replace("it falls", "it falls off"))
    toy.forget()
    assert stale_records(store)[0].reason == "claim figure-1/down changed after the run"


def test_records_of_unknown_experiments_are_named(store, shelf):
    record = store.records("toys/table-1", "smoke")[0]
    key = cell_key("gone/table-9", record.settings, record.version, record.data)
    store.write(replace(record, experiment="gone/table-9", key=key))
    (found,) = stale_records(store)
    assert (found.experiment, found.key) == ("gone/table-9", key)
    assert found.reason == "no experiment is called gone/table-9"


def test_records_of_ones_own_files_are_left_out(store, toy, shelf):
    elsewhere = shelf.parent / "elsewhere" / "mine"
    shutil.copytree(shelf, elsewhere)
    run(plan(str(elsewhere / "table_1.py"), scale="smoke", seeds=1, store=store), store=store)
    assert len({name for name, _, _ in store.places()}) == 2
    assert stale_records(store) == []
    assert str(elsewhere) in sys.path


def test_code_counts_as_other_unless_a_rewrite_is_proven(store):
    (record, *_) = store.records("toys/table-1", "smoke")
    made = replace(record, provenance={**record.provenance, "code": "a"})
    assert other_code(made, "a", {}) == ""
    assert other_code(made, "b", {}) == "made by other code than today's"
    assert other_code(made, "c", {"a": "b", "b": "c"}) == ""
    assert other_code(made, "d", {"a": "b", "b": "a"}) == "made by other code than today's"
    older = {name: part for name, part in record.provenance.items() if name != "code"}
    assert other_code(replace(record, provenance=older), "b", {}) == ""


def test_proven_rewrites_are_read_from_beside_the_records(store):
    assert rewrites(store) == {}
    rows = '[{"experiment": "toys/table-1", "before": "a", "after": "b", "cells": 1}]'
    (store.root / "rewrites.json").write_text(rows)
    assert rewrites(store) == {"a": "b"}


def test_a_claim_that_says_it_was_written_later_makes_no_record_stale(store):
    (record, *_) = store.records("toys/table-1", "smoke")
    today = {**record.claims, "later": "x", "secretly": "y"}
    assert difference(record, today, frozenset({"later"})) == "claim secretly added after the run"
    changed = {**record.claims, "up": "another text"}
    assert difference(record, changed, frozenset({"up"})) == "claim up changed after the run"
