"""A plan says which cells there are, which are missing and what they cost."""

from dataclasses import replace

import pytest

from inscape._core import DataError
from inscape.lab import Store, plan, recorded, run
from inscape.lab.encoding import cell_key
from inscape.lab.planning import BYTES


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def test_all_is_missing_at_first(toy, store):
    made = plan(toy.table, scale="smoke", store=store)
    assert made.name == "own-toys/table-1"
    assert [tuple(cell.values()) for cell in made.cells] == [
        (size, seed) for size in (1, 2) for seed in range(3)
    ]
    assert made.missing == tuple(range(6))
    assert len(set(made.keys)) == 6
    assert made.seconds == 3 * 2.0 + 3 * 4.0
    assert made.wall(1) == made.seconds
    assert made.wall(2) == 9.0
    assert made.wall(100) == 4.0
    assert made.bytes == 6 * BYTES
    assert set(made.claims) == {"one", "up", "figure-1/down"}


def test_overrides_replace_an_axis(toy, store):
    made = plan(toy.table, scale="smoke", overrides={"size": [3]}, seeds=2, store=store)
    assert made.cells == ({"size": 3, "seed": 0}, {"size": 3, "seed": 1})


def test_overrides_take_the_type_of_the_axis(toy, store):
    toy.edit(('"size": [1, 2]', '"size": [1.0, 2.5]'))
    made = plan(toy.table, scale="smoke", overrides={"size": [1]}, seeds=1, store=store)
    assert type(made.cells[0]["size"]) is float
    assert made.keys[0] == plan(toy.table, scale="smoke", store=store).keys[0]


def test_an_unknown_axis_is_refused(toy, store):
    with pytest.raises(ValueError, match=r"has no setting 'sise' .*: choose from size, seed\."):
        plan(toy.table, scale="smoke", overrides={"sise": [3]}, store=store)


def test_measures_need_an_axis(toy, store):
    with pytest.raises(ValueError, match=r"no setting 'measures' .*: choose from size, seed\."):
        plan(toy.table, scale="smoke", only=["path_length"], store=store)


def test_seeds_need_an_axis(toy, store):
    toy.edit(('"seed": range(3)', '"start": range(3)'))
    with pytest.raises(ValueError, match=r"no setting 'seed' .*: choose from size, start\."):
        plan(toy.table, scale="smoke", seeds=3, store=store)


def test_seeds_are_the_first_of_the_axis_and_those_that_follow(toy, store):
    toy.edit(('"seed": range(3)', '"seed": [1, 2, 5]'))
    for count, seeds in ((2, [1, 2]), (3, [1, 2, 5]), (5, [1, 2, 5, 6, 7])):
        made = plan(toy.table, scale="smoke", overrides={"size": [1]}, seeds=count, store=store)
        assert [cell["seed"] for cell in made.cells] == seeds
    made = plan(toy.table, scale="smoke", overrides={"seed": [0]}, store=store)
    assert {cell["seed"] for cell in made.cells} == {0}


@pytest.mark.parametrize(
    ("own", "value", "said"),
    [
        ("[1]", "abc", "'size' of .* must be an integer, such as 1, found 'abc': give such"),
        ("[1]", 2.5, "must be an integer, such as 1, found 2.5"),
        ("[1]", True, "must be an integer, such as 1, found True"),
        ("[0.5]", "abc", "must be a number, such as 0.5, found 'abc'"),
        ('["a"]', 1, "must be a word, such as 'a', found 1"),
        ("[True]", 1, "must be true or false, such as True, found 1"),
        ('[["a"]]', "a", r"must be a list, such as \['a'\], found 'a'"),
        ("[1]", ["b"] * 99, r"found \['b', 'b', .{60,70}\.\.\.: give such a value"),
        ("[1]", -1, r"the setting 'size' of .* must be above 0, found -1\."),
        ("[0.5]", 0, r"must be above 0, found 0\."),
        ("[0.5]", float("nan"), r"must be above 0, found nan\."),
    ],
)
def test_a_value_unlike_those_of_the_axis_is_refused(toy, store, own, value, said):
    toy.edit(('"size": [1, 2]', f'"size": {own}'), ('"size": [1],', f'"size": {own},'))
    with pytest.raises(ValueError, match=said):
        plan(toy.table, scale="smoke", overrides={"size": [value]}, store=store)


def test_a_seed_below_zero_is_refused(toy, store):
    toy.edit(('"seed": range(3)', '"seed": [1]'), ('"seed": range(int(', '"seed": range(1, int('))
    with pytest.raises(ValueError, match=r"the setting 'seed' of .* must be at least 0, found -1"):
        plan(toy.table, scale="smoke", overrides={"seed": [-1]}, store=store)


@pytest.mark.parametrize(("own", "value"), [("[None]", 5), ("[0, 1]", -1), ("[0.0]", 3)])
def test_a_value_like_those_of_any_scale_is_taken(toy, store, own, value):
    toy.edit(('"size": [1, 2]', f'"size": {own}'), ("2.0 * settings", "2.0 * bool(settings"))
    toy.edit(('bool(settings["size"]', 'bool(settings["size"])'))
    made = plan(toy.table, scale="smoke", overrides={"size": [value]}, seeds=1, store=store)
    assert made.cells[0]["size"] == value


