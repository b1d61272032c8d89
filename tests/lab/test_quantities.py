"""Quantities as data give what the plain statistics give for numbers picked by hand."""

import math

import numpy as np
import pytest

from inscape.lab.quantities import (
    Column,
    Difference,
    Exact,
    Largest,
    LogRatio,
    Mean,
    Proportion,
    ProportionDifference,
    Quantities,
    Slope,
    Tau,
    TauOfMeans,
    exactly,
)
from inscape.lab.records import Record, Records
from inscape.lab.statistics import (
    bootstrap_estimate,
    exact_estimate,
    kendall_tau,
    log_slope,
    mean_estimate,
    paired_difference,
    proportion_difference,
    proportion_of,
)

EMPTY = {"experiment": "a/b", "scale": "laptop", "key": "", "data": "none", "claims": {}}
RNG = np.random.default_rng(0)
RUNS = Records(
    Record(
        settings={"optimizer": optimizer, "size": size, "seed": seed},
        values={"loss": float(RNG.uniform(1, 2) / size), "solved": bool(RNG.random() < 0.5)},
        provenance={},
        **EMPTY,
    )
    for optimizer in ("sgd", "adam")
    for size in (1, 2, 4)
    for seed in (2, 0, 1)
)


def picked(name, **settings):
    """The slow way: a loop over records, one number for each seed in rising order."""
    rows = [r for r in RUNS if all(r.settings[k] == v for k, v in settings.items())]
    return [r.values[name] for r in sorted(rows, key=lambda r: r.settings["seed"])]


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_a_mean_is_that_of_the_numbers_in_the_order_of_the_records(interval):
    numbers = [r.values["loss"] for r in RUNS if r.settings["optimizer"] == "adam"]
    plain = {"t": mean_estimate, "bootstrap": bootstrap_estimate}[interval]
    assert Mean("loss", interval=interval).where(optimizer="adam")(RUNS) == plain(numbers)


def test_a_mean_is_cut_off_at_its_range():
    ours = Mean(lambda r: float(r.values["solved"]), within=(0.0, 1.0))(RUNS)
    assert ours == mean_estimate([float(r.values["solved"]) for r in RUNS], within=(0.0, 1.0))


def test_proportions_and_their_difference_are_those_of_the_successes():
    sides = [[r.values["solved"] for r in RUNS.where(optimizer=o)] for o in ("adam", "sgd")]
    assert Proportion("solved").where(optimizer="adam")(RUNS) == proportion_of(sides[0])
    gap = ProportionDifference(
        Column("solved", optimizer="adam"), Column("solved", optimizer="sgd")
    )
    assert gap(RUNS) == proportion_difference(*sides)
    assert gap.groups == ("optimizer",)


def test_differences_are_paired_by_the_unit():
    one, two = (Column("loss", optimizer=name, size=2) for name in ("sgd", "adam"))
    sides = picked("loss", optimizer="sgd", size=2), picked("loss", optimizer="adam", size=2)
    assert Difference(one, two)(RUNS) == paired_difference(*sides)
    assert Difference(one, two, log=True)(RUNS) == paired_difference(*np.log(sides))
    assert Difference(one, two).groups == ("optimizer",)
    assert (Difference(one, two).unit, Difference(one, two).groups) == ("seed", ("optimizer",))


def test_a_log_ratio_is_of_arithmetic_means_and_needs_positive_numbers():
    one, two = Column("loss", size=1), Column("loss", size=4)
    runs = RUNS.where(optimizer="sgd")
    pairs = list(
        zip(
            picked("loss", optimizer="sgd", size=1),
            picked("loss", optimizer="sgd", size=4),
            strict=True,
        )
    )

    def decades(rows):
        return math.log10(sum(a for a, _ in rows) / sum(b for _, b in rows))

    ours, plain = LogRatio(one, two)(runs), bootstrap_estimate(pairs, decades, draws=1000)
    assert (ours.value, ours.low, ours.high) == pytest.approx((plain.value, plain.low, plain.high))
    assert LogRatio(one, Column(lambda r: 0.0, size=4))(runs) is None


def test_trends_within_units_and_of_their_means():
    runs = RUNS.where(optimizer="adam")
    lines = [[picked("loss", optimizer="adam", size=s)[k] for s in (1, 2, 4)] for k in range(3)]
    taus = [kendall_tau((1, 2, 4), line) for line in lines]
    assert Tau("size", "loss")(runs) == bootstrap_estimate(taus)
    assert Tau("size", "loss", interval="t")(runs) == mean_estimate(taus)
    slopes = [log_slope((1, 2, 4), line) for line in lines]
    assert Slope("size", "loss")(runs) == mean_estimate(slopes)
    assert Slope("size", "loss")(runs.where(size=2)) is None

    def tau(rows):
        return kendall_tau(range(3), np.mean(rows, axis=0))

    assert TauOfMeans("size", "loss")(runs) == bootstrap_estimate(lines, tau, draws=1000)
    assert TauOfMeans("size", "loss", levels=(4, 2, 1))(runs).value == -tau(lines)
    assert TauOfMeans("size", "loss").groups == ("size",)
    flat = Tau("size", lambda r: 1.0, undefined=0.0)(runs)
    assert flat.value == 0.0
    assert math.isnan(Tau("size", lambda r: 1.0)(runs).value)


def test_what_is_counted_is_exact():
    losses = [r.values["loss"] for r in RUNS]
    assert Largest("loss")(RUNS) == exact_estimate(max(losses), 18, "largest of 18")
    assert Exact("loss")(RUNS) == exact_estimate(losses[0])
    assert Exact("solved", rule=sum, method="counted")(RUNS) == exact_estimate(
        float(sum(r.values["solved"] for r in RUNS)), 18, "counted"
    )


def test_what_has_no_records_is_left_out():
    analyse = Quantities(
        {
            "adam": Mean("loss").where(optimizer="adam"),
            "none": Mean("loss").where(optimizer="lbfgs"),
            "by hand": lambda records: exact_estimate(float(len(records))),
            "nothing": lambda records: None,
        },
        exactly(lambda records: {"sizes": len(records.different("size"))}),
    )
    found = analyse(list(RUNS))
    assert list(found) == ["adam", "by hand", "sizes"]
    assert (found["by hand"].value, found["sizes"].value) == (18.0, 3.0)
    assert analyse([]) == {"by hand": exact_estimate(0.0), "sizes": exact_estimate(0.0)}
