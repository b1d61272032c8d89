"""Mutations: what holds without its effect is found, and no claim of ours does."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inscape.lab import catalogue
from inscape.lab.experiment import Estimate, Trend, Value
from inscape.lab.mutation import (
    ALLOWED,
    permuted,
    placed,
    scaled,
    share_of_sign_flips,
    shares_of_permutations,
    shifted,
    survived,
)
from inscape.lab.permutations import permutation_shares, with_effect
from inscape.lab.statistics import exact_estimate, mean_estimate, proportion_estimate
from inscape.lab.store import Record, Store

RESULTS = Path(__file__).parents[2] / "results"


def trend(**more):
    return Trend(name="t", says="It grows.", of="q", **({"side": "above"} | more))


def value(published=0.5, **more):
    return Value(name="v", says="It is.", of="q", published=published, **more)


UNITS = mean_estimate([0.5, 0.7, 0.6, 0.8, 0.4, 0.6, 0.9])


def test_a_claim_with_an_effect_fails_without_it():
    assert survived(trend(), UNITS) == []
    assert survived(trend(side="between", bound=0.3, upper=0.9), UNITS) == []
    assert survived(value(0.64, tolerance=0.3), UNITS) == []
    assert survived(value(5), exact_estimate(5.0)) == []


def test_a_claim_that_is_true_anyway_survives():
    wide = proportion_estimate(95, 100)
    assert survived(trend(bound=0.5, null=0.72), wide) == ["null"]  # untrained networks have 0.72
    assert survived(value(0.95, tolerance=0.2, null=0.9), wide) == ["null"]
    assert survived(trend(bound=0.5, null=0.5), wide) == []
    assert survived(trend(bound=0.99, null=1.0), wide) == []  # nothing survives what fails now


def test_a_number_whose_margin_is_nothing_cannot_be_moved():
    assert survived(value(5, tolerance=0), exact_estimate(5.0)) == []


def test_a_claim_of_absence_gets_an_effect():
    nothing = mean_estimate([0.01, -0.01, 0.02, -0.02, 0.0, 0.01])
    assert survived(trend(side="below", bound=0.05), nothing) == []
    assert survived(trend(side="between", bound=-0.1, upper=0.1), nothing) == []
    assert survived(trend(side="below", bound=0.05, null=0.0), nothing) == ["null"]


def test_labels_that_change_places_within_pairs_undo_a_trend():
    # Of all 64 ways to turn six units that are alike only the unturned is all above zero.
    alike = mean_estimate([1.0, 1.01, 0.99, 1.02, 0.98, 1.03])
    assert share_of_sign_flips(trend(), alike) == 1 / 64
    assert share_of_sign_flips(trend(side="below"), shifted(alike, -2.0)) == 1 / 64
    many = mean_estimate(np.random.default_rng(0).normal(3.0, size=50))
    assert share_of_sign_flips(trend(), many) <= ALLOWED
    assert share_of_sign_flips(trend(side="below", bound=9.0), many) == 0.0  # one of absence


def test_estimates_move_as_a_whole():
    moved = shifted(UNITS, 2.0)
    assert moved.high - moved.low == pytest.approx(UNITS.high - UNITS.low)
    assert np.mean(moved.units) == pytest.approx(moved.value)
    doubled = scaled(UNITS, 2.0)
    assert (doubled.se, doubled.low) == (2 * UNITS.se, 2 * UNITS.low)
    assert placed(UNITS, 9.0).value == pytest.approx(9.0)


def records(count=6):
    return [
        Record(
            experiment="p/t", scale="laptop", key=f"{seed}{size}", data="none", claims={},
            provenance={}, settings={"seed": seed, "size": size}, values={"y": size + 0.1 * seed},
        )
        for seed in range(count)
        for size in (1, 2, 3)
    ]  # fmt: skip


def analyse(chosen):
    by_seed = {r.settings["seed"]: [] for r in chosen}
    for record in chosen:
        by_seed[record.settings["seed"]].append((record.settings["size"], record.values["y"]))
    slopes = [np.polyfit(*np.array(pairs).T, 1)[0] for pairs in by_seed.values()]
    numbers = [y for pairs in by_seed.values() for _, y in pairs]
    return {"q": mean_estimate(slopes), "some": mean_estimate(numbers)}


def test_a_permuted_setting_keeps_all_others_and_all_values():
    before = records()
    after = permuted(before, "size", np.random.default_rng(0))
    assert [r.settings for r in after] == [r.settings for r in before]
    assert sorted(r.values["y"] for r in after) == sorted(r.values["y"] for r in before)
    for seed in range(6):
        own = [
            [r.values["y"] for r in some if r.settings["seed"] == seed] for some in (before, after)
        ]
        assert sorted(own[0]) == sorted(own[1])
    assert [r.values["y"] for r in after] != [r.values["y"] for r in before]


def test_levels_that_are_not_compared_stay_where_they_are():
    before = records()
    after = permuted(before, "size", np.random.default_rng(0), (1, 3))
    moved = {a.settings["size"] for a, b in zip(before, after, strict=True) if a.values != b.values}
    assert moved == {1, 3}


def test_a_slope_is_lost_when_its_setting_is_permuted_and_a_mean_is_not():
    slope = trend(effect="size")
    mean = Trend(name="m", says="It is.", of="some", side="above", effect="size")
    shares = shares_of_permutations([slope, mean], records(8), analyse, "size", draws=100)
    assert shares["t"] <= 0.06  # a t test at 2.5% with 100 draws
    assert shares["m"] == 1.0


def claims_in_code():
    return [
        (listing.id, claim)
        for listing in catalogue.experiments()
        for claim in catalogue.experiment(listing.id).claims
    ]


def test_a_kept_share_is_what_comes_out():
    again = permutation_shares("courtois/theorem-3", Store(RESULTS, mends=False), draws=3)
    assert set(again) == {
        f"courtois/theorem-3/{claim.name}"
        for claims in with_effect(catalogue.experiment("courtois/theorem-3")).values()
        for claim in claims
    }
    assert all(row["share"] == 0 for row in again.values())


@pytest.mark.parametrize("id", [listing.id for listing in catalogue.experiments()])
def test_no_claim_survives_its_mutations(id):
    """By the kept quantities of all records: the analysis is not run here."""
    kept = quantities().get(id, {})
    for claim in catalogue.experiment(id).claims:
        ours = kept.get(claim.of)
        if ours is None or claim.struck or claim.by_construction:
            continue
        assert survived(claim, ours) == [], claim.name


def quantities():
    from inscape.lab.quantity_file import read_quantities

    return read_quantities(RESULTS / "quantities.json")


def test_a_struck_claim_is_one_that_survives_or_says_why():
    struck = [(id, claim) for id, claim in claims_in_code() if claim.struck]
    assert {f"{id}/{claim.name}" for id, claim in struck} == {
        "courtois/figure-2/similar",
        "courtois/figure-12/one-peak",
        "klindt/depth/no-transfer-3",
        "klindt/depth/no-transfer-6",
        "sattelberg/table-3.4/table-fits",
        "sattelberg/table-5.1/counts-fit",
    }
    for _, claim in struck:
        assert claim.struck.endswith(".")
        assert claim.null is not None
        assert math.isfinite(claim.null)


def test_equal_estimates_are_not_touched():
    ours = Estimate(value=1.0, low=0.5, high=1.5, se=0.2, n=9)
    assert replace(shifted(ours, 1.0), value=1.0, low=0.5, high=1.5) == ours
