"""Claims of a paper in words and numbers, as its page shows them."""

import math
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from inscape.lab.experiment import Estimate, Trend, Value
from inscape.lab.findings import Finding
from inscape.lab.verdict import Judgement
from inscape.report.paper.table import NOT_COMPARED, printed
from inscape.report.words import listed, number


def claims(finding: Finding, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the claims to show, in their order; a reason that the state gives is not repeated.

    A number of the paper's table that belongs to another scale has ours beside it where nothing
    else stands in its place, but no verdict.
    """
    here = {one.claim.name for one in finding.here}
    taken = {one.claim.at for one in finding.here if isinstance(one.claim, Value)}
    said = _said(finding)
    shown = []
    for judgement in finding.judgements:
        one = claim(judgement, entry)
        if judgement.claim.name in here:
            shown.append({**one, "reason": ""} if judgement.reason in said else one)
        elif one["ours"] and one["at"] not in {("", ""), *taken}:
            shown.append({**one, "verdict": NOT_COMPARED})
    return shown


def _said(finding: Finding) -> set[str]:
    """Return the reasons for no verdict that hold for a whole section, as its state says."""
    if finding.scale is None:
        return {one.reason for one in finding.judgements}
    if finding.scale == "smoke" or finding.changed:
        return {one.reason for one in finding.here if one.ours is not None}
    return set()


def claim(judgement: Judgement, entry: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a claim with its verdict in words and numbers."""
    asked, ours = judgement.claim, judgement.ours
    known = {
        "name": asked.name,
        "of": asked.of,
        "says": asked.says,
        "source": asked.source,
        "scales": listed(asked.scales),
        "verdict": judgement.verdict,
        "reason": judgement.reason[:1].upper() + judgement.reason[1:],
        "ours": "" if ours is None else number(ours.value, 3),
        "spread": "" if ours is None else spread(ours),
        "interval": "" if ours is None else interval(ours),
        "method": "" if ours is None else ours.method,
        "n": None if ours is None else ours.n,
    }
    if isinstance(asked, Trend):
        place = number(asked.bound, 3)
        if asked.side == "between" and asked.upper is not None:
            place += f" and {number(asked.upper, 3)}"
        return {**known, "at": ("", ""), "test": f"{asked.side} {place}; {asked.test}"}
    theirs, beside = published(asked, entry or {})
    by = (
        f"tolerance {number(asked.tolerance or 0.0)}"
        if asked.published_se is None
        else f"standard error {number(asked.published_se, 2)}"
    )
    return {
        **known,
        "at": asked.at,
        "label": label_of(asked),
        "published": theirs,
        "printed_spread": beside,
        "test": f"published {theirs}, {by}",
    }


def label_of(asked: Value) -> str:
    """Return whose number it is: of the paper, or of the raw results that came with it."""
    raw = "raw results" in asked.source and not asked.source.startswith("printed")
    return "raw" if raw else "paper"


def published(asked: Value, entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return a number as it is printed, or with the digits that it needs, and its spread."""
    if label_of(asked) == "paper":
        return printed(entry, asked.at[0], asked.published)
    return number(asked.published, 3 if abs(asked.published) >= 1 else 2), ""


def spread(ours: Estimate) -> str:
    """Return the standard deviation of the values behind a mean, where it is one."""
    if "t interval over" not in ours.method or not 0 < ours.se < math.inf:
        return ""
    return number(ours.se * math.sqrt(ours.n), 2)


def interval(ours: Estimate) -> str:
    """Return an interval in a few words."""
    if ours.exact:
        return "exact"
    if not math.isfinite(ours.value):
        return "no number"
    if math.isinf(ours.low) or math.isinf(ours.high):
        return "no interval"
    return f"{number(ours.low, 3)} to {number(ours.high, 3)}"


def formula(text: str) -> Markup:
    """Return a sentence whose indices and exponents are set as such.

    >>> str(formula("PL1^(1)(f_L) and x_{i+k}"))
    'PL1<sup>(1)</sup>(f<sub>L</sub>) and x<sub>i+k</sub>'
    """
    plain = str(escape(text))
    for pattern, shown in _INDICES.items():
        plain = re.sub(pattern, shown, plain)
    return Markup(plain)


_INDICES = {
    r"_\{([^{}]*)\}": r"<sub>\1</sub>",
    r"\^\{([^{}]*)\}": r"<sup>\1</sup>",
    r"\^(\([^()]*\)|\w+)": r"<sup>\1</sup>",
    r"\b([A-Za-z])_(\w+)": r"\1<sub>\2</sub>",
}
