"""What a sweep shows, in sentences for the top of its page and for the terminal."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from inscape.report.sweeps.table import Comparison, Correlation, Sweep
from inscape.report.words import listed, number, plain

#: Columns of which a sentence is said.
COLUMNS = 3


@dataclass(frozen=True)
class Sentence:
    """A sentence, and whether it is a warning."""

    text: str
    warning: bool = False


def sentences(sweep: Sweep) -> list[Sentence]:
    """Return what a sweep shows, what went wrong first."""
    return [*_failures(sweep), *_change(sweep), *_strongest(sweep), *_left_out(sweep)]


def introduction(sweep: Sweep) -> str:
    """Return what was measured, on what."""
    models, numbers = len(sweep.models), len(sweep.instruments)
    return (
        f"{models} model{'s' * (models != 1)}, {numbers} instrument{'s' * (numbers != 1)}: every "
        f"model on the same {sweep.rows_measured:,} examples of {sweep.data}, with the same random "
        f"draws (seed {sweep.seed}), so that two of them can be compared sample by sample."
    )


def _failures(sweep: Sweep) -> Iterator[Sentence]:
    lost = list(
        dict.fromkeys(
            measurement.model for measurement in sweep.failed if measurement.instrument == "all"
        )
    )
    if lost:
        yield Sentence(
            f"{len(lost)} of {len(sweep.models)} models could not be opened or measured: "
            f"{listed(lost[:4])}{' and others' if len(lost) > 4 else ''}.",
            warning=True,
        )
    partly = [measurement for measurement in sweep.failed if measurement.instrument != "all"]
    if partly:
        names = list(dict.fromkeys(plain(measurement.instrument) for measurement in partly))
        yield Sentence(
            f"{len(partly)} measurement{'s' * (len(partly) != 1)} failed: {listed(names[:4])}.",
            warning=True,
        )


def _change(sweep: Sweep) -> Iterator[Sentence]:
    """Say how the last model differs from the first: how good it is, and in how many numbers."""
    differences = sweep.first_and_last
    if not differences:
        return
    first, last = differences[0].second, differences[0].first
    for comparison in differences:
        if comparison.instrument == "accuracy":
            yield Sentence(_accuracy(sweep, comparison))
    known = [
        comparison
        for comparison in differences
        if math.isfinite(comparison.difference.low) and not comparison.difference.exact
    ]
    distinct = [comparison for comparison in known if comparison.distinct]
    if known:
        yield Sentence(
            f"From {first} to {last}, {len(distinct)} of {len(known)} numbers change by more than "
            f"their 95% interval{_most_changed(sweep, distinct)}."
        )


def _accuracy(sweep: Sweep, comparison: Comparison) -> str:
    before, after = (
        100 * (sweep.value(m, "accuracy") or 0.0) for m in (comparison.second, comparison.first)
    )
    estimate = comparison.difference
    ends = f"{100 * estimate.low:+.1f} to {100 * estimate.high:+.1f} points"
    change = "not significant" if not comparison.distinct else f"a change of {ends}"
    both = f"{before:.1f}% in {comparison.second} and {after:.1f}% in {comparison.first}"
    return f"The accuracy is {both} ({change})."


def _most_changed(sweep: Sweep, distinct: list[Comparison]) -> str:
    """Name the quantity that grew or shrank by the largest factor."""
    factors: dict[str, float] = {}
    for comparison in distinct:
        before, after = (
            sweep.value(model, comparison.instrument)
            for model in (comparison.second, comparison.first)
        )
        if before and after and before > 0 and after > 0:
            factors[comparison.instrument] = after / before
    if not factors:
        return ""
    name = max(factors, key=lambda name: abs(math.log(factors[name])))
    factor = factors[name]
    verb = (
        f"grows {number(factor, 2)}-fold" if factor > 1 else f"falls to {number(factor, 2)} of it"
    )
    return f"; the {plain(name)} {verb}"


def _strongest(sweep: Sweep) -> Iterator[Sentence]:
    """Say for each column which instrument is most closely correlated with it."""
    for names in _orders(sweep)[:COLUMNS]:
        column = names[0] + (f" (and {listed(names[1:])})" if names[1:] else "")
        known = [
            correlation
            for correlation in sweep.correlations
            if correlation.column == names[0]
            and math.isfinite(correlation.tau.low)
            and correlation.instrument != "loss"
        ]
        clear = [
            correlation
            for correlation in known
            if correlation.tau.low > 0 or correlation.tau.high < 0
        ]
        if not known:
            continue
        if not clear:
            yield Sentence(
                f"None of {len(known)} instruments is clearly correlated with {column}: every "
                "interval of Kendall's tau holds 0."
            )
            continue
        best = max(clear, key=lambda correlation: abs(correlation.tau.value))
        equal = [
            correlation
            for correlation in clear
            if abs(correlation.tau.value) == abs(best.tau.value)
        ]
        verb = f" and {len(equal) - 1} more are" if len(equal) > 1 else " is"
        yield Sentence(
            f"Of {len(known)} instruments, the {plain(best.instrument)}{verb} most closely "
            f"correlated with {column}: {tau_in_words(best)}."
        )


def _orders(sweep: Sweep) -> list[list[str]]:
    """Return the columns, those together that put the models in the same order."""
    orders: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(correlation.column for correlation in sweep.correlations):
        column = sweep.column(name)
        orders.setdefault(tuple(sorted(column, key=lambda m: column[m])), []).append(name)
    return list(orders.values())


def tau_in_words(correlation: Correlation) -> str:
    """Return Kendall's tau with its interval."""
    tau = correlation.tau
    return (
        f"Kendall's tau is {number(tau.value, 2)}, 95% interval {number(tau.low, 2)} to "
        f"{number(tau.high, 2)} over {tau.n} models"
    )


def _left_out(sweep: Sweep) -> Iterator[Sentence]:
    if sweep.left_out:
        names = listed([plain(name) for name in sweep.left_out])
        yield Sentence(f"The time budget had no room for {names}.", warning=True)
