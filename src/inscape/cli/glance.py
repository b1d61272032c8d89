"""What a look shows in the terminal: the report's own summary, or JSON."""

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from inscape.cli.explained import print_attribution
from inscape.cli.tables import print_json, print_table
from inscape.cli.terminal import echo

if TYPE_CHECKING:
    import inscape._core
    import inscape.report


def print_look(look: "inscape.report.Look", page: Path | None, *, as_json: bool) -> None:
    """Print what was found, before it is written, so that a full disk loses nothing."""
    if as_json:
        print_json({**look.to_dict(), "page": None if page is None else str(page)})
        return
    from inscape.report.look.sentences import introduction

    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    echo("\n".join(textwrap.wrap(introduction(look), width)) + "\n")
    for finding in look.findings:
        text = " ".join(filter(None, (finding.text, finding.advice)))
        lines = textwrap.wrap(text, width, initial_indent="* ", subsequent_indent="  ")
        echo("\n".join(lines))
    echo("", nl=bool(look.findings))
    _print_measures(look)
    others = [f"{row['measure']}: {row['status']}" for row in look.rows() if "value" not in row]
    others += _unavailable(look)
    others += [f"warning, {name}: {warning}" for name, warning in _warnings(look)]
    others += [f"not looked into: {sentence}" for sentence in look.unchecked]
    echo("\n".join(["", *others]) if others else "", nl=bool(others))
    if look.attribution is not None:
        print_attribution(look.attribution)


def _print_measures(look: "inscape.report.Look") -> None:
    """Print the report's table: by question, the most surprising numbers first."""
    from inscape.report.look.directions import by_question
    from inscape.report.look.reference_scale import SHORT

    rows = [_row(measured) for _, group in by_question(look.measures) for measured in group]
    print_table(rows, right=("this network", *SHORT.values()))


def _row(measured: "inscape.report.look.parts.Measured") -> dict[str, str]:
    """Return a line of the report's table: the same columns, the same digits."""
    from inscape.report.look.directions import direction
    from inscape.report.look.reference_scale import SHORT
    from inscape.report.words import number

    found, points = measured.summary, direction(measured.name)
    held = {label: measured.reference(name) for name, label in SHORT.items()}
    return {
        "measure": measured.name,
        "this network": number(found.value) if found else measured.result.status,
        "95% interval": _interval(found) if found else "",
        "mark": found.kind if found else "",
        **{
            label: (reference.text(number) if reference else "") or "-"
            for label, reference in held.items()
        },
        "direction": points.short if points else "",
    }


def _warnings(look: "inscape.report.Look") -> list[tuple[str, str]]:
    """Return the names of measures that may not be believed, each with a sentence that says why."""
    said = [(measured.name, getattr(measured.result, "warnings", ())) for measured in look.measures]
    return [(name, warning) for name, warnings in said for warning in warnings]


def _unavailable(look: "inscape.report.Look") -> list[str]:
    """Say why there is nothing to hold a number against, once for each reason."""
    from inscape.report.look.reference_scale import SHORT

    missing = [
        f"{SHORT[name]}: {reference.reason}"
        for measured in look.measures
        for name in ("initialisation", "linear")
        if (reference := measured.reference(name)) and reference.value is None
    ]
    below = [
        f"{measured.name} is below its lower bound: the network does not fit the labels exactly"
        for measured in look.measures
        if (bound := measured.reference("bound")) and measured.summary and bound.value is not None
        if measured.summary.value < bound.value
    ]
    return list(dict.fromkeys([*missing, *below]))


def _interval(found: "inscape._core.Summary") -> str:
    from inscape.report.words import number

    if found.low is None or found.high is None:
        return ""
    return f"{number(found.low)} to {number(found.high)}"