def test_measures_become_one_list(toy, store):
    toy.edit(('"seed": range(3)', '"measures": [["a"]]'))
    made = plan(toy.table, scale="smoke", only=("b", "c"), store=store)
    assert [cell["measures"] for cell in made.cells] == [["b", "c"]] * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"overrides": {"size": []}}, "'size' of .* needs at least one value, found none: give"),
        ({"seeds": 0}, "seeds must be at least 1, found 0: raise seeds"),
        ({"scale": "paper"}, r"has no scale 'paper': choose from smoke, laptop\."),
    ],
)
def test_other_bad_options_are_refused(toy, store, options, said):
    with pytest.raises(ValueError, match=said):
        plan(toy.table, **{"scale": "smoke", "store": store, **options})


def test_an_unknown_scale_is_refused(toy, store, unchecked):
    with pytest.raises(ValueError, match="scale must be one of 'smoke', 'laptop', 'paper', found"):
        plan(toy.table, scale="huge", store=store)


def test_data_are_asked_for_once_for_each_answer(toy, store):
    made = plan(toy.table, scale="smoke", seeds=50, store=store)
    assert (toy.folder / "asked.txt").read_text() == "??"
    assert [made.data[0], made.data[-1]] == ["hash-of-size-1", "hash-of-size-2"]


def test_other_data_mean_other_keys(toy, store):
    before = plan(toy.table, scale="smoke", store=store)
    toy.edit(("hash-of-size", "other-hash"))
    after = plan(toy.table, scale="smoke", store=store)
    assert not set(before.keys) & set(after.keys)


def test_missing_data_are_an_error_before_anything_runs(toy, store):
    toy.edit(('return f"hash', 'raise inscape._core.DataError("no mnist")\n    return f"hash'))
    toy.edit(("import os", "import inscape._core\nimport os"))
    with pytest.raises(DataError, match="no mnist"):
        plan(toy.table, scale="smoke", store=store)


def test_what_is_there_is_not_missing_unless_asked(toy, store):
    run(plan(toy.table, scale="smoke", seeds=2, store=store), store=store)
    more = plan(toy.table, scale="smoke", store=store)
    assert [more.cells[i]["seed"] for i in more.missing] == [2, 2]
    assert len(more.records(store)) == 4
    assert plan(toy.table, scale="smoke", store=store, fresh=True).missing == tuple(range(6))


def test_the_estimate_learns_from_records(toy, store):
    first = plan(toy.table, scale="smoke", seeds=1, store=store)
    run(first, store=store)
    records = first.records(store)
    ratio = sum(r.provenance["seconds"] for r in records) / (2.0 + 4.0)
    later = plan(toy.table, scale="smoke", overrides={"size": [5]}, seeds=4, store=store)
    assert later.guesses == pytest.approx([10.0 * ratio] * 4)
    assert 200 < later.bytes / 4 < 5000
    sizes = [store.size(r.experiment, r.scale, r.key) for r in records]
    assert later.bytes == 4 * (sum(sizes) // 2)


def test_records_of_another_form_do_not_spoil_the_estimate(toy, store):
    run(plan(toy.table, scale="smoke", seeds=1, store=store), store=store)
    toy.edit(
        ('settings["size"],', 'settings["width"],'),
        ('"size": [', '"width": ['),
        ("settings['size']", "settings['width']"),
    )
    assert plan(toy.table, scale="smoke", seeds=1, store=store).guesses == (2.0, 4.0)


def test_a_figure_plans_the_cells_of_its_table(toy, store):
    made = plan(toy.figure, scale="smoke", store=store)
    table = plan(toy.table, scale="smoke", store=store)
    assert made.id == toy.figure
    assert made.experiment.shows == "Figure 1"
    assert made.runs.shows == "Table 1"
    assert (made.name, made.keys, made.claims) == (table.name, table.keys, table.claims)


def test_recorded_gives_the_grid_and_reads_no_data(toy, store):
    run(plan(toy.table, scale="smoke", store=store), store=store)
    run(plan(toy.table, scale="smoke", overrides={"size": [3]}, store=store), store=store)
    (toy.folder / "asked.txt").unlink()
    result = recorded(toy.figure, scale="smoke", store=store)
    assert [tuple(r.settings.values()) for r in result] == [
        (size, seed) for size in (1, 2) for seed in range(3)
    ]
    assert not (toy.folder / "asked.txt").exists()
    assert recorded(toy.figure, scale="laptop", store=store) == []


def test_recorded_takes_the_latest_and_leaves_other_versions_out(toy, store):
    made = plan(toy.table, scale="smoke", seeds=1, store=store)
    run(made, store=store)
    old = made.records(store)[0]
    for data, started, version in (("x", "2999", 1), ("y", "1999", 1), ("z", "3000", 2)):
        key = cell_key(old.experiment, old.settings, version, data)
        about = {**old.provenance, "started": started}
        store.write(replace(old, key=key, data=data, provenance=about, version=version))
    result = recorded(toy.table, scale="smoke", store=store)
    assert [record.data for record in result] == ["x", "hash-of-size-2"]
