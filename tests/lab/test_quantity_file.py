"""Quantities kept beside the records: those of today's analysis, and none is lost in the file."""

import math
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from inscape.lab import catalogue
from inscape.lab.experiment import Estimate
from inscape.lab.experiment_outcome import stored_outcome
from inscape.lab.quantity_file import FILE, from_plain, read_quantities, to_plain
from inscape.lab.statistics import exact_estimate, mean_estimate, unrepeated
from inscape.lab.store import Store

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize(
    "estimate",
    [mean_estimate([1.0, 2.0, 4.0]), exact_estimate(3.0), unrepeated(2.0, "once")],
)
def test_an_estimate_comes_back_as_it_was(estimate):
    assert from_plain(to_plain(estimate)) == estimate


def test_what_is_not_finite_is_a_word():
    nan = Estimate(value=math.nan, low=-math.inf, high=math.inf, se=math.nan, n=2)
    plain = to_plain(nan)
    assert (plain["value"], plain["low"], plain["high"]) == ("nan", "-inf", "inf")
    again = from_plain(plain)
    assert math.isnan(again.value)
    assert again.low == -math.inf


@pytest.mark.parametrize(
    "id",
    ["courtois/theorem-3", "klindt/figure-6", "sattelberg/table-6.1", "volhejn/figure-2"],
)
def test_the_kept_quantities_are_those_of_the_records(id):
    outcome = stored_outcome(id, Store(RESULTS, mends=False))
    kept = read_quantities(RESULTS / FILE)[id]
    for name, estimate in kept.items():
        today = outcome.quantities[name]
        numbers = [(e.value, e.low, e.high, e.se) for e in (estimate, today)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, nan_ok=True), name
        assert (estimate.n, estimate.interval) == (today.n, today.interval)


def test_every_experiment_with_a_verdict_has_its_quantities():
    kept = read_quantities(RESULTS / FILE)
    assert len(kept) > 80
    assert all(kept.values())


def whole_scales(runs, counts):
    """Return the scales of an experiment all of whose cells have a record."""
    scales = ("laptop", "paper")
    wanted = {scale: len(runs.cells(runs.axes(scale))) for scale in scales if runs.axes(scale)}
    return {scale for scale, cells in wanted.items() if 0 < cells <= counts[scale]}


def test_every_experiment_with_all_its_records_is_kept():
    """Or its claims would be neither judged nor mutated by the tests."""
    counts = defaultdict(Counter)
    for name, scale, _ in Store(RESULTS, mends=False).places():
        counts[name][scale] += 1
    kept = read_quantities(RESULTS / FILE)
    for listing in catalogue.experiments():
        source = catalogue.source(listing.id)
        whole = whole_scales(catalogue.experiment(source), counts[source])
        claims = catalogue.experiment(listing.id).claims
        if any(whole & set(claim.scales) for claim in claims):
            assert listing.id in kept, f"{listing.id}: run python -m inscape.lab.quantity_file"
