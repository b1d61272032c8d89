"""What ``inscape reproduce`` prints: verdicts, quantities, forecasts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from inscape.cli.tables import print_json, print_table
from inscape.cli.terminal import echo
from inscape.lab.catalogue import name_of
from inscape.lab.experiment import Estimate, Value
from inscape.lab.findings import Finding
from inscape.lab.runner import Report
from inscape.lab.verdict import VERDICTS, Judgement
from inscape.report.words import listed, number, seconds

Row = dict[str, object]


def print_forecast(rows: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    """Print what would be run."""
    if as_json:
        print_json({"experiments": rows[:-1], "all": rows[-1]})
    else:
        print_table(rows, right=("time", "disk"))


def print_verdicts(
    found: Sequence[Finding],
    reports: Sequence[Report],
    pages: Sequence[Path],
    command: str,
    *,
    as_json: bool,
) -> None:
    """Print the verdict on each claim, or the quantities where no claim has one."""
    if as_json:
        print_json(
            {
                "experiments": [_plain(one) for one in found],
                "computed": sum(report.computed for report in reports),
                "seconds": sum(report.seconds for report in reports),
                "pages": [str(page) for page in pages],
                "command": command,
            }
        )
        return
    judged = [(one, judgement) for one in found for judgement in one.here]
    given = [judgement for _, judgement in judged if judgement.verdict != "not run"]
    if given:
        print_table((_verdict(one, j) for one, j in judged), right=("paper", "ours"))
        _print_reasons(judged)
    else:
        print_table((row for one in found for row in _quantities(one)), right=("ours",))
    for one in found:
        for line in one.conclusions if one.scale != "smoke" else ():
            echo(f"{name_of(one.id).partition('/')[2]}: {line}")
    echo(_closing(found, reports))


def about(time: str) -> str:
    """Return a guess of a time as one would say it.

    >>> about("18 s"), about("under 0.1 s")
    ('about 18 s', 'under 0.1 s')
    """
    return time if time.startswith("under") else f"about {time}"


def write_page(path: Path, text: str) -> None:
    """Write a page, whole or not at all."""
    from inscape.report.look.page import write

    write(path, text.encode())


def _print_reasons(judged: Sequence[tuple[Finding, Judgement]]) -> None:
    """Print why a claim was missed, or could not be judged."""
    echo()
    for one, judgement in judged:
        if judgement.verdict in ("not reproduced", "not run"):
            item = name_of(one.id).partition("/")[2]
            reason = f"{judgement.verdict}: {judgement.reason}"
            echo(f"{item}, {judgement.claim.name}: {reason}")


def _closing(found: Sequence[Finding], reports: Sequence[Report]) -> str:
    counts = Counter(judgement.verdict for one in found for judgement in one.here)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    computed = sum(report.computed for report in reports)
    took = seconds(sum(report.seconds for report in reports))
    cells = f"{computed:,} cell{'s' * (computed != 1)}"
    return f"claims: {listed(parts) or 'none'}; {cells} computed in {took}"


def _verdict(one: Finding, judgement: Judgement) -> Row:
    claim, ours = judgement.claim, judgement.ours
    if isinstance(claim, Value):
        paper = number(claim.published)
    else:
        upper = f" and {number(claim.upper)}" if claim.upper is not None else ""
        paper = f"{claim.side} {number(claim.bound)}{upper}"
    return {
        "item": name_of(one.id).partition("/")[2],
        "claim": claim.name,
        "paper": paper,
        "ours": "" if ours is None else number(ours.value, 3),
        "95% interval": "" if ours is None else _interval(ours),
        "verdict": judgement.verdict,
    }


def _quantities(one: Finding) -> list[Row]:
    return [
        {
            "item": name_of(one.id).partition("/")[2],
            "quantity": name,
            "ours": number(ours.value, 3),
            "95% interval": _interval(ours),
            "n": ours.n,
        }
        for name, ours in one.quantities.items()
    ]


def _interval(ours: Estimate) -> str:
    if ours.exact:
        return "exact"
    if not (math.isfinite(ours.low) and math.isfinite(ours.high)):
        return "none"
    return f"{number(ours.low, 3)} to {number(ours.high, 3)}"


def _plain(one: Finding) -> Row:
    return {
        "experiment": name_of(one.id),
        "scale": one.scale,
        "cells": len(one.records),
        "changed": list(one.changed),
        "claims": [
            {
                **asdict(judgement.claim),
                "verdict": judgement.verdict,
                "reason": judgement.reason,
                "ours": judgement.ours and asdict(judgement.ours),
            }
            for judgement in one.judgements
        ],
        "conclusions": list(one.conclusions),
        "quantities": {name: asdict(ours) for name, ours in one.quantities.items()},
    }
