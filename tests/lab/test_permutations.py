"""Every claim about a setting fails when that setting is permuted."""

from pathlib import Path

from inscape.lab import catalogue
from inscape.lab.experiment import Experiment, Trend, Value, claim_hash
from inscape.lab.mutation import ALLOWED, DRAWS
from inscape.lab.permutations import FILE, effect_of, only, read_shares, with_effect
from inscape.lab.quantities import Column, Difference, Mean, Quantities, Slope

RESULTS = Path(__file__).parents[2] / "results"

QUANTITIES = Quantities(
    {
        "gain": Difference(Column("y", kind="a"), Column("y", kind="b")),
        "power": Slope("size", "y"),
        "mean": Mean("y"),
    }
)


def effect(of, **more):
    claim = Trend(name="t", says="It grows.", of=of, **({"side": "above"} | more))
    experiment = Experiment(
        shows="Table 1", title="t", cell=dict, claims=(claim,), analyse=QUANTITIES
    )
    return effect_of(experiment, claim)


def test_the_setting_of_a_comparison_is_known_without_naming_it():
    assert effect("gain") == "kind"
    assert effect("power", side="between", bound=0.9, upper=1.1) == "size"
    assert effect("gain", effect="size") == "size"
    assert effect("mean") == ""


def test_absence_and_what_is_not_judged_have_no_effect_to_permute():
    assert effect("gain", side="below", bound=0.1) == ""
    assert effect("power", side="between", bound=-0.1, upper=0.1) == ""
    assert effect("gain", struck="it cannot fail.") == effect("gain", by_construction="so.") == ""


def test_of_two_groups_only_these_change_places():
    claims = tuple(
        Trend(name=of, says="It grows.", of=of, side="above") for of in ("gain", "power", "mean")
    )
    experiment = Experiment(
        shows="Table 1", title="t", cell=dict, claims=claims, analyse=QUANTITIES
    )
    assert {key: [c.name for c in own] for key, own in with_effect(experiment).items()} == {
        ("kind", ("a", "b")): ["gain"],
        ("size", ()): ["power"],
    }


def test_only_what_claims_are_about_is_computed():
    claims = [Value(name="v", says="It is.", of="gain", published=1.0)]
    narrowed = only(QUANTITIES, claims)
    assert isinstance(narrowed, Quantities)
    assert list(narrowed.named) == ["gain"]
    assert only(QUANTITIES, [*claims, Value(name="w", says="It is.", of="x", published=1.0)]) is (
        QUANTITIES
    )


def test_every_claim_with_an_effect_was_permuted_and_fails():
    shares = read_shares(RESULTS / FILE)
    expected = {
        f"{listing.id}/{claim.name}": (claim, effect)
        for listing in catalogue.experiments()
        for (effect, _), claims in with_effect(catalogue.experiment(listing.id)).items()
        for claim in claims
    }
    assert set(shares) <= set(expected)
    assert set(expected) - set(shares) <= without_records(expected)
    for name, row in shares.items():
        claim, effect = expected[name]
        assert (row["claim"], row["effect"]) == (claim_hash(claim), effect), name
        assert row["draws"] == DRAWS, name
        assert row["share"] <= ALLOWED or claim.struck, name


def without_records(names):
    """Return the claims of experiments whose records are not judged yet."""
    from inscape.lab.quantity_file import read_quantities

    judged = read_quantities(RESULTS / "quantities.json")
    return {name for name in names if name.rpartition("/")[0] not in judged}
