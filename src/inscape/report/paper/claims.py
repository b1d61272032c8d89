"""Claims of a paper in words and numbers, as its page shows them."""

import math
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from inscape.lab.experiment import Estimate, Trend, Value
from inscape.lab.experiment_outcome import ExperimentOutcome
from inscape.lab.verdict import Judgement
from inscape.report.paper.table import NOT_COMPARED, printed
from inscape.report.words import listed, number

#: An upper end so many times the number itself bounds nothing.
UNBOUNDED = 1e6


def claims(outcome: ExperimentOutcome, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the claims to show, in their order; a reason that the state gives is not repeated.

    A number of the paper's table that belongs to another scale has ours beside it where nothing
    else stands in its place, but no verdict.
    """
    comparable = {judgement.claim.name for judgement in outcome.comparable}
    used = {
        judgement.claim.at for judgement in outcome.comparable if isinstance(judgement.claim, Value)
    }
    printed_there = {
        judgement.claim.at: claim(judgement, entry)
        for judgement in outcome.at_other_scales
        if isinstance(judgement.claim, Value) and judgement.claim.at in used
    }
    reasons = _reasons_of_section(outcome)
    shown = []
    for judgement in outcome.judgements:
        entry_shown = claim(judgement, entry)
        if other := printed_there.get(entry_shown["at"]):
            entry_shown = claim(judgement, entry, deviation=other["deviation"])
            entry_shown |= {"printed_there": other["published"], "there": other["printed_spread"]}
        if judgement.claim.name in comparable:
            shown.append(
                {**entry_shown, "reason": ""} if judgement.reason in reasons else entry_shown
            )
        elif entry_shown["ours"] and entry_shown["at"] not in {("", ""), *used}:
            shown.append({**entry_shown, "verdict": NOT_COMPARED})
    return shown


def _reasons_of_section(outcome: ExperimentOutcome) -> set[str]:
    """Return the reasons for no verdict that hold for a whole section, as its state says."""
    if outcome.scale is None:
        return {judgement.reason for judgement in outcome.judgements}
    if outcome.scale == "smoke" or outcome.changed:
        return {judgement.reason for judgement in outcome.comparable if judgement.ours is not None}
    return set()


def claim(
    judgement: Judgement, entry: Mapping[str, Any] | None = None, *, deviation: bool = False
) -> dict[str, Any]:
    """Return a claim with its verdict in words and numbers.

    Args:
        judgement: The verdict.
        entry: What the paper's list of results says about its table.
        deviation: Whether numbers are shown with standard deviations even where the paper has none.
    """
    claim, ours = judgement.claim, judgement.ours
    known = {
        "name": claim.name,
        "of": claim.of,
        "says": formula(claim.says),
        "source": claim.source,
        "scales": listed(claim.scales),
        "verdict": judgement.verdict,
        "same_trend": judgement.same_trend,
        "origin": claim.origin,
        "added": claim.added,
        "corrected": "",
        "printed_there": "",
        "reason": judgement.reason[:1].upper() + judgement.reason[1:],
        "ours": "" if ours is None else number(ours.value, 3),
        "interval": "" if ours is None else interval(ours),
        "method": "" if ours is None else ours.method,
        "n": None if ours is None else ours.n,
    }
    if isinstance(claim, Trend):
        place = number(claim.bound, 3)
        if claim.side == "between" and claim.upper is not None:
            place += f" and {number(claim.upper, 3)}"
        return {
            **known,
            "at": ("", ""),
            "spread": "",
            "test": f"{claim.side} {place}; {claim.test}",
        }
    published_value, beside = published(claim, entry or {})
    if deviation and not beside and claim.published_se and claim.published_n:
        beside = number(claim.published_se * math.sqrt(claim.published_n), 2)
    error = "" if claim.published_se is None else number(claim.published_se, 2)
    by = f", standard error {error}" if error else ""
    by += f", tolerance {number(claim.tolerance)}" if claim.tolerance is not None else ""
    return {
        **known,
        "at": claim.at,
        "kind": claim.kind,
        "label": "raw" if claim.origin == "raw data" else "paper",
        "published": published_value,
        "corrected": "" if claim.corrected is None else number(claim.corrected, 3),
        "erratum": claim.erratum,
        "spread": "" if ours is None else spread(ours, deviation=bool(beside)),
        "printed_spread": beside or error,
        "deviation": bool(beside),
        "test": f"published {published_value}{by}",
    }


def published(claim: Value, entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return a number as it is printed, or with the digits it needs, and its standard deviation."""
    if claim.origin != "raw data":
        return printed(entry, claim.at[0], claim.published)
    return number(claim.published, 3 if abs(claim.published) >= 1 else 2), ""


def spread(ours: Estimate, *, deviation: bool = True) -> str:
    """Return the standard deviation of the values behind a mean, where it is one, or its error.

    Args:
        ours: The mean.
        deviation: Whether the standard deviation is asked for; else it is the standard error.
    """
    mean = ours.interval == "t" or (ours.interval == "studentised" and ours.units)
    if not mean or not 0 < ours.se < math.inf:
        return ""
    return number(ours.se * (math.sqrt(ours.n) if deviation else 1), 2)


def interval(ours: Estimate) -> str:
    """Return an interval in a few words."""
    if ours.exact:
        return "exact"
    if not math.isfinite(ours.value):
        return "no number"
    equal = ours.low == ours.high and ours.interval != "resampled"  # sets that all give the same
    if math.isinf(ours.low) or math.isinf(ours.high) or equal:
        return "no interval"
    if ours.low > 0 and ours.high > UNBOUNDED * ours.value:
        return f"{number(ours.low, 3)} or more"
    return f"{number(ours.low, 3)} to {number(ours.high, 3)}"


def formula(text: str) -> Markup:
    """Return a sentence whose indices and exponents are set as such.

    >>> str(formula("PL1^(1)(f_L) and x_{i+k}"))
    'PL1<sup>(1)</sup>(f<sub>L</sub>) and x<sub>i+k</sub>'
    """
    marked = str(escape(text))
    for pattern, shown in _INDICES.items():
        marked = re.sub(pattern, shown, marked)
    return Markup(marked)


_INDICES = {
    r"_\{([^{}]*)\}": r"<sub>\1</sub>",
    r"\^\{([^{}]*)\}": r"<sup>\1</sup>",
    r"\^(\([^()]*\)|\w+)": r"<sup>\1</sup>",
    r"\b([A-Za-z])_(\w+)": r"\1<sub>\2</sub>",
}
