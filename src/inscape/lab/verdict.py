"""The verdict on a claim: a rule that was fixed before any number was seen, and one sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inscape.lab.experiment import Claim, Estimate, Experiment, ScaleName, Trend, Value

Verdict = Literal["reproduced", "same trend", "not reproduced", "not run"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "same trend", "not reproduced", "not run")

RULE = (
    "A number is reproduced when ours differs from the published one by at most "
    "2 sqrt(se² + se_published²), or, where the paper prints no spread, by at most a tolerance "
    "that was written down before the run; it shows the same trend when it misses that but its "
    "whole 95% interval lies on the side of the bound that the paper's message needs. "
    "A trend is reproduced when the whole 95% interval lies on the claimed side, and the same "
    "trend when only the estimate does. Everything else is not reproduced. A claim is not run "
    "where the quantity is missing, where a run gave one value and the rule needs a spread, at "
    "the smoke scale, at a scale whose settings are not those of the claim, and after settings "
    "were changed by hand."
)

Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on a claim.

    Attributes:
        claim: The claim.
        verdict: One of ``VERDICTS``.
        ours: The number that we found, if there is one.
        reason: Why, in one sentence with the numbers.
    """

    claim: Claim
    verdict: Verdict
    ours: Estimate | None
    reason: str


def judge(
    experiment: Experiment,
    quantities: Mapping[str, Estimate],
    scale: ScaleName,
    *,
    changed: Sequence[str] = (),
) -> list[Judgement]:
    """Compare every claim of an experiment with what was found.

    Args:
        experiment: Its claims are judged, in their order.
        quantities: What the analysis of the records gave, by name.
        scale: The scale of the records.
        changed: Settings that the user has changed; with any there is no verdict.
    """
    return [_judgement(claim, quantities, scale, changed) for claim in experiment.claims]


def _judgement(
    claim: Claim, quantities: Mapping[str, Estimate], scale: ScaleName, changed: Sequence[str]
) -> Judgement:
    ours = quantities.get(claim.of)
    verdict: Verdict = "not run"
    reason = _why_not(claim, ours, scale, changed)
    if ours is not None and not reason:
        verdict, reason = _value(claim, ours) if isinstance(claim, Value) else _trend(claim, ours)
    return Judgement(claim=claim, verdict=verdict, ours=ours, reason=reason)


def _why_not(claim: Claim, ours: Estimate | None, scale: ScaleName, changed: Sequence[str]) -> str:
    """Return why a claim cannot be judged, or nothing if it can."""
    if ours is None:
        return f"the records give no {claim.of!r}."
    if scale == "smoke":
        return "the smoke scale only shows that the code runs."
    if scale not in claim.scales:
        fits = " or ".join(claim.scales)
        return f"the claim is about the settings of scale {fits}, and these are of {scale}."
    if changed:
        return f"settings were changed by hand: {', '.join(changed)}."
    if isinstance(claim, Value) and claim.published_se is not None and math.isinf(ours.se):
        return "one value has no spread, and the rule needs one: run more seeds or data sets."
    return ""


def _value(claim: Value, ours: Estimate) -> tuple[Verdict, str]:
    """Judge a printed number."""
    if not math.isfinite(ours.value):
        return "not reproduced", _no_number(ours)
    off = abs(ours.value - claim.published)
    allowed, by = _allowed(claim, ours)
    compared = f"ours {show(ours.value)} and the published {show(claim.published)} differ by "
    if off <= allowed:
        return "reproduced", f"{compared}{show(off)}, within {show(allowed)} ({by})."
    missed = f"{compared}{show(off)}, more than {show(allowed)} ({by})"
    if claim.side is None:
        return "not reproduced", f"{missed}."
    bounds = _span(claim.side, claim.bound, None)
    where = f"{_interval(ours)} {{}} {claim.side} {show(claim.bound)}"
    if _inside(bounds, ours.low, ours.high):
        return "same trend", f"{missed}, but {where.format('lies')}."
    return "not reproduced", f"{missed}, and {where.format('does not lie')}."


def _allowed(claim: Value, ours: Estimate) -> tuple[float, str]:
    """Return how far off a number may be, and by which part of the rule."""
    if claim.published_se is not None:
        both = 2 * math.hypot(ours.se, claim.published_se)
        return both, f"2 sqrt({show(ours.se)}² + {show(claim.published_se)}²)"
    assert claim.tolerance is not None  # a claim has one of the two
    # A tolerance is written in decimals: 0.1 must allow 0.9 to be called 1.
    return claim.tolerance * (1 + 1e-9), "the tolerance written before the run"


def _trend(claim: Trend, ours: Estimate) -> tuple[Verdict, str]:
    """Judge on which side a quantity lies."""
    if math.isnan(ours.value):
        return "not reproduced", _no_number(ours)
    bounds = _span(claim.side, claim.bound, claim.upper)
    place = f"{claim.side} {show(claim.bound)}"
    if claim.upper is not None and claim.side == "between":
        place += f" and {show(claim.upper)}"
    if _inside(bounds, ours.low, ours.high):
        return "reproduced", f"{show(ours.value)}, {_interval(ours)}, all {place}."
    if _inside(bounds, ours.value, ours.value):
        only = f"the estimate {show(ours.value)} is {place}"
        return "same trend", f"{only}, but {_interval(ours)} reaches beyond."
    return "not reproduced", f"{show(ours.value)}, {_interval(ours)}, is not {place}."


def _span(side: str, bound: float, upper: float | None) -> Span:
    """Return the ends of the claimed side."""
    if side != "between":
        return (bound, math.inf) if side == "above" else (-math.inf, bound)
    assert upper is not None  # a claim between two bounds has both
    return bound, upper


def _inside(span: Span, low: float, high: float) -> bool:
    """Tell whether an interval lies within a side without touching its bounds."""
    lower, upper = span
    return (low > lower or lower == -math.inf) and (high < upper or upper == math.inf)


def _interval(ours: Estimate) -> str:
    if ours.exact:
        return "exact"
    if math.isinf(ours.low) and math.isinf(ours.high):
        return "the endless interval of one value"
    return f"interval {show(ours.low)} to {show(ours.high)}"


def _no_number(ours: Estimate) -> str:
    return f"our value is {ours.value}" + (f": {ours.method}." if ours.method else ".")


def show(value: float) -> str:
    """Return a number with four digits, as in a sentence.

    >>> show(0.15), show(-1234.56), show(0.0)
    ('0.15', '-1235', '0')
    """
    return f"{value:.4g}"
