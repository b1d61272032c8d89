"""The verdict on a claim: a rule that was fixed before any number was judged, and one sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from inscape.lab import equivalence
from inscape.lab.equivalence import PublishedDifference
from inscape.lab.experiment import Claim, Estimate, Experiment, ScaleName, Trend, Value
from inscape.lab.margins import PROPORTION

Verdict = Literal[
    "reproduced", "not reproduced", "inconclusive", "no verdict", "not run", "by construction"
]
#: In the order of the pages.
VERDICTS: tuple[Verdict, ...] = (
    "reproduced",
    "not reproduced",
    "inconclusive",
    "no verdict",
    "not run",
    "by construction",
)

#: 1 called a number reproduced within 2 sqrt(se² + se_published²): noise was rewarded.
RULE_VERSION = 2

RULE = (
    "A number is reproduced when the 95% interval of its difference from the published one lies "
    "within a margin: the largest difference that a reader would still call the same result. The "
    "margin is the tolerance that was written down before the run, or else follows from the kind "
    "of quantity: 2 percentage points for proportions, a factor 2 for positive quantities with a "
    "heavy tail, 0.1 for correlations, 10% of the number for all else. It is not reproduced when "
    "the interval lies wholly beyond the margin, and inconclusive otherwise. The interval holds "
    "the error of both numbers where the paper prints one; where it does not, ours alone. An exact "
    "number is reproduced when it is within half a unit of the last printed digit. A claim that a "
    "quantity lies above or below a bound, or between two, is reproduced when the whole interval "
    "lies there, not reproduced when it lies wholly on the other side, and inconclusive otherwise. "
    "An interval counts from five units on (Student's, studentised), from six (sign and "
    "permutation tests) or from 20 (percentiles of a bootstrap); equal units have none. There is "
    "no verdict where the settings lie outside of the paper's range in what the claim is about, "
    "where the baseline is within two margins of chance, where the sign differs between our two "
    "largest scales, where a heavy-tailed number is printed with a standard error of more than "
    "half of itself, and for a claim that was struck out because it could not fail. A claim is "
    "not run where the quantity is missing, at the smoke scale, at a scale whose settings are not "
    "those of the claim, and after settings were changed by hand. What holds by construction is "
    "not counted. The same trend, beside a number that is not reproduced or inconclusive, says "
    "that the whole interval lies on the side that the paper's message needs."
)

#: Independent units that each kind of interval needs.
FEWEST = {
    "t": 5,
    "studentised": 5,
    "none": 5,
    "sign": 6,
    "permutation": 6,
    "binomial": 1,
    "resampled": 1,
    "exact": 1,
}
#: Percentiles of a bootstrap, normal intervals, and those of which nobody says what they are.
MANY = 20
CALLED = {
    "t": "Student's interval",
    "studentised": "a studentised interval",
    "sign": "a sign test",
    "permutation": "a permutation test",
    "percentile": "percentiles of a bootstrap",
    "normal": "a normal interval",
}

Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on a claim.

    Attributes:
        claim: The claim.
        verdict: One of ``VERDICTS``.
        ours: The number that we found, if there is one.
        reason: Why, in one sentence with the numbers.
        difference: Ours minus the published number, where that is the question.
        same_trend: Whether the message holds although the number is missed or undecided.
        seeds: How many units would decide, where the verdict is inconclusive and some number can.
        otherwise: What the numbers alone would give, where there is no verdict.
        rule: Version of the rule.
    """

    claim: Claim
    verdict: Verdict
    ours: Estimate | None
    reason: str
    difference: PublishedDifference | None = None
    same_trend: bool = False
    seeds: int | None = None
    otherwise: Verdict | None = None
    rule: int = RULE_VERSION

    @property
    def by_chance(self) -> float:
        """Return the chance that the verdict is wrong where the claim lies on the very edge."""
        decided = self.verdict in ("reproduced", "not reproduced")
        return 0.025 if decided and self.ours is not None and not self.ours.exact else 0.0


