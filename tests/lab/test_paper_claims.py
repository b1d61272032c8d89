"""Every claim of the papers has a claim in code, or a stated reason."""

import json

import pytest

from inscape.lab import catalogue
from inscape.lab.paper_claims import (
    NOT_BUILT,
    PublishedClaim,
    coverage,
    papers_with_claims,
    published_claims,
)

#: How many claims each paper makes.
COUNTS = {"courtois": 24, "goldblum": 25, "klindt": 27, "sattelberg": 77, "volhejn": 14}
PAPERS = sorted(COUNTS)


def test_all_167_claims_are_listed():
    assert papers_with_claims() == PAPERS
    assert {paper: len(list(published_claims(paper))) for paper in PAPERS} == COUNTS
    assert sum(COUNTS.values()) == 167


@pytest.mark.parametrize("paper", PAPERS)
def test_ids_name_their_entry_and_count_through_the_paper(paper):
    facts = json.loads((catalogue.PAPERS / paper / "published.json").read_text())
    expected, number = [], 0
    for entry in facts["entries"]:
        for _ in entry.get("claims", ()):
            number += 1
            expected.append(f"{paper}/{entry['id']}/{number}")
    assert [claim.id for claim in published_claims(paper)] == expected


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_has_claims_in_code_or_a_reason(paper):
    known = {
        f"{listing.id}/{claim.name}"
        for listing in (catalogue.experiments(paper) if paper in catalogue.papers() else ())
        for claim in catalogue.experiment(listing.id).claims
        if claim.origin != "ours"
    }
    for claim in published_claims(paper):
        assert bool(claim.judged_by) != bool(claim.reason), claim.id
        assert set(claim.judged_by) <= known, claim.id
        assert not claim.reason or claim.reason == NOT_BUILT or claim.reason.endswith("."), claim.id


def test_nothing_is_not_built_yet_that_has_an_experiment():
    for paper in catalogue.papers():
        built = {listing.item for listing in catalogue.experiments(paper)}
        for claim in published_claims(paper):
            if claim.reason == NOT_BUILT:
                assert claim.id.split("/")[1] not in built, claim.id


def test_coverage_is_said_in_a_sentence(monkeypatch):
    claims = [
        PublishedClaim(id="p/t/1", says="a", judged_by=("p/t/a",)),
        PublishedClaim(id="p/t/2", says="b", judged_by=("p/t/b",), missing="half of it"),
        PublishedClaim(id="p/t/3", says="c", reason=NOT_BUILT),
    ]
    monkeypatch.setattr("inscape.lab.paper_claims.published_claims", lambda paper: iter(claims))
    assert coverage("p") == (
        "Of its 3 claims in words 2 are judged here, 1 of them in part; 1 not built yet."
    )
    assert coverage("p", {"p/t/b", "p/t/x"}) == (
        "Of its 3 claims in words 1 are judged here; 1 not run yet; 1 not built yet."
    )
    monkeypatch.setattr("inscape.lab.paper_claims.published_claims", lambda paper: iter(()))
    assert coverage("p") == ""
