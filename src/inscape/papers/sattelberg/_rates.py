"""Success rates of table 4.2 and their means: the printed ones, and ours with intervals."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import sqrt

from inscape.lab.experiment import Estimate
from inscape.lab.statistics import paired_difference, proportion_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._disc import ENOUGH

#: loss, leak, batch, normalise.
Row = tuple[str, float, int, bool]

#: The choices that claims are judged with.
JUDGED = {"init": "pytorch", "one": "circle"}
FACTORS: dict[str, tuple[str | float | int | bool, ...]] = {
    "loss": ("MSE", "BCE"),
    "leak": (0.0, 0.01, 0.1),
    "batch": (10, 100, 1000),
    "normalise": (True, False),
}
#: Successes of 100 as printed: normalised, then not, for each loss, leak and batch size.
_PRINTED = {
    ("MSE", 0.0): {10: (62, 45), 100: (52, 38), 1000: (37, 29)},
    ("MSE", 0.01): {10: (88, 85), 100: (64, 64), 1000: (42, 50)},
    ("MSE", 0.1): {10: (94, 84), 100: (58, 57), 1000: (37, 47)},
    ("BCE", 0.0): {10: (69, 47), 100: (61, 48), 1000: (56, 42)},
    ("BCE", 0.01): {10: (91, 83), 100: (82, 74), 1000: (61, 53)},
    ("BCE", 0.1): {10: (90, 84), 100: (73, 74), 1000: (63, 59)},
}
PRINTED: dict[Row, int] = {
    (loss, leak, batch, normalise): count
    for (loss, leak), batches in _PRINTED.items()
    for batch, pair in batches.items()
    for normalise, count in zip((True, False), pair, strict=True)
}
ROWS: tuple[Row, ...] = tuple(PRINTED)
Z = 1.959964


def name(row: Row) -> str:
    """Return a row as text."""
    loss, leak, batch, normalise = row
    return f"{loss}, leak {leak:g}, batch {batch}, {'normalised' if normalise else 'as drawn'}"


def printed_mean(factor: str, level: object) -> float:
    """Return the mean success of all rows with one level of a factor, as printed."""
    chosen = [PRINTED[row] / 100 for row in ROWS if _has(row, factor, level)]
    return sum(chosen) / len(chosen)


def printed_mean_se(factor: str, level: object) -> float:
    """Return the spread that a mean of printed counts has as a draw."""
    chosen = [PRINTED[row] / 100 for row in ROWS if _has(row, factor, level)]
    return sqrt(sum(p * (1 - p) / 100 for p in chosen)) / len(chosen)


def _has(row: Row, factor: str, level: object) -> bool:
    return row[list(FACTORS).index(factor)] == level


def wilson(successes: int, n: int) -> Estimate:
    """Return a fraction with Wilson's interval, and a standard error that is never zero."""
    return replace(proportion_estimate(successes, n), se=sqrt(variance(successes, n)))


def variance(successes: int, n: int) -> float:
    """Return the variance of a share, with one success and one failure more (Agresti)."""
    p = (successes + 1) / (n + 2)
    return p * (1 - p) / n


def rows_of(records: Sequence[Record], **choice: str) -> dict[Row, Record]:
    """Return the records of one choice of initialisation and labels."""
    wanted = JUDGED | choice
    found = {}
    for record in records:
        s = record.settings
        if all(s[key] == value for key, value in wanted.items()):
            found[s["loss"], s["leak"], s["batch"], s["normalise"]] = record
    return found


def choices(records: Sequence[Record]) -> list[dict[str, str]]:
    """Return the choices that were run, the judged one first."""
    found = {(r.settings["init"], r.settings["one"]) for r in records}
    order = sorted(found, key=lambda pair: (pair != tuple(JUDGED.values()), pair))
    return [{"init": init, "one": one} for init, one in order]


def successes(record: Record, when: str = "best") -> tuple[int, int]:
    """Return how many networks succeeded, at some epoch (best) or the last (end), and of how many.

    The rule is 95% of the points or more.
    """
    found = record.values[when]
    return sum(k >= ENOUGH * record.settings["points"] for k in found), len(found)


def mean(cells: Sequence[tuple[int, int]], signs: Sequence[float] | None = None) -> Estimate:
    """Return the mean share of cells, or their weighted sum, with a normal interval."""
    weights = signs or [1 / len(cells)] * len(cells)
    value = sum(w * s / n for w, (s, n) in zip(weights, cells, strict=True))
    se = sqrt(sum(w * w * variance(s, n) for w, (s, n) in zip(weights, cells, strict=True)))
    return Estimate(
        value=value,
        low=value - Z * se,
        high=value + Z * se,
        se=se,
        n=sum(n for _, n in cells),
        method="binomial spread of every cell",
        interval="binomial",
    )


def analyse(records: Sequence[Record], when: str = "best", **choice: str) -> dict[str, Estimate]:
    """Return rates, their means for every level, the differences of these, and extremes."""
    rows = {row: successes(r, when) for row, r in rows_of(records, **choice).items()}
    found = {name(row): wilson(*pair) for row, pair in rows.items()}
    if set(rows) == set(ROWS):
        found |= _means(rows) | _extremes(rows)
    return found


def _means(rows: dict[Row, tuple[int, int]]) -> dict[str, Estimate]:
    found = {}
    for factor, levels in FACTORS.items():
        for level in levels:
            chosen = [rows[row] for row in ROWS if _has(row, factor, level)]
            found[f"{factor} {level}"] = mean(chosen)
        for one, other in product(levels, levels):
            if one != other:
                sides = [
                    [s / n for row in ROWS if _has(row, factor, level) for s, n in [rows[row]]]
                    for level in (one, other)
                ]
                # Over settings: the binomial spread alone passes a third of permuted labels.
                found[f"{factor} {one} - {other}"] = paired_difference(*sides)
    return found


def _extremes(rows: dict[Row, tuple[int, int]]) -> dict[str, Estimate]:
    """Return the best rate with batch 1000 or leak 0, and the lowest best of all other levels."""
    best = {
        (factor, level): max(
            (rows[row] for row in ROWS if _has(row, factor, level)), key=lambda pair: pair[0]
        )
        for factor, levels in FACTORS.items()
        for level in levels
    }
    low = [best["leak", 0.0], best["batch", 1000]]
    rest = [pair for key, pair in best.items() if key not in (("leak", 0.0), ("batch", 1000))]
    return {
        "best of the weak": wilson(*max(low, key=lambda pair: pair[0])),
        "least best of the others": wilson(*min(rest, key=lambda pair: pair[0])),
    }


def agreeing(records: Sequence[Record], when: str = "best", **choice: str) -> tuple[int, int]:
    """Return how many printed counts are within two standard errors of ours, and of how many."""
    rows = {row: successes(r, when) for row, r in rows_of(records, **choice).items()}
    close = 0
    for row, (count, n) in rows.items():
        p = PRINTED[row] / 100
        close += abs(count / n - p) <= 2 * sqrt(variance(count, n) + p * (1 - p) / 100)
    return close, len(rows)