def judge(
    experiment: Experiment,
    quantities: Mapping[str, Estimate],
    scale: ScaleName,
    *,
    changed: Sequence[str] = (),
    smaller: Mapping[str, Estimate] | None = None,
) -> list[Judgement]:
    """Compare every claim of an experiment with what was found.

    Args:
        experiment: Its claims are judged, in their order.
        quantities: What the analysis of the records gave, by name.
        scale: The scale of the records.
        changed: Settings that the user has changed; with any there is no verdict.
        smaller: Quantities at the next smaller scale, where its records are there.
    """
    judgements = []
    for claim in experiment.claims:
        ours = quantities.get(claim.of)
        if ours is None or (reason := _why_not_run(claim, scale, changed)):
            reason = reason if ours is not None else f"the records give no {claim.of!r}."
            judgements.append(Judgement(claim=claim, verdict="not run", ours=ours, reason=reason))
            continue
        judged = _judged(claim, ours)
        doubt = _why_no_verdict(claim, quantities, experiment.outside.get(scale, ""), smaller)
        if claim.by_construction and judged.verdict != "not reproduced":
            judged = replace(judged, verdict="by construction", reason=claim.by_construction)
        elif doubt:
            judged = replace(
                judged, verdict="no verdict", reason=doubt, otherwise=judged.verdict, seeds=None,
                same_trend=False,
            )  # fmt: skip
        judgements.append(judged)
    return judgements


def verdict_on(claim: Claim, ours: Estimate) -> Verdict:
    """Return the verdict on a claim by its numbers alone."""
    return _judged(claim, ours).verdict


def _why_not_run(claim: Claim, scale: ScaleName, changed: Sequence[str]) -> str:
    """Return why a claim is not judged by these records, or nothing if it is."""
    if scale == "smoke":
        return "the smoke scale only shows that the code runs."
    if scale not in claim.scales:
        fits = " or ".join(claim.scales)
        return f"the claim is about the settings of scale {fits}, and these are of {scale}."
    if changed:
        return f"settings were changed by hand: {', '.join(changed)}."
    return ""


def _why_no_verdict(
    claim: Claim,
    quantities: Mapping[str, Estimate],
    outside: str,
    smaller: Mapping[str, Estimate] | None,
) -> str:
    """Return why no verdict is given, whatever the numbers are, or nothing if one is."""
    if claim.struck:
        return f"struck out: {claim.struck}"
    if outside:
        return f"the settings lie outside of the paper's range: {outside}"
    baseline = quantities.get(claim.baseline)
    if baseline is not None and baseline.value <= claim.chance + 2 * PROPORTION:
        return (
            f"the baseline {claim.baseline!r} is {show(baseline.value)}, within two margins of "
            f"chance ({show(claim.chance)})."
        )
    if isinstance(claim, Value) and (vague := _vague(claim)):
        return vague
    before, now = (part.get(claim.of) for part in (smaller or {}, quantities))
    if before is None or now is None or claim.side in (None, "between"):
        return ""
    if (before.value - claim.bound) * (now.value - claim.bound) < 0:
        return (
            f"the sign changes between our two largest scales: {show(before.value)}, then "
            f"{show(now.value)}, on the two sides of {show(claim.bound)}."
        )
    return ""


def _vague(claim: Value) -> str:
    """Return why a printed number with a heavy tail gives no verdict."""
    if claim.kind != "heavy-tailed":
        return ""
    se = claim.published_se or 0.0
    if not claim.number > 0 or se > equivalence.VAGUE * claim.number:
        return (
            f"the published {show(claim.number)} has a standard error of {show(se)}, more than "
            "half of itself: only the order of rows is judged."
        )
    return ""


def _judged(claim: Claim, ours: Estimate) -> Judgement:
    """Judge a claim by its numbers alone."""
    if math.isnan(ours.value):
        detail = f": {ours.method}." if ours.method else "."
        return _undecided(claim, ours, f"our value is {ours.value}{detail}")
    if equivalence.all_equal(ours):
        exact = equivalence.as_proportion(ours) if claim.kind == "proportion" else None
        if exact is None:
            return _undecided(
                claim, ours, f"all units or draws give {show(ours.value)}: they show no spread."
            )
        ours = exact
    needed = 1 if ours.exact else FEWEST.get(ours.interval, MANY)
    if ours.n < needed or not math.isfinite(ours.se):
        kind = CALLED.get(ours.interval, "an interval")
        why = f"{kind} over {needed} independent units or more is needed, found {ours.n}."
        return replace(_undecided(claim, ours, why), seeds=needed)
    return _value(claim, ours) if isinstance(claim, Value) else _trend(claim, ours)


def _undecided(claim: Claim, ours: Estimate, reason: str) -> Judgement:
    return Judgement(claim=claim, verdict="inconclusive", ours=ours, reason=reason)


