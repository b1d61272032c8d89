"""Rewritten code is proven by cells that give their records again."""

import json
from dataclasses import replace

import pytest

import fake_paper
from inscape.lab import catalogue
from inscape.lab.cell_code import cell_code_hash
from inscape.lab.rewrites import proof, repeated, unproven, write_proofs
from inscape.lab.staleness import made_by, other_code
from inscape.lab.staleness import rewrites as proven
from inscape.lab.store import Store

TABLE, FIGURE, COUNTING = fake_paper.IDS


@pytest.fixture
def store(tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    store = Store(tmp_path / "results")
    fake_paper.fill(store, TABLE, "laptop")
    return store


def made_with(store, code, **values):
    """Let all records say that other code made them, or nothing; and other numbers, if given."""
    for record in store.records(TABLE, "laptop"):
        said = {name: part for name, part in record.provenance.items() if name != "code"}
        said |= {"code": code} if code else {}
        store.write(replace(record, provenance=said, values={**record.values, **values}))


def test_records_of_todays_code_need_no_proof(store):
    made_with(store, cell_code_hash(catalogue.experiment(TABLE)))
    assert list(unproven(store)) == []
    assert write_proofs(store) == ([], [])
    assert not (store.root / "rewrites.json").exists()


@pytest.mark.parametrize("code", ["0123456789ab", ""])
def test_one_cell_proves_a_rewrite_and_older_records(store, code):
    made_with(store, code)
    today = cell_code_hash(catalogue.experiment(TABLE))
    assert write_proofs(store) == ([], [])
    (row,) = json.loads((store.root / "rewrites.json").read_text())
    assert (row["experiment"], row["before"], row["after"]) == (
        TABLE,
        code or "not recorded",
        today,
    )
    (cell,) = row["cells"]
    assert (cell["repetition"], cell["difference"]) == ("bit for bit", 0.0)
    assert list(unproven(store)) == []  # nothing is run twice
    (record, *_) = store.records(TABLE, "laptop")
    assert other_code(record, today, proven(store)) == ""
    assert other_code(record, "rewritten", proven(store)) == "made by other code than today's"


def test_numbers_that_moved_are_no_proof(store):
    made_with(store, "0123456789ab", sum=-5.0)
    (failed,), skipped = write_proofs(store)
    assert skipped == []
    assert not repeated(failed)
    assert failed["cells"][0]["where"] == "sum"
    assert not (store.root / "rewrites.json").exists()


def test_a_cell_that_takes_too_long_is_named(store):
    made_with(store, "")
    ((name, code, records),) = unproven(store)
    assert (name, code, {made_by(record) for record in records}) == (
        TABLE,
        "not recorded",
        {"not recorded"},
    )
    assert proof(name, code, records, longest=-1.0) is None
    assert write_proofs(store, longest=-1.0) == ([], [TABLE])


def test_a_failed_cell_is_no_proof():
    row = {"cells": [{"repetition": "failed", "difference": 0.0}]}
    assert not repeated(row)
