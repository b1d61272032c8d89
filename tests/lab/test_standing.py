"""What claims are judged by beyond their wording: read from a file, and no part of a hash."""

import json
from pathlib import Path

import pytest

from inscape.lab import catalogue
from inscape.lab.experiment import Experiment, Trend, claim_hash
from inscape.lab.standing import FILE, with_standing

RESULTS = Path(__file__).parents[2] / "results"
TREND = Trend(name="grows", says="It grows.", of="q", side="above")
TABLE = Experiment(shows="Table 1", title="t", cell=dict, claims=(TREND,))


def write(folder, **items):
    (folder / FILE).write_text(json.dumps(items))


def test_fields_are_those_of_the_file_and_the_hash_stays(tmp_path):
    group = {"names": ["grows"], "origin": "ours", "published_units": [1.0, 2.0]}
    write(tmp_path, **{"table-1": {"outside": {"laptop": "far."}, "claims": [group]}})
    made = with_standing(TABLE, tmp_path, "table-1")
    (claim,) = made.claims
    assert (claim.origin, claim.published_units) == ("ours", (1.0, 2.0))
    assert made.outside == {"laptop": "far."}
    assert claim_hash(claim) == claim_hash(TREND)
    assert with_standing(TABLE, tmp_path, "table-1") is made


def test_without_a_file_or_a_part_nothing_changes(tmp_path):
    assert with_standing(TABLE, tmp_path, "table-1") is TABLE
    write(tmp_path, **{"table-2": {"claims": []}})
    assert with_standing(TABLE, tmp_path, "table-1") is TABLE


def test_unknown_claims_and_fields_are_refused(tmp_path):
    write(tmp_path, **{"table-1": {"claims": [{"names": ["falls"], "kind": "count"}]}})
    with pytest.raises(ValueError, match=r"must name claims of the experiment, found falls: corr"):
        with_standing(TABLE, tmp_path, "table-1")
    write(tmp_path, **{"table-3": {"claims": [{"names": ["grows"], "says": "It falls."}]}})
    with pytest.raises(ValueError, match=r"must hold fields of Standing, found says: choose from"):
        with_standing(TABLE, tmp_path, "table-3")


@pytest.mark.parametrize("paper", catalogue.papers())
def test_the_files_of_the_papers_name_experiments(paper):
    path = catalogue.PAPERS / paper / FILE
    items = json.loads(path.read_text()) if path.is_file() else {}  # not every paper needs one
    assert set(items) <= {listing.item for listing in catalogue.experiments(paper)}


def test_no_committed_record_is_stale():
    """Every record holds the hashes of its claims; their parts alone are read, not the numbers."""
    today: dict[str, dict[str, str]] = {}
    added: dict[str, frozenset[str]] = {}
    count = 0
    for path in sorted(RESULTS.glob("*/*/*/*.json")):
        content = json.loads(path.read_bytes())
        name = content["experiment"]
        if name not in today:
            today[name] = catalogue.claim_hashes(name)
            added[name] = catalogue.later_claims(name)
        then, later = content["claims"], added[name]
        now = {
            claim: own for claim, own in today[name].items() if claim in then or claim not in later
        }
        assert then == now, (path.name, set(then) ^ set(now))
        count += 1
    assert count >= 4077
