"""Findings: the sentences that open a page, each true by a rule, the most worrying first.

A rule looks at what was measured and returns a sentence with its numbers, or None. Its severity
is how much it should worry the reader; below ``CALM`` a sentence only informs. The table is
:data:`RULES`; each rule stands in its module beside its threshold.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from inscape.report.look import answer_rules, baseline_rules, instrument_rules
from inscape.report.look.finding import CALM, Finding, Rule
from inscape.report.words import one_line

if TYPE_CHECKING:
    from inscape.report.look.look import Look

#: A page opens with at most, and if it can with at least, so many sentences.
MOST, LEAST = 7, 3

#: All rules, in the order in which equally severe findings appear.
RULES: tuple[Rule, ...] = (
    answer_rules.scaling,
    baseline_rules.untrained,
    answer_rules.chance,
    answer_rules.never_predicted,
    instrument_rules.masking,
    baseline_rules.no_better_than_linear,
    instrument_rules.outside,
    baseline_rules.brittle,
    answer_rules.memorised,
    answer_rules.overconfident,
    baseline_rules.nearly_linear,
    answer_rules.saturates,
    instrument_rules.dead_units,
    instrument_rules.duplicate_units,
    instrument_rules.wide,
    baseline_rules.better_than_linear,
    baseline_rules.regression,
    answer_rules.worst_class,
    answer_rules.accuracy,
    instrument_rules.attacked,
    answer_rules.largest_output,
    baseline_rules.surprising,
    instrument_rules.regions,
)

#: Findings that follow from another one, and so come after all others: a network at chance is of
#: course no better than a linear model.
FOLLOWS = {
    "scaling": ("chance",),
    "chance": (
        "no better than linear",
        "overconfident",
        "saturates",
        "worst class",
        "attacked",
        "brittle",
        "masking",
    ),
    "never predicted": ("worst class",),
    "overconfident": ("saturates",),
}
#: Findings whose numbers another one has already said.
REPEATS = {"chance": ("accuracy",)}


def findings(look: "Look") -> tuple[Finding, ...]:
    """Return the findings of a look: all warnings, filled up to three with those that inform."""
    return _evaluated(look)[0]


def unchecked(look: "Look") -> tuple[str, ...]:
    """Return a sentence for every check that could not be run, and why."""
    if look.checkup is None:
        reasons = [skipped.reason for skipped in look.failed if skipped.name == "checkup"]
        why = reasons[0] if reasons else "there was no time"
        return (f"The predictions on single examples were not checked ({why}).",)
    return (*look.checkup.problems, *_evaluated(look)[1])


def _evaluated(look: "Look") -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return the findings, and a sentence for each rule that failed."""
    if look.checkup is None:
        return (), ()
    triggered: list[Finding] = []
    failed: list[str] = []
    for rule in RULES:
        try:
            finding = rule(look, look.checkup)
        except Exception as error:  # a rule may fail, the page may not
            name = getattr(rule, "__name__", str(rule)).replace("_", " ")
            failed.append(f"The rule {name!r} failed ({type(error).__name__}: {one_line(error)}).")
            continue
        triggered += [] if finding is None else [finding]
    ranked = sorted(_consequences_last(triggered), key=lambda finding: -finding.severity)
    warnings = sum(finding.severity >= CALM for finding in ranked)
    return tuple(ranked[: min(MOST, max(LEAST, warnings))]), tuple(failed)


def _consequences_last(triggered: list[Finding]) -> list[Finding]:
    """Return findings without repetitions, those that follow from others moved to the end."""
    known = {finding.rule for finding in triggered}
    repeated = {name for rule in known for name in REPEATS.get(rule, ())}
    triggered = [finding for finding in triggered if finding.rule not in repeated]
    follows = {name for rule in known for name in FOLLOWS.get(rule, ())}
    return [replace(f, severity=1) if f.rule in follows else f for f in triggered]
