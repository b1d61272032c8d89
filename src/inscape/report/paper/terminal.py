"""What a terminal shows of a reproduction: forecasts, verdicts, quantities."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inscape.lab.catalogue import name_of
from inscape.lab.experiment import Value
from inscape.lab.experiment_outcome import ExperimentOutcome
from inscape.lab.reproduction import Reproduction
from inscape.lab.reproduction_plan import ReproductionPlan
from inscape.lab.verdict import Judgement
from inscape.report.paper.claims import interval
from inscape.report.text_table import Block, TextTable
from inscape.report.words import about, listed, number, seconds

Row = dict[str, object]
Judged = Sequence[tuple[ExperimentOutcome, Judgement]]


def announcement(planned: ReproductionPlan) -> str:
    """Say how many cells there are, how many are missing, and how long they will take."""
    total, count = planned.forecast()[-1], len(planned.plans)
    many = f"{count} experiment{'s' * (count != 1)} at scale {planned.scale}"
    cells = f"{total['cells']:,} cell{'s' * (total['cells'] != 1)}"
    sentence = f"{many}: {cells}, {total['missing']:,} to compute"
    if not total["missing"]:
        return f"{sentence}: all records are there"
    return f"{sentence}, {about(total['seconds'])} with {planned.executor.jobs} at a time"


def forecast_rows(planned: ReproductionPlan) -> list[Row]:
    """Return cells, time and disk of each experiment, and of all in the last row."""
    return [
        {
            "experiment": row["experiment"],
            "cells": row["cells"],
            "to compute": row["missing"],
            "time": seconds(row["seconds"]) if row["seconds"] else "none",
            "disk": _size(row["bytes"]),
            "note": f"shows records of {row['shows']}" if row["shows"] else "",
        }
        for row in planned.forecast()
    ]


def reproduction_text(reproduction: Reproduction) -> Iterator[Block]:
    """Yield the verdict on each claim, or the quantities where no claim has one."""
    outcomes = reproduction.outcomes
    judged = [(outcome, judgement) for outcome in outcomes for judgement in outcome.comparable]
    if any(judgement.verdict != "not run" for _, judgement in judged):
        yield TextTable([_verdict(*pair) for pair in judged], right=("paper", "ours"))
        yield ""
        yield from _reasons(judged)
    else:
        rows = [row for outcome in outcomes for row in _quantities(outcome)]
        yield TextTable(rows, right=("ours",))
    for outcome in outcomes:
        for line in outcome.conclusions if outcome.scale != "smoke" else ():
            yield f"{_item(outcome)}: {line}"
    yield _closing(reproduction)


def reproduction_dict(reproduction: Reproduction, pages: Sequence[Path]) -> dict[str, Any]:
    """Return verdicts, quantities and pages as plain values, for JSON."""
    return {
        "experiments": [_row(outcome) for outcome in reproduction.outcomes],
        "computed": reproduction.computed,
        "seconds": reproduction.seconds,
        "pages": [str(page) for page in pages],
        "command": reproduction.command,
    }


def _reasons(judged: Judged) -> Iterator[str]:
    """Yield why a claim was missed, or could not be judged."""
    for outcome, judgement in judged:
        if judgement.verdict not in ("reproduced", "by construction"):
            reason = f"{judgement.verdict}: {judgement.reason}"
            yield f"{_item(outcome)}, {judgement.claim.name}: {reason}"


def _closing(reproduction: Reproduction) -> str:
    parts = [f"{count} {verdict}" for verdict, count in reproduction.counts.items()]
    computed = reproduction.computed
    cells = f"{computed:,} cell{'s' * (computed != 1)}"
    time = seconds(reproduction.seconds)
    return f"claims: {listed(parts) or 'none'}; {cells} computed in {time}"


def _verdict(outcome: ExperimentOutcome, judgement: Judgement) -> Row:
    claim, ours = judgement.claim, judgement.ours
    if isinstance(claim, Value):
        paper = number(claim.published)
    else:
        upper = f" and {number(claim.upper)}" if claim.upper is not None else ""
        paper = f"{claim.side} {number(claim.bound)}{upper}"
    return {
        "item": _item(outcome),
        "claim": claim.name,
        "paper": paper,
        "ours": "" if ours is None else number(ours.value, 3),
        "95% interval": "" if ours is None else interval(ours),
        "verdict": judgement.verdict + (", same trend" if judgement.same_trend else ""),
    }


def _quantities(outcome: ExperimentOutcome) -> list[Row]:
    return [
        {
            "item": _item(outcome),
            "quantity": name,
            "ours": number(ours.value, 3),
            "95% interval": interval(ours),
            "n": ours.n,
        }
        for name, ours in outcome.quantities.items()
    ]


def _item(outcome: ExperimentOutcome) -> str:
    return name_of(outcome.id).partition("/")[2]


def _row(outcome: ExperimentOutcome) -> Row:
    return {
        "experiment": name_of(outcome.id),
        "scale": outcome.scale,
        "cells": len(outcome.records),
        "changed": list(outcome.changed),
        "claims": [
            {
                **asdict(judgement.claim),
                "verdict": judgement.verdict,
                "same_trend": judgement.same_trend,
                "seeds": judgement.seeds,
                "otherwise": judgement.otherwise,
                "rule": judgement.rule,
                "reason": judgement.reason,
                "ours": judgement.ours and asdict(judgement.ours),
            }
            for judgement in outcome.judgements
        ],
        "conclusions": list(outcome.conclusions),
        "quantities": {name: asdict(ours) for name, ours in outcome.quantities.items()},
    }


def _size(size: int) -> str:
    """Return a size in words; the guess is no better than that."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
