"""Cells rerun and compared with their records, and what made a record."""

import ast
import math
import re

import numpy as np
import pytest

import fake_paper
from inscape.lab import catalogue, provenance
from inscape.lab.cell_code import cell_code_hash, normalised
from inscape.lab.experiment import Experiment
from inscape.lab.store import Store
from inscape.lab.verification import compared, relative_difference, repetition, rerun, verify

TABLE, FIGURE, COUNTING = fake_paper.IDS


@pytest.fixture
def store(tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    store = Store(tmp_path / "results")
    fake_paper.fill(store, TABLE, "laptop")
    return store


def test_differences_are_relative_to_the_largest_number():
    assert relative_difference(2.0, 2.0) == 0
    assert relative_difference([1.0, 100.0], [1.1, 100.0]) == pytest.approx(0.001)
    assert relative_difference("a", "a") == 0
    assert relative_difference([math.nan, 1.0], [math.nan, 1.0]) == 0
    for before, now in (("a", "b"), ([1.0], [1.0, 2.0]), (math.nan, 1.0), (1.0, None)):
        assert relative_difference(before, now) == math.inf


def test_what_a_difference_counts_as():
    assert [repetition(off) for off in (0.0, 1e-12, 1e-4, 1e-3, 0.01, math.inf)] == [
        "bit for bit",
        "to rounding",
        "within 1e-3",
        "within 1e-3",
        "not repeated",
        "not repeated",
    ]


def test_the_value_that_differs_most_is_named(store):
    (record, *_) = store.records(TABLE, "laptop")
    check = compared(record, {**record.values, "sum": record.values["sum"] * 1.01})
    assert (check.repetition, check.where) == ("not repeated", "sum")
    assert check.difference == pytest.approx(0.01)
    assert compared(record, record.values).repetition == "bit for bit"
    assert compared(record, {"sum": record.values["sum"], "more": 1.0}).where == "more"


def test_random_cells_are_rerun_and_nothing_is_written(store):
    before = {path: path.read_bytes() for path in store.root.rglob("*.json")}
    checks = list(verify([TABLE, FIGURE], store, 4))
    assert [check.repetition for check in checks] == ["bit for bit"] * 4
    assert len({check.record.key for check in checks}) == 4
    assert {path: path.read_bytes() for path in store.root.rglob("*.json")} == before


def test_a_cell_that_fails_says_why(store):
    fake_paper.fill(store, COUNTING, "laptop")
    (record, *_) = store.records(COUNTING, "laptop")
    broken = type(record)(**{**vars(record), "settings": {"seed": 99}})
    check = rerun(COUNTING, broken)
    assert check.repetition == "failed"
    assert "seed 99 does not count" in check.problem


def test_new_records_say_what_made_them(store):
    check = rerun(TABLE, store.records(TABLE, "laptop")[0])
    assert check.repetition == "bit for bit"
    assert re.fullmatch(r"[0-9a-f]{12}\+?|not recorded", provenance.commit())
    assert provenance.processor()
    assert provenance.linear_algebra()


CELL = """
def cell(width, seed):
    'Train.'
    net = build(width)
    return {'a': net(seed)}
"""


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (CELL.replace("Train.", "Fit one network."), True),
        (CELL.replace("net", "model"), True),
        (CELL.replace("def cell", "def one"), True),
        (CELL.replace("width, seed", "width: int, seed: int"), True),
        (CELL.replace("net(seed)", "net(seed + 1)"), False),
        (CELL.replace("build(width)", "construct(width)"), False),
        (CELL.replace("'a'", "'b'"), False),
    ],
)
def test_the_hash_of_code_knows_no_names_of_its_own(text, same):
    assert (normalised(ast.parse(text)) == normalised(ast.parse(CELL))) == same


def test_every_cell_has_a_hash_of_its_own():
    ids = ("volhejn/figure-2", "klindt/figure-6", "klindt/figure-11", "courtois/theorem-1")
    hashes = [cell_code_hash(catalogue.experiment(id)) for id in ids]
    assert len(set(hashes)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{12}", text) for text in hashes)
    assert cell_code_hash(Experiment(shows="Figure 2", title="t", same_as="table-1")) == ""


def test_arrays_are_compared_whole(store):
    (record, *_) = store.records(TABLE, "laptop")
    nested = type(record)(**{**vars(record), "values": {"a": {"b": np.arange(4.0)}}})
    check = compared(nested, {"a": {"b": np.arange(4.0) + 1e-12}})
    assert (check.repetition, check.where) == ("to rounding", "a/b")
