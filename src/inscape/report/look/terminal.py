"""What a terminal shows of a look: its findings, the report's own table, and what is missing."""

from collections.abc import Iterator

from inscape._core import Summary
from inscape.report.look.attribution_text import attribution_text
from inscape.report.look.directions import by_question, direction
from inscape.report.look.look import Look
from inscape.report.look.parts import Measured
from inscape.report.look.reference_scale import SHORT
from inscape.report.look.sentences import introduction
from inscape.report.text_table import Block, TextTable, wrapped
from inscape.report.words import number


def look_text(look: Look) -> Iterator[Block]:
    """Yield the paragraphs and the table that summarise a look, in the page's order."""
    yield wrapped(introduction(look)) + "\n"
    for finding in look.findings:
        text = " ".join(filter(None, (finding.text, finding.advice)))
        yield wrapped(text, first="* ", later="  ")
    if look.findings:
        yield ""
    yield _table(look)
    notes = [f"{row['instrument']}: {row['status']}" for row in look.rows() if "value" not in row]
    notes += _without_reference(look)
    notes += [f"warning, {name}: {warning}" for name, warning in _warnings(look)]
    notes += [f"not looked into: {sentence}" for sentence in look.unchecked]
    if notes:
        yield "\n".join(["", *notes])
    if look.attribution is not None:
        yield attribution_text(look.attribution)


def _table(look: Look) -> TextTable:
    """Return the report's table: by question, the most surprising numbers first."""
    rows = [_row(measured) for _, group in by_question(look.measurements) for measured in group]
    return TextTable(rows, right=("this network", *SHORT.values()))


def _row(measured: Measured) -> dict[str, str]:
    """Return a line of the report's table: the same columns, the same digits."""
    summary, points = measured.summary, direction(measured.name)
    references = {label: measured.reference(name) for name, label in SHORT.items()}
    return {
        "instrument": measured.name,
        "this network": number(summary.value) if summary else measured.result.status,
        "95% interval": _interval(summary) if summary else "",
        "mark": measured.certainty if summary else "",
        **{
            label: (reference.text(number) if reference else "") or "-"
            for label, reference in references.items()
        },
        "direction": points.short if points else "",
    }


def _warnings(look: Look) -> list[tuple[str, str]]:
    """Return each warning about a number, with the name of its instrument."""
    return [
        (measured.name, warning)
        for measured in look.measurements
        for warning in getattr(measured.result, "warnings", ())
    ]


def _without_reference(look: Look) -> list[str]:
    """Say why there is no baseline to compare a number with, once for each reason."""
    missing = [
        f"{SHORT[name]}: {reference.reason}"
        for measured in look.measurements
        for name in ("initialisation", "linear")
        if (reference := measured.reference(name)) and reference.value is None
    ]
    below = [
        f"{measured.name} is below its lower bound: the network does not fit the labels exactly"
        for measured in look.measurements
        if (bound := measured.reference("bound")) and measured.summary and bound.value is not None
        if measured.summary.value < bound.value
    ]
    return list(dict.fromkeys([*missing, *below]))


def _interval(summary: Summary) -> str:
    if summary.low is None or summary.high is None:
        return ""
    return f"{number(summary.low)} to {number(summary.high)}"
