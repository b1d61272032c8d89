"""Every verdict that another version of the rule changed, as a page: before, after and why."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inscape.lab.experiment_outcome import ExperimentOutcome
from inscape.lab.verdict import RULE, RULE_VERSION, VERDICTS, Judgement

#: The verdicts of version 1, kept beside the records: experiment, then claim.
BEFORE = "verdicts-rule-1.json"

Change = Mapping[str, Any]


def changes(outcomes: Sequence[ExperimentOutcome], before: Mapping[str, Any]) -> Iterator[Change]:
    """Yield each claim whose verdict is another one now.

    Args:
        outcomes: What the records give now.
        before: The verdict on each claim before, by experiment.
    """
    for outcome in outcomes:
        for judgement in outcome.judgements:
            then = before.get(outcome.id, {}).get(judgement.claim.name, "")
            if then and then != judgement.verdict:
                yield {
                    "experiment": outcome.id,
                    "claim": judgement.claim.name,
                    "before": then,
                    "after": judgement.verdict,
                    "same_trend": judgement.same_trend,
                    "reason": judgement.reason,
                }


def changed_verdicts(outcomes: Sequence[ExperimentOutcome], before: Mapping[str, Any]) -> str:
    """Return the page of changed verdicts as Markdown.

    Args:
        outcomes: What the records give now; what version 1 never judged is left out.
        before: The verdict on each claim before, by experiment.
    """
    outcomes = [outcome for outcome in outcomes if outcome.id in before]
    rows = list(changes(outcomes, before))
    claims = sum(len(_judged_before(outcome, before)) for outcome in outcomes)
    lines = [
        "# Verdicts that the rule changed",
        "",
        f"Version {RULE_VERSION} of the rule judged all records anew: of {claims:,} claims "
        f"{len(rows):,} have another verdict than under version 1. No record was changed; seeds "
        "that were added since then count, claims that were added since then are left out. The "
        "page is written by `inscape pages --verdicts docs/verdicts.md`; the verdicts of version "
        f"1 are kept in `results/{BEFORE}`.",
        "",
        "## The rule",
        "",
        RULE,
        "",
        "## Counts",
        "",
        "| paper | rule | " + " | ".join(_verdicts(outcomes, before)) + " |",
        "| --- | --- |" + " ---: |" * len(_verdicts(outcomes, before)),
        *_counts(outcomes, before),
        "",
    ]
    experiment = ""
    for row in rows:
        if row["experiment"] != experiment:
            experiment = row["experiment"]
            heads = [f"## {experiment}", "", "| claim | before | after | why |"]
            lines += [*heads, "| --- | --- | --- | --- |"]
        trend = ", same trend" if row["same_trend"] else ""
        reason = row["reason"].replace("|", "\\|")
        lines.append(f"| {row['claim']} | {row['before']} | {row['after']}{trend} | {reason} |")
        if _ends(rows, row):
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def read_before(path: Path) -> dict[str, Any]:
    """Return the verdicts of version 1."""
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return known


def _judged_before(outcome: ExperimentOutcome, before: Mapping[str, Any]) -> list[Judgement]:
    """Return the verdicts on the claims that version 1 judged, too."""
    known = before.get(outcome.id, {})
    return [judged for judged in outcome.judgements if judged.claim.name in known]


def _ends(rows: Sequence[Change], row: Change) -> bool:
    after = rows[rows.index(row) + 1 :][:1]
    return not after or after[0]["experiment"] != row["experiment"]


def _verdicts(outcomes: Sequence[ExperimentOutcome], before: Mapping[str, Any]) -> list[str]:
    """Return the verdicts of both rules, the older ones first where they differ."""
    then = {verdict for claims in before.values() for verdict in claims.values()}
    return [*VERDICTS[:2], *sorted(then - set(VERDICTS)), *VERDICTS[2:]]


def _counts(outcomes: Sequence[ExperimentOutcome], before: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of the table of counts: each paper under both rules."""
    columns = _verdicts(outcomes, before)
    papers = dict.fromkeys(outcome.id.partition("/")[0] for outcome in outcomes)
    for paper in papers:
        own = [outcome for outcome in outcomes if outcome.id.startswith(f"{paper}/")]
        now: Counter[str] = Counter(
            judged.verdict for outcome in own for judged in _judged_before(outcome, before)
        )
        then: Counter[str] = Counter(
            verdict for outcome in own for verdict in before.get(outcome.id, {}).values()
        )
        for rule, counter in (("1", then), (str(RULE_VERSION), now)):
            cells = " | ".join(str(counter[verdict] or "") for verdict in columns)
            yield f"| {paper} | {rule} | {cells} |"
