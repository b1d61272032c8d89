"""Writes the table of foreign models into docs/models-in.md: ``python -m zoo.table``."""

import argparse
import math
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

import zoo.models_hugging_face
import zoo.models_keras
import zoo.models_modules
import zoo.models_onnx
import zoo.models_sklearn
import zoo.models_torch  # noqa: F401 - each puts its rows on the list
from zoo.brute_force import ROUNDING, Outcome, compared
from zoo.files import ROOT, AbsentError
from zoo.rows import ROWS, Row

PAGE = ROOT / "docs" / "models-in.md"
BEGIN, END = "<!-- zoo: written by make test-models -->", "<!-- zoo: end -->"


def outcome_of(row: Row, folder: Path) -> tuple[str, list[Outcome]]:
    """Return how a model was opened, and what each measure did."""
    subject = row.make(folder)
    return subject.how, compared(subject.model, subject.x, light=row.light, integers=row.integers)


def faults(row: Row, outcomes: list[Outcome]) -> list[str]:
    """Return what is wrong with the outcomes of a row."""
    wrong = [
        f"{o.measure} differs by {o.difference:.1g}"
        for o in outcomes
        if not o.reason and not o.difference <= ROUNDING
    ]
    applied = {o.measure for o in outcomes if not o.reason}
    for o in outcomes:
        expected = row.forbidden and row.forbidden in o.reason
        if o.measure in ("path_length", "gradient_norm") and o.reason and not expected:
            wrong.append(f"{o.measure}: {o.reason}")
    if row.forbidden and "gradient_norm" in applied:
        wrong.append("a gradient of a function that has none")
    return wrong


def line(row: Row, number: int, how: str, outcomes: list[Outcome], wrong: list[str]) -> str:
    """Return the row of the table."""
    applied = [o for o in outcomes if not o.reason]
    measures = ", ".join(o.measure for o in applied) or "none"
    largest = max((o.difference for o in applied), default=math.nan)
    result = f"{largest:.0e}" if not wrong else f"**{'; '.join(wrong)[:200]}**"
    cells = (str(number), row.kind, row.name, how, measures, result)
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def main() -> None:
    """Open all models, or those whose names hold a word, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", default="", help="Part of a name or kind: only these rows.")
    only = parser.parse_args().only
    rows = [row for row in ROWS if only.lower() in f"{row.name} {row.kind}".lower()]
    lines, failed = [], 0
    for number, row in enumerate(sorted(ROWS, key=lambda row: row.kind.lower()), 1):
        if row not in rows:
            continue
        began = time.monotonic()
        text, wrong = _entry(row, number)
        failed += bool(wrong)
        lines.append(text)
        sys.stdout.write(f"{time.monotonic() - began:5.1f} s {text}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(rows)} models, {failed} with something wrong\n")
    _write(lines if not only else _replaced(lines))
    raise SystemExit(1 if failed else 0)


def _entry(row: Row, number: int) -> tuple[str, list[str]]:
    if row.missing:
        return line(row, number, "", [], wrong := [f"{row.missing[0]} is not installed"]), wrong
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            how, outcomes = outcome_of(row, Path(folder))
        except AbsentError as error:
            return line(row, number, "", [], wrong := [str(error)]), wrong
        except Exception as error:  # the table says what is wrong with each, and goes on
            return line(row, number, "", [], wrong := [f"{type(error).__name__}: {error}"]), wrong
    wrong = faults(row, outcomes)
    return line(row, number, how, outcomes, wrong), wrong


def _replaced(lines: list[str]) -> list[str]:
    """Return the lines of the page with some of them new, in the order of the models."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    former = [text for text in rest.partition(END)[0].splitlines() if text.startswith("| ")][2:]
    by_name = {text.split(" | ")[2]: text for text in [*former, *lines]}
    names = [row.name for row in sorted(ROWS, key=lambda row: row.kind.lower())]
    ordered = [by_name[name] for name in names if name in by_name]
    return [re.sub(r"^\| \d+", f"| {n}", text) for n, text in enumerate(ordered, 1)]


def _write(lines: list[str]) -> None:
    head = (
        "| | kind | model | opened | instruments that apply | largest difference |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
    )
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = head + "\n".join(lines) + "\n"
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
