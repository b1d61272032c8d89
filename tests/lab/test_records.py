"""Records can be filtered, grouped and read; what is ambiguous is refused."""

import pytest

from inscape.lab.records import Record, Records, in_view, read


def record(values: dict | None = None, **settings) -> Record:
    empty = {"experiment": "a/b", "key": "", "data": "none", "claims": {}, "provenance": {}}
    return Record(scale="laptop", settings=settings, values=values or {}, **empty)


RUNS = Records(
    record({"loss": 10.0 * width + seed}, kind=kind, width=width, seed=seed)
    for kind in ("network", "process")
    for width in (4, 2)
    for seed in (1, 0)
)


def test_records_are_filtered_by_settings_and_by_a_function():
    kept = RUNS.where(kind="network", width=2)
    assert [r.settings["seed"] for r in kept] == [1, 0]
    assert kept == RUNS.where(lambda r: r.values["loss"] < 30, kind="network")
    assert RUNS.where(kind="tree") == ()
    assert isinstance(kept, Records)


def test_groups_hold_every_record_once_in_the_order_met():
    groups = RUNS.by("kind")
    assert list(groups) == ["network", "process"]
    assert sum(groups.values(), ()) == RUNS
    assert list(RUNS.by("kind", "width"))[:2] == [("network", 4), ("network", 2)]
    assert RUNS.different("width") == [2, 4]


def test_a_column_has_one_number_for_each_unit():
    assert RUNS.where(kind="process", width=4).column("loss") == {0: 40.0, 1: 41.0}
    with pytest.raises(ValueError, match=r"one record for each seed, found several of seed 0: f"):
        RUNS.column("loss")


def test_values_settings_and_functions_are_read_and_what_is_missing_left_out():
    one, other = record({"mse": 1.0, "map": [1]}, seed=3), record({"mse": None}, seed=4)
    both = in_view([one, other])
    assert both.values("mse") == [1.0]
    assert both.values("seed") == [3, 4]
    assert both.values(lambda r: r.settings["seed"] ** 2) == [9, 16]
    assert read(one, "nothing") is None
    assert both.first("map") is one
    assert both.first("curve") is None
    assert in_view(both) is both
