"""A comparison in the terminal: what it shows, and the measures in tables."""

import math
from collections.abc import Iterator

from inscape.report.comparison.compare import Compare
from inscape.report.comparison.figures import pair_values
from inscape.report.comparison.sentences import sentences
from inscape.report.comparison.session import PreparedCompare
from inscape.report.text_table import Block, TextTable
from inscape.report.words import plain, seconds
from inscape.similarity.invariances import DIRECTED, INVARIANT_TO


def announcement(prepared: PreparedCompare) -> str:
    """Say what is compared, and how long it is expected to take."""
    rows = len(prepared.opened[0].subject.x)
    expected = min(prepared.budget, sum(prepared.forecast.values()))
    return (
        f"comparing {len(prepared.entries)} networks on {rows:,} examples of "
        f"{prepared.opened[0].data.name}: {len(prepared.measures)} measures of similarity and "
        f"{len(prepared.chosen)} instruments of each, up to {seconds(expected)}"
    )


def forecast_rows(prepared: PreparedCompare) -> list[dict[str, object]]:
    """Return what would be measured, with the seconds that it is expected to take."""
    rows: list[dict[str, object]] = [
        {"instrument": name, "seconds": took, "status": "to measure"}
        for name, took in sorted(prepared.forecast.items(), key=lambda item: item[1])
    ]
    return rows + [
        {"instrument": name, "seconds": took, "status": "left out for time"}
        for name, took in prepared.left_out.items()
    ]


def compare_text(compare: Compare) -> list[Block]:
    """Return the texts and tables that summarise a comparison."""
    blocks: list[Block] = [sentence.text for sentence in sentences(compare)]
    if len(compare.names) == 2:
        blocks += ["", TextTable(rows=list(_measures(compare)))]
    else:
        blocks += ["", TextTable(rows=list(_pairs(compare)))]
    differences = [difference.row() for difference in compare.sweep.differences(*compare.pair)]
    if differences:
        keys = ("instrument", "difference", "low", "high", "method")
        title = f"{compare.pair[0]} minus {compare.pair[1]}"
        rows = [{key: row[key] for key in keys} for row in differences]
        blocks += ["", TextTable(title=title, rows=rows)]
    return blocks


def _measures(compare: Compare) -> Iterator[dict[str, object]]:
    for pair in compare.pairs:
        if pair.summary is not None:
            yield {
                "measure": plain(pair.instrument), "value": pair.summary.value,
                "low": pair.summary.low, "high": pair.summary.high,
                "ignores": INVARIANT_TO.get(pair.instrument, ""),
            }  # fmt: skip


def _pairs(compare: Compare) -> Iterator[dict[str, object]]:
    """Yield a row for every two networks; what has a direction is given there and back."""
    matrices = {name: pair_values(compare, name) for name in compare.measures}
    for j, second in enumerate(compare.names):
        for i, first in enumerate(compare.names[:j]):
            row: dict[str, object] = {"networks": f"{first}, {second}"}
            for name, values in matrices.items():
                row[plain(name)] = _known(values[i][j])
                if name in DIRECTED:
                    row[f"{plain(name)}, back"] = _known(values[j][i])
            yield row


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
