"""Every claim that names the setting of its effect fails when that setting is permuted."""

from pathlib import Path

from inscape.lab import catalogue
from inscape.lab.experiment import claim_hash
from inscape.lab.mutation import ALLOWED, DRAWS
from inscape.lab.permutations import FILE, read_shares

RESULTS = Path(__file__).parents[2] / "results"


def test_every_claim_with_an_effect_was_permuted_and_fails():
    shares = read_shares(RESULTS / FILE)
    expected = {
        f"{listing.id}/{claim.name}": claim
        for listing in catalogue.experiments()
        for claim in catalogue.experiment(listing.id).claims
        if claim.effect
    }
    assert set(shares) == set(expected)
    for name, claim in expected.items():
        row = shares[name]
        assert (row["claim"], row["effect"]) == (claim_hash(claim), claim.effect), name
        assert row["draws"] == DRAWS, name
        assert row["share"] <= ALLOWED or claim.struck, name
