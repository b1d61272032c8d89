"""What a comparison shows, in sentences for the top of its page and for the terminal."""

import math
from collections.abc import Iterator

from inscape.report.comparison.compare import Compare, PairMeasurement
from inscape.report.sweeps.sentences import Sentence
from inscape.report.sweeps.table import Comparison
from inscape.report.words import first_up, listed, number, plain
from inscape.similarity import Disagreement, LayerMatrix, SliceDifference
from inscape.similarity.layer_matrix import OUTPUT

#: What other sentences say.
SAID = ("accuracy", "loss")
#: Names of instruments in one sentence, at most.
NAMED = 4


def introduction(compare: Compare) -> str:
    """Return what was compared, on what."""
    sweep = compare.sweep
    of = f" of {sweep.data}" if compare.is_named else ""
    count = "Both" if len(compare.names) == 2 else f"All {len(compare.names)}"
    return (
        f"{count} networks on the same {sweep.rows_measured:,} examples{of}, with the "
        f"same random draws (seed {sweep.seed}), so that they are compared example by example."
    )


def sentences(compare: Compare) -> list[Sentence]:
    """Return what a comparison shows, what went wrong first."""
    return [
        *_failures(compare),
        *_disagreement(compare),
        *_accuracy(compare),
        *_slice(compare),
        *_layers(compare),
        *_differences(compare),
    ]


def _failures(compare: Compare) -> Iterator[Sentence]:
    failed = [plain(pair.instrument) for pair in compare.failed]
    failed += [plain(measurement.instrument) for measurement in compare.sweep.failed]
    if failed:
        names = list(dict.fromkeys(failed))
        yield Sentence(f"{first_up(listed(names[:NAMED]))} could not be measured.", warning=True)


def _shown(compare: Compare, name: str) -> PairMeasurement | None:
    measured = compare.measurement(name, *compare.pair)
    return None if measured is None or measured.summary is None else measured


def _disagreement(compare: Compare) -> Iterator[Sentence]:
    measured = _shown(compare, "disagreement")
    if measured is None or measured.summary is None:
        return
    summary = measured.summary
    two = len(compare.names) == 2
    which = "The networks" if two else listed(compare.pair)
    if summary.value == 0:
        assert isinstance(measured.result, Disagreement)
        largest = float(measured.result.distances.max())
        certainty = "are the same" if largest == 0 else f"differ by at most {number(largest, 2)}"
        yield Sentence(
            f"{which} give every example the same class, and their probabilities {certainty}; of "
            f"other examples at most {_percent(summary.high or 0.0)} would get another class (95%)."
        )
        return
    most = "" if two else _rank(compare, summary.value)
    yield Sentence(
        f"{which} give different classes to {_percent(summary.value)} of the examples (95% "
        f"{_percent(summary.low or 0.0)} to {_percent(summary.high or 1.0)}){most}."
    )


def _rank(compare: Compare, largest: float) -> str:
    """Return how the networks that are shown stand among all pairs."""
    values = [
        pair.summary.value
        for pair in compare.pairs
        if pair.instrument == "disagreement" and pair.summary is not None
    ]
    alone = sum(value == largest for value in values) == 1
    return ", more than any other two" if alone else ", and no other two more often"


def _percent(value: float) -> str:
    return f"{number(100 * value, 2 if value < 0.1 else 3)}%"


def _accuracy(compare: Compare) -> Iterator[Sentence]:
    first, second = compare.pair
    for comparison in compare.sweep.differences(first, second):
        if comparison.instrument != "accuracy":
            continue
        values = [compare.sweep.value(name, "accuracy") or 0.0 for name in (first, second)]
        points = comparison.difference
        interval = f"{_signed(100 * points.low)} to {_signed(100 * points.high)} points"
        verdict = "no clear difference" if not comparison.distinct else "a difference"
        yield Sentence(
            f"{first} is right on {_percent(values[0])} and {second} on {_percent(values[1])}: "
            f"{verdict} (95% {interval}, paired)."
        )


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def _slice(compare: Compare) -> Iterator[Sentence]:
    measured = _shown(compare, "slice_difference")
    result = compare.result("slice_difference")
    if measured is None or measured.summary is None or not isinstance(result, SliceDifference):
        return
    share, largest = _percent(measured.summary.value), number(result.largest, 3)
    extent = f"exactly {share} of the window, and their outputs by at most {largest}"
    if not result.exact:
        time = f", {result.covered:.0%} of which there was time for" if result.covered < 1 else ""
        extent = f"about {share} of the window{time}, and their outputs by up to {largest} there"
    yield Sentence(f"In the plane through three examples they differ on {extent}.")


def _layers(compare: Compare) -> Iterator[Sentence]:
    result = compare.result("layer_alignment")
    if not isinstance(result, LayerMatrix):
        return
    i, j = result.headline
    value = float(result.values[i, j])
    names = result.layers[i], result.other_layers[j]
    which = f"last hidden layers ({listed(names)})" if OUTPUT not in names else "outputs"
    yield Sentence(
        f"Their {which} have an alignment (debiased CKA) of {number(value, 3)}, where permuted "
        f"examples give {number(round(result.by_chance(), 2), 2)}."
    )


def _differences(compare: Compare) -> Iterator[Sentence]:
    differences = compare.sweep.differences(*compare.pair)
    known = [c for c in differences if _has_interval(c) and c.instrument not in SAID]
    distinct = [c for c in known if c.distinct]
    if not known:
        return
    names = [plain(c.instrument) for c in sorted(distinct, key=_clarity, reverse=True)]
    if len(known) == 1:
        verb = "tells" if distinct else "does not tell"
        yield Sentence(f"The {plain(known[0].instrument)} {verb} them apart.")
        return
    which = f": most clearly the {listed(names[:NAMED])}" if names else ""
    yield Sentence(
        f"{len(distinct)} of {len(known)} instruments with an interval tell them apart{which}."
    )


def _has_interval(comparison: Comparison) -> bool:
    return math.isfinite(comparison.difference.low) and not comparison.difference.exact


def _clarity(comparison: Comparison) -> float:
    """Return a difference in units of the half width of its interval."""
    estimate = comparison.difference
    return abs(estimate.value) / max(1e-300, (estimate.high - estimate.low) / 2)
