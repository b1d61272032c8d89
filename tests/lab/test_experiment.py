"""An experiment lays out its cells and refuses what nobody could run or judge."""

from dataclasses import replace

import pytest

from inscape.lab import Experiment, Trend, Value, claim_hash


def cell(size, seed):
    return {"sum": size + seed}


CLAIM = Value(name="one", says="it is one", of="sum", published=1.0, tolerance=0.1)
TABLE = Experiment(
    shows="Table 1",
    title="Sums",
    cell=cell,
    smoke={"size": [1, 2], "seed": range(2)},
    paper={"size": [9], "seed": [0]},
    claims=(CLAIM,),
)


def test_cells_are_the_grid_the_last_axis_fastest():
    cells = TABLE.cells(TABLE.axes("smoke"))
    assert [(c["size"], c["seed"]) for c in cells] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert TABLE.cells(TABLE.axes("paper")) == [{"size": 9, "seed": 0}]
    odd = replace(TABLE, keeps=lambda settings: settings["size"] != settings["seed"])
    assert len(odd.cells(odd.axes("smoke"))) == 3


def test_cells_run_one_by_one_or_together():
    cells = TABLE.cells(TABLE.axes("smoke"))
    alone = dict(TABLE.run(cells))

    def together(settings):
        for index in reversed(range(len(settings))):
            yield index, cell(**settings[index])

    both = replace(TABLE, cell=None, together=together)
    assert dict(both.run(cells)) == alone == {i: {"sum": s} for i, s in enumerate([1, 2, 2, 3])}


@pytest.mark.parametrize("ways", [{}, {"cell": cell, "same_as": "table-2"}])
def test_there_is_one_way_to_the_records(ways):
    with pytest.raises(ValueError, match="exactly one of cell, together and same_as, found"):
        Experiment(shows="Table 1", title="Sums", **ways)


def test_claims_have_different_names():
    with pytest.raises(ValueError, match="different names, found one more than once in 'Table 1'"):
        replace(TABLE, claims=(CLAIM, replace(CLAIM, says="again")))


def test_what_a_claim_is_judged_by_is_no_part_of_its_hash():
    later = {"origin": "ours", "kind": "proportion", "struck": "it passes.", "published_of": 9}
    assert claim_hash(replace(CLAIM, **later)) == claim_hash(CLAIM)
    assert claim_hash(CLAIM) == "f01040d9e0cd"  # as in the records of version 1


def test_another_word_is_another_hash():
    trend = Trend(name="one", says="it is one", of="sum", side="above")
    hashes = {
        claim_hash(claim)
        for claim in (
            CLAIM,
            replace(CLAIM, says="it is one."),
            replace(CLAIM, tolerance=0.2),
            replace(CLAIM, scales=("paper",)),
            trend,
        )
    }
    assert len(hashes) == 5
    assert claim_hash(CLAIM) == claim_hash(replace(CLAIM))


def test_scales_that_are_not_given_have_the_settings_of_the_experiment():
    whole = Experiment(
        shows="Table 1", title="Sums", cell=cell, smoke={"size": [1]}, settings={"size": [2]}
    )
    assert [whole.axes(scale) for scale in ("smoke", "laptop", "paper")] == [
        {"size": [1]}, {"size": [2]}, {"size": [2]}
    ]  # fmt: skip
    assert not TABLE.axes("laptop")