def _value(claim: Value, ours: Estimate) -> Judgement:
    """Judge a printed number."""
    if claim.kind == "heavy-tailed" and not ours.exact and (why := _no_logarithm(claim, ours)):
        return _undecided(claim, ours, why)
    gap = equivalence.difference(claim, ours)
    if claim.kind == "heavy-tailed" and not ours.exact:
        ours = equivalence.with_positive_ends(ours)
    words = f"ours {show(ours.value)}, published {show(claim.number)}: {_of_difference(gap, claim)}"
    trend = _on_side(claim, ours)
    verdict: Verdict = "reproduced" if gap.inside else "inconclusive"
    ending, seeds = "lies within the margin", None
    if gap.outside:
        verdict, ending = "not reproduced", "lies wholly beyond the margin"
    elif not gap.inside:
        seeds = _seeds((gap.value, gap.low, gap.high), (-gap.margin, gap.margin), ours, gap)
        ending = _open_ending(gap, seeds, ours)
    return Judgement(
        claim=claim, verdict=verdict, ours=ours,
        reason=f"{words} {ending} {_margin(gap, claim)}.", difference=gap,
        same_trend=trend and verdict != "reproduced",
        seeds=None if gap.undecidable else seeds,
    )  # fmt: skip


def _no_logarithm(claim: Value, ours: Estimate) -> str:
    if len(ours.units) < FEWEST["studentised"]:
        count = len(ours.units)
        return f"a heavy-tailed mean needs the numbers of at least five units, found {count}."
    if min(ours.units) < 0 or not ours.value > 0 or not claim.number > 0:
        return "a heavy-tailed mean must be positive: a number is not."
    return ""


def _seeds(
    ends: tuple[float, float, float], span: Span, ours: Estimate, gap: PublishedDifference | None
) -> int | None:
    """Return how many units would decide; equal units do not say, nor do sets of a given size."""
    if ours.se == 0 or ours.interval == "resampled":
        return None
    published_se = gap.published_se if gap else 0.0
    return equivalence.seeds_to_decide(ends, span, ours.n, published_se)


def _open_ending(gap: PublishedDifference, seeds: int | None, ours: Estimate) -> str:
    if gap.undecidable:
        return (
            "reaches across it; the published number is too uncertain for any run to decide at "
            "the margin"
        )
    if ours.interval == "resampled":
        return f"reaches across it: another {ours.n:,} runs may land on either side of the margin"
    if seeds is None:
        return "reaches across it, and more seeds would not decide at the margin"
    return f"reaches across it; about {seeds:,} units would decide at the margin"


def _of_difference(gap: PublishedDifference, claim: Value) -> str:
    """Return a difference and its interval in words."""
    if gap.how == "exact":
        return f"the exact difference {show(gap.value)}"
    if claim.kind == "heavy-tailed":
        value, low, high = (math.exp(part) for part in (gap.value, gap.low, gap.high))
        return f"the ratio {show(value)} (95% interval {show(low)} to {show(high)}, {gap.how})"
    ends = f"{show(gap.low)} to {show(gap.high)}"
    return f"the difference {show(gap.value)} (95% interval {ends}, {gap.how})"


def _margin(gap: PublishedDifference, claim: Value) -> str:
    if claim.kind == "heavy-tailed" and claim.tolerance is None:
        return f"of a factor {show(math.exp(gap.margin))}"
    return f"of {show(gap.margin)}"


def _on_side(claim: Value, ours: Estimate) -> bool:
    """Tell whether the whole interval lies on the side that the paper's message needs."""
    if claim.side is None:
        return False
    return _inside(_span(claim.side, claim.bound, None), ours.low, ours.high)


def _trend(claim: Trend, ours: Estimate) -> Judgement:
    """Judge on which side a quantity lies."""
    span = _span(claim.side, claim.bound, claim.upper)
    place = f"{claim.side} {show(claim.bound)}"
    if claim.upper is not None and claim.side == "between":
        place += f" and {show(claim.upper)}"
    if _inside(span, ours.low, ours.high):
        verdict: Verdict = "reproduced"
        reason = f"{show(ours.value)}, {_interval(ours)}, all {place}."
    elif ours.high <= span[0] or ours.low >= span[1]:
        verdict, reason = "not reproduced", f"{show(ours.value)}, {_interval(ours)}, not {place}."
    else:
        seeds = _seeds((ours.value, ours.low, ours.high), span, ours, None)
        more = f"; about {seeds:,} units would decide" if seeds else ""
        if ours.interval == "resampled":
            more = f"; another {ours.n:,} runs may land on either side"
        reason = f"{show(ours.value)}, but {_interval(ours)} reaches across the bound{more}."
        return replace(_undecided(claim, ours, reason), seeds=seeds)
    return Judgement(claim=claim, verdict=verdict, ours=ours, reason=reason)


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
    return "exact" if ours.exact else f"interval {show(ours.low)} to {show(ours.high)}"


def show(value: float) -> str:
    """Return a number with four digits, as in a sentence.

    >>> show(0.15), show(-1234.56), show(0.0)
    ('0.15', '-1235', '0')
    """
    return f"{value:.4g}"
