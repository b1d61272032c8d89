"""What a store knows: the right scale is shown, and nothing is judged too early."""

import pytest

import fake_paper
from inscape.lab import catalogue
from inscape.lab.experiment import Experiment, Trend
from inscape.lab.experiment_outcome import changed_claims, outcome_of_records, stored_outcome
from inscape.lab.store import Record, Store

TABLE, FIGURE, COUNTING = fake_paper.IDS


@pytest.fixture
def store(tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    return Store(tmp_path / "results")


def verdicts(finding):
    return {judgement.claim.name: judgement.verdict for judgement in finding.judgements}


def test_nothing_was_run(store):
    result = stored_outcome(TABLE, store)
    assert (result.scale, result.records, result.quantities) == (None, (), {})
    assert result.cells == {"smoke": (0, 2), "laptop": (0, 9), "paper": (0, 12)}
    assert set(verdicts(result).values()) == {"not run"}
    assert result.judgements[0].reason == (
        "no verdict before all cells are there; there are 0 of 12 cells at paper and 0 of 9 cells "
        "at laptop."
    )


def test_the_largest_whole_scale_is_shown_and_never_smoke(store):
    fake_paper.fill(store, TABLE, "smoke")
    assert stored_outcome(TABLE, store).scale is None
    fake_paper.fill(store, TABLE, "laptop", leave_out=1)
    assert stored_outcome(TABLE, store).scale is None
    fake_paper.fill(store, TABLE, "laptop")
    fake_paper.fill(store, TABLE, "paper", leave_out=1)
    partly = stored_outcome(TABLE, store)
    assert (partly.scale, len(partly.records)) == ("laptop", 9)
    assert partly.cells["paper"] == (11, 12)
    fake_paper.fill(store, TABLE, "paper")
    whole = stored_outcome(TABLE, store)
    assert (whole.scale, len(whole.records)) == ("paper", 12)


def test_a_scale_that_was_asked_for(store):
    fake_paper.fill(store, TABLE, "smoke")
    fake_paper.fill(store, TABLE, "laptop")
    fake_paper.fill(store, TABLE, "paper")
    assert stored_outcome(TABLE, store, "laptop").scale == "laptop"
    smoke = stored_outcome(TABLE, store, "smoke")
    assert smoke.scale == "smoke"
    assert smoke.quantities
    assert set(verdicts(smoke).values()) == {"not run"}


def test_verdicts_and_quantities_in_numbers(store):
    fake_paper.fill(store, TABLE, "laptop")
    result = stored_outcome(TABLE, store)
    assert result.quantities["mean/2"].value == pytest.approx(2.1)
    assert verdicts(result) == {
        "mean-1": "reproduced",
        "mean-2": "inconclusive",
        "mean-3": "reproduced",
        "paper-3": "not run",
        "grows": "reproduced",
        "huge": "not run",
    }
    assert result.conclusions == ("There are 9 sums.",)
    assert result.seconds == 9 * 30.0


def test_claims_about_another_scale_stand_apart(store):
    names = [one.claim.name for one in stored_outcome(TABLE, store).comparable]
    assert "paper-3" in names  # nothing was run: the paper's own claims wait
    fake_paper.fill(store, TABLE, "laptop")
    result = stored_outcome(TABLE, store)
    assert [one.claim.name for one in result.at_other_scales] == ["paper-3"]
    assert len(result.comparable) == 5
    fake_paper.fill(store, TABLE, "smoke")
    smoke = stored_outcome(TABLE, store, "smoke")
    assert [one.claim.name for one in smoke.at_other_scales] == ["paper-3"]


def test_same_as_shows_the_records_of_another(store):
    fake_paper.fill(store, TABLE, "laptop")
    result = stored_outcome(FIGURE, store)
    assert (result.scale, len(result.records)) == ("laptop", 9)
    assert {record.experiment for record in result.records} == {TABLE}


def test_records_in_the_order_of_the_cells(store):
    fake_paper.fill(store, TABLE, "laptop")
    settings = [
        (r.settings["size"], r.settings["seed"]) for r in stored_outcome(TABLE, store).records
    ]
    assert settings == [(size, seed) for size in (1, 2, 3) for seed in (0, 1, 2)]


def test_changed_settings_have_no_verdict(store):
    fake_paper.fill(store, COUNTING, "laptop")
    records = stored_outcome(COUNTING, store).records
    experiment = catalogue.experiment(COUNTING)
    assert outcome_of_records(COUNTING, experiment, "laptop", records).judgements[0].verdict == (
        "not reproduced"
    )
    changed = outcome_of_records(COUNTING, experiment, "laptop", records, ["seed"])
    assert (changed.judgements[0].verdict, changed.changed) == ("not run", ("seed",))


def test_claims_that_were_changed_after_the_run_are_counted(store):
    fake_paper.fill(store, TABLE, "laptop")
    records = stored_outcome(TABLE, store).records
    assert changed_claims(TABLE, records) == {}
    for record in records[:2]:
        path = store.path(TABLE, "laptop", record.key)
        fake_paper.under_claims(path, {"grows": "another", "huge": None, "gone": "x"})
    changed = changed_claims(FIGURE, stored_outcome(FIGURE, store).records)
    assert changed == {"gone": 2, "grows": 2, "huge": 2}


def compared(records):
    """Compare two kinds, as an analysis does that needs both."""
    kinds = {record.settings["kind"]: record.values["loss"] for record in records}
    return kinds["one"] - kinds["other"]


def test_part_of_a_grid_without_what_is_compared_keeps_its_records():
    part = Record(
        experiment="a/b", scale="smoke", key="0", settings={"kind": "one"}, data="none",
        values={"loss": 1.0}, claims={}, provenance={},
    )  # fmt: skip
    experiment = Experiment(
        shows="Table 1", title="Two kinds", cell=dict, analyse=compared, conclude=compared,
        draw=compared, claims=(Trend(name="up", says="Up.", of="gap", side="above"),),
    )  # fmt: skip
    outcome = outcome_of_records("a/b", experiment, "smoke", [part], changed=["kind"])
    assert (list(outcome.records), outcome.quantities) == ([part], {})
    assert (outcome.conclusions, outcome.figure()) == ((), None)
    assert verdicts(outcome) == {"up": "not run"}
    with pytest.raises(KeyError, match="other"):
        outcome_of_records("a/b", experiment, "smoke", [part])
