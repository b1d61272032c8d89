"""The list of verdicts that another rule gave otherwise."""

import json

from inscape.lab.changed_verdicts import changed_verdicts, changes, read_before
from inscape.lab.experiment import Experiment, Trend
from inscape.lab.experiment_outcome import ExperimentOutcome
from inscape.lab.verdict import RULE, Judgement


def outcome():
    claims = [Trend(name=name, says="It grows.", of=name, side="above") for name in ("a", "b", "c")]
    experiment = Experiment(shows="Table 1", title="t", cell=dict, claims=tuple(claims))
    verdicts = ("inconclusive", "reproduced", "not run")
    judgements = tuple(
        Judgement(claim=claim, verdict=verdict, ours=None, reason=f"a | b for {claim.name}.")
        for claim, verdict in zip(claims, verdicts, strict=True)
    )
    return ExperimentOutcome(
        id="fake/table-1", experiment=experiment, scale="laptop", judgements=judgements
    )


BEFORE = {"fake/table-1": {"a": "same trend", "b": "reproduced"}}


def test_only_changed_verdicts_are_listed():
    (row,) = changes([outcome()], BEFORE)
    assert (row["claim"], row["before"], row["after"]) == ("a", "same trend", "inconclusive")


def test_the_page_counts_both_rules_and_says_why():
    text = changed_verdicts([outcome()], BEFORE)
    assert "of 2 claims 1 have another verdict" in text
    assert RULE in text
    assert "| a | same trend | inconclusive | a \\| b for a. |" in text
    assert "| fake | 1 | 1 |  | 1 |  |  |  |  |" in text
    assert "| fake | 2 | 1 |  |  | 1 |  |  |  |" in text  # c was never judged before


def test_the_older_verdicts_are_read(tmp_path):
    path = tmp_path / "before.json"
    path.write_text(json.dumps(BEFORE))
    assert read_before(path) == BEFORE
