"""Every sentence of the opening has a case in which it is said, and one in which it is not."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from inscape._core import Result, Summary
from inscape._core.result import NONNEGATIVE, PROPORTION, Range
from inscape.landscape import local_minimum
from inscape.models import mlp
from inscape.report.look.answer_rules import never_predicted, scaling, worst_class
from inscape.report.look.baseline_rules import brittle, no_better_than_linear
from inscape.report.look.checkup import Checkup
from inscape.report.look.finding import CALM
from inscape.report.look.findings import FOLLOWS, LEAST, MOST, RULES, findings, unchecked
from inscape.report.look.instrument_rules import attacked, masking, point
from inscape.report.look.parts import Measured, Reference, Score, Skipped
from inscape.robustness.robustness import UNFINISHED

N = 200
BY_NAME = {rule.__name__: rule for rule in RULES}
LABELS = torch.arange(N) % 4


def scores_for(answers, size=5.0, classes=4):
    return size * torch.nn.functional.one_hot(answers, classes).double()


def with_errors(labels, wrong):
    """Return answers of which the first ``wrong`` are the next class."""
    answers = labels.clone()
    answers[:wrong] = (answers[:wrong] + 1) % 4
    return answers


def checkup(answers=None, *, labels=LABELS, linear=None, **changes):
    answers = with_errors(LABELS, 10) if answers is None else answers
    draws = torch.Generator().manual_seed(0)
    outputs = scores_for(answers) + torch.randn(N, 4, generator=draws).double()
    fields = {
        "outputs": outputs,
        "labels": labels,
        "answers": answers,
        "targets": None,
        "linear": None if linear is None else scores_for(linear),
        "scalings": {"--divide 255": 0.2},
        "plain": 0.95,
        "tried": N,
        "silent": {"1": torch.tensor([False] * 20)},
        "fresh": (),
        "weighed": 2,
        "probabilities": False,
    }
    return Checkup(**{**fields, **changes})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Attacked(Result):
    range: ClassVar[Range] = PROPORTION

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rough(Result):
    range: ClassVar[Range] = NONNEGATIVE


class BarelyCut(Result):
    covered = 0.01


POINTS = torch.randn(8, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
UNTRAINED = local_minimum(mlp(2, 3, 2, dtype=torch.float64).eval(), POINTS, torch.arange(8) % 2)


def measure(
    name, value, low=None, high=None, linear=None, kind="estimate", result=None, known=(None, None)
):
    references = ()
    if linear is not None:
        label = "logistic regression"
        references = (
            Reference(name="linear", label=label, value=linear, low=known[0], high=known[1]),
        )
    return Measured(
        name=name,
        title="",
        family="",
        meaning="",
        cites="",
        doc="",
        result=result or Rough(),
        summary=Summary(value=value, low=low, high=high, kind=kind, basis="pgd, l2 1; more"),
        references=references,
        seconds=1.0,
        command="",
    )


def score(rows, accuracy, n=1000):
    return Score(
        who="the network", rows=rows, n=n, loss_name="cross_entropy", loss=1.0, accuracy=accuracy
    )


def look(*measurements, scores=(), task="classes", seen=None, names=(), rows="test examples"):
    return SimpleNamespace(
        measurements=measurements,
        scores=scores,
        data=SimpleNamespace(task=task, names=names, measured=rows),
        model=SimpleNamespace(inputs=(4,)),
        checkup=seen,
        failed=(),
    )


def zones(network, neighbour, spread=0.01):
    from inscape.extrapolation import Extrapolation

    draws = torch.Generator().manual_seed(0)
    noise = spread * torch.randn(100, 2, generator=draws, dtype=torch.float64)
    return Extrapolation(
        distances=torch.ones(100, dtype=torch.float64),
        zones=torch.full((100,), 2),
        errors=(torch.tensor([network, neighbour], dtype=torch.float64) + noise).abs(),
        models=("network", "nearest_neighbour"),
        reach=1.0,
        flat=False,
        classes=False,
        known=10,
        folds=0,
        seed=0,
    )


DEAD = {"1": torch.tensor([True] * 10 + [False] * 10)}
DRAWN = torch.randint(4, (N,), generator=torch.Generator().manual_seed(1))
NOT_0 = torch.where(LABELS == 0, 1, LABELS)
STEP = torch.linspace(-1, 1, N, dtype=torch.float64)[:, None]

#: Of each rule: a look and a checkup that it speaks of, a text in it, and those that it leaves.
CASES = {
    "chance": (look(), checkup(DRAWN), "no better than always answering", look(), checkup()),
    "accuracy": (
        look(scores=(score("test examples", 0.85, n=400),)),
        checkup(),
        "It is right on 85.0% of 400 examples (95% interval 81.2% to 88.2%).",
        look(),
        checkup(linear=LABELS),
    ),
    "scaling": (
        look(),
        checkup(scalings={"--divide 255": 0.97}, plain=0.2),
        "with --divide 255 it is right on 97.0% of 200 examples instead of 20.0%",
        look(),
        checkup(scalings={"--divide 255": 0.97}, plain=0.95),
    ),
    "untrained": (
        look(),
        checkup(fresh=("0", "2")),
        "in all 2 layers they are distributed as an initialisation draws them",
        look(),
        checkup(fresh=("0",)),
    ),
    "never_predicted": (
        look(), checkup(NOT_0), "Class 0 is never predicted, though 50 of 200 examples", look(),
        checkup(),
    ),
    "masking": (
        look(measure("robustness", 0.9, result=Attacked(warnings=("Noise is stronger.",)))),
        checkup(),
        "It may look more robust than it is: noise is stronger.",
        look(measure("robustness", 0.9, result=Attacked(warnings=(UNFINISHED,)))),
        checkup(),
    ),
    "no_better_than_linear": (
        look(measure("robustness", 0.92, linear=0.96)),
        checkup(linear=with_errors(LABELS, 11)),
        "Logistic regression does as well (94.5% against 95.0% of 200 examples, difference not "
        "significant), and is more robust under attack (0.96 against 0.92).",
        look(),
        checkup(linear=with_errors(LABELS, 60)),
    ),
    "outside": (
        look(measure("extrapolation", 1.0, result=zones(3.0, 1.0))),
        checkup(),
        "Outside the convex hull of its data a nearest neighbour does better: mean squared error 1 "
        "against 3, on 100 examples.",
        look(measure("extrapolation", 1.0, result=zones(1.1, 1.0))),
        checkup(),
    ),
    "brittle": (
        look(measure("robustness", 0.5, linear=0.8)),
        checkup(linear=with_errors(LABELS, 60)),
        "under attack 0.50 of its answers stay right, against 0.80",
        look(measure("robustness", 0.8, linear=0.8)),
        checkup(linear=with_errors(LABELS, 60)),
    ),
    "memorised": (
        look(scores=(score("training examples", 1.0), score("test examples", 0.8))),
        checkup(),
        "right on 100.0% of 1,000 training examples, on 80.0% of 1,000 test examples",
        look(scores=(score("training examples", 0.99), score("test examples", 0.97))),
        checkup(),
    ),
    "nearly_linear": (
        look(),
        checkup(outputs=2 * scores_for(LABELS) + 1, linear=LABELS),
        "a linear model explains 100.0% of the variance",
        look(),
        checkup(linear=with_errors(LABELS, 60)),
    ),
    "saturates": (
        look(),
        checkup(outputs=scores_for(with_errors(LABELS, 10), 50.0)),
        "on 100% of 200 examples the largest is 1 to six digits, and 10 of these answers are wrong",
        look(),
        checkup(),
    ),
    "overconfident": (
        look(),
        checkup(with_errors(LABELS, 60), outputs=scores_for(with_errors(LABELS, 60), 9.0)),
        "the mean probability of its answers is 100.0%, and 70.0% of 200 are right",
        look(),
        checkup(outputs=scores_for(with_errors(LABELS, 10), 4.0)),
    ),
    "worst_class": (
        look(names=("cat", "dog", "ship", "bird")),
        checkup(NOT_0),
        "It is worst on class cat, right on 0.0% of 50 examples; most often it answers dog instead",
        look(),
        checkup(LABELS),
    ),
    "largest_output": (
        look(task="unlabelled"),
        checkup(labels=None, outputs=scores_for(NOT_0)),
        "Output 1 is the largest on 50% of 200 examples; 1 of its 4 outputs never is.",
        look(),
        checkup(),
    ),
    "dead_units": (
        look(), checkup(silent=DEAD), "50% of its 20 ReLU units are off on all of 200", look(),
        checkup(),
    ),
    "duplicate_units": (
        look(),
        checkup(copies=DEAD),
        "50% of its 20 ReLU units are copies of another one up to a factor",
        look(),
        checkup(copies={"1": torch.tensor([True] + [False] * 19)}),
    ),
    "wide": (
        look(measure("rugosity", 1.0, low=0.6, high=1.4)),
        checkup(),
        "The 95% interval of rugosity is too wide to tell this network from one whose values",
        look(
            measure("rugosity", 1.0, low=0.7, high=1.3),
            measure("robustness", 0.1, low=0.02, high=0.19, result=Attacked()),
        ),
        checkup(),
    ),
    "surprising": (
        look(measure("path_length", 12.0, low=11.0, high=13.0, linear=2.0)),
        checkup(),
        "Its path length of 12 is 6 times as large as that of logistic regression (2).",
        look(measure("path_length", 2.1, low=1.9, high=2.3, linear=2.0)),
        checkup(),
    ),
    "better_than_linear": (
        look(),
        checkup(linear=with_errors(LABELS, 60)),
        "points more than logistic regression (70.0%)",
        look(),
        checkup(linear=with_errors(LABELS, 11)),
    ),
    "regression": (
        look(task="regression"),
        checkup(labels=None, outputs=STEP, targets=STEP + 0.1, linear=None),
        "",
        look(task="regression"),
        checkup(labels=None, targets=None),
    ),
    "point": (
        look(measure("local_minimum", 0.28, kind="lower bound", result=UNTRAINED)),
        checkup(),
        "It does not sit at a minimum of the loss on its training data: a step of length",
        look(measure("local_minimum", 0.28, kind="lower bound")),
        checkup(),
    ),
    "attacked": (
        look(measure("robustness", 0.9)),
        checkup(),
        "Under attack (pgd, l2 1) at most 0.90 of its answers stay right.",
        look(),
        checkup(),
    ),
    "regions": (
        look(measure("plane_regions", 132.0, kind="exact")),
        checkup(),
        "On a plane through data it has 132 linear regions.",
        look(measure("plane_regions", 1.0, kind="lower bound", result=BarelyCut())),
        checkup(),
    ),
}  # fmt: skip


def regression_checkup(own, linear):
    """Return a checkup of a regression whose errors have these standard deviations."""
    draws = torch.Generator().manual_seed(0)
    noise = torch.randn(2, N, 1, generator=draws, dtype=torch.float64)
    seen = checkup(labels=None, outputs=STEP + own * noise[0], targets=STEP)
    return Checkup(**{**vars_of(seen), "linear": STEP + linear * noise[1]})


def vars_of(seen):
    return {name: getattr(seen, name) for name in Checkup.__dataclass_fields__}


def test_every_rule_has_a_case():
    assert {rule.__name__ for rule in RULES} == set(CASES)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"regression"}))
def test_rule_speaks_where_it_is_true_and_only_there(name):
    said_of, shown, text, silent_of, other = CASES[name]
    finding = BY_NAME[name](said_of, shown)
    assert finding is not None
    assert text in finding.text
    assert finding.text.endswith(".")
    assert "{" not in finding.text
    assert BY_NAME[name](silent_of, other) is None


@pytest.mark.parametrize(
    ("missing", "named"), [(2, "0 and 1"), (6, "0, 1, 2, 3, 4 and one more"), (7, "4 and 2 more")]
)
def test_many_classes_that_are_never_predicted_are_named_in_one_list(missing, named):
    labels = torch.arange(N) % 10
    seen = replace(checkup(), labels=labels, answers=labels.clamp(min=missing))
    assert f"{named} are never predicted" in never_predicted(look(), seen).text


@pytest.mark.parametrize(
    ("instead", "end"),
    [
        ((1,), "right on 98.0% of 50 examples."),
        ((1, 2), "right on 96.0% of 50 examples."),
        ((1, 1, 2, 2), "right on 92.0% of 50 examples."),
        ((1, 2, 2), "right on 94.0% of 50 examples; most often it answers 2 instead."),
    ],
)
def test_the_usual_mistake_is_named_where_there_is_one(instead, end):
    answers = LABELS.clone()
    answers[: 4 * len(instead) : 4] = torch.tensor(instead)
    finding = worst_class(look(), checkup(answers))
    assert finding.text == f"It is worst on class 0, {end}"


def test_where_a_training_ends_is_news_only_if_it_is_no_slope():
    still = replace(UNTRAINED, verdicts=("proved, affine on the data",), reasons=("theorem 1",))
    part = replace(UNTRAINED, verdicts=("undecided",), samples=2)
    moving, proved, unknown = (
        point(look(measure("local_minimum", 0.0, result=result)), checkup())
        for result in (UNTRAINED, still, part)
    )
    assert moving.severity < attacked(look(measure("robustness", 0.9)), checkup()).severity
    assert moving.severity < proved.severity
    assert proved.text.startswith("It sits at a local minimum of the loss on its training data")
    assert unknown is None


@pytest.mark.parametrize(
    ("own", "linear", "severity", "text"),
    [
        (0.1, 1.0, 20, "is smaller than that of the linear model"),
        (1.0, 0.1, 65, "is larger than that of the linear model"),
        (0.5, 0.5, 65, "is not significantly smaller than that of the linear model"),
    ],
)
def test_regression_is_held_against_the_linear_model(own, linear, severity, text):
    finding = BY_NAME["regression"](look(task="regression"), regression_checkup(own, linear))
    assert text in finding.text
    assert finding.severity == severity


def test_warnings_come_first_and_at_most_seven_sentences_are_said():
    worst = checkup(
        DRAWN, scalings={"--divide 255": 0.99}, plain=0.2, fresh=("0", "2"), silent=DEAD,
        linear=LABELS,
    )  # fmt: skip
    told = findings(look(measure("rugosity", 1.0, low=0.0, high=9.0), seen=worst))
    assert [finding.severity for finding in told] == sorted(
        (finding.severity for finding in told), reverse=True
    )
    assert told[0].rule == "scaling"
    assert LEAST <= len(told) <= MOST


def test_where_nothing_worries_three_sentences_inform():
    fine = checkup(linear=with_errors(LABELS, 60))
    measures = (measure("robustness", 0.9), measure("plane_regions", 132.0, kind="exact"))
    told = findings(look(*measures, seen=fine))
    assert [finding.rule for finding in told] == ["better than linear", "worst class", "attacked"]
    assert all(finding.severity < CALM for finding in told)


def test_what_follows_from_a_finding_is_told_last():
    worst = checkup(DRAWN, linear=LABELS, scalings={"--divide 255": 0.99}, plain=0.2)
    result = [finding.rule for finding in findings(look(seen=worst))]
    assert result[0] == "scaling"
    assert "chance" not in result[:1]
    assert result.index("no better than linear") >= result.index("scaling")
    rules = {finding.rule for finding in findings(look(seen=checkup(NOT_0)))}
    assert "worst class" not in rules or len(rules) <= LEAST
    names = {rule.__name__.replace("_", " ") for rule in RULES}
    assert {name for follows in FOLLOWS.values() for name in follows} | set(FOLLOWS) <= names


def test_a_linear_model_is_not_praised_on_the_examples_that_it_was_fitted_to():
    seen = checkup(linear=with_errors(LABELS, 11))
    assert no_better_than_linear(look(), seen) is not None
    assert no_better_than_linear(look(rows="all examples"), seen) is None


def test_one_example_says_nothing_of_the_scaling():
    seen = checkup(scalings={"--divide 255": 1.0}, plain=0.0, tried=1)
    assert scaling(look(), seen) is None


def test_an_attack_that_has_not_ended_is_no_sign_of_masking():
    said = UNFINISHED.format(done=0, count=16)
    attacked = measure("robustness", 0.9, result=Attacked(warnings=(said,)))
    assert masking(look(attacked), checkup()) is None


def test_an_attack_on_a_few_points_is_not_told():
    assert attacked(look(measure("robustness", 0.5, 0.4, 0.6, result=Attacked())), checkup())
    few = measure("robustness", 0.0, 0.0, 0.79, result=Attacked())
    assert attacked(look(few), checkup()) is None


def test_without_a_checkup_there_are_no_findings_and_that_is_said():
    assert findings(look(seen=None)) == ()
    said = "The predictions on single examples were not checked"
    assert unchecked(look(seen=None)) == (f"{said} (there was no time).",)
    failed = look(seen=None)
    failed.failed = (Skipped(name="checkup", reason="RuntimeError: no such unit"),)
    assert unchecked(failed) == (f"{said} (RuntimeError: no such unit).",)


def test_a_rule_that_fails_is_told_and_the_others_speak():
    seen = checkup(linear=with_errors(LABELS, 60), problems=("Something was not tried.",))
    broken = look(seen=seen)
    del broken.model  # which one rule reads
    broken.measurements = (measure("plane_regions", 132.0, kind="exact"),)
    assert "better than linear" in {finding.rule for finding in findings(broken)}
    first, second = unchecked(broken)
    assert first == "Something was not tried."
    assert second.startswith("The rule 'regions' failed (AttributeError: ")


@pytest.mark.parametrize(
    ("own", "known", "told"),
    [((0.89, 0.94), (0.94, 0.98), True), ((0.44, 0.97), (0.47, 0.98), False)],
)
def test_what_holds_better_under_attack_does_so_beyond_chance(own, known, told):
    """Of 360 points 0.92 and 0.96 differ; of six they do not."""
    attack = measure("robustness", 0.92, *own, linear=0.96, known=known)
    close, ahead = checkup(linear=with_errors(LABELS, 11)), checkup(linear=with_errors(LABELS, 60))
    assert ("under attack" in no_better_than_linear(look(attack), close).text) == told
    assert (brittle(look(attack), ahead) is not None) == told


def test_an_attack_that_breaks_nothing_is_told_in_words():
    finding = attacked(look(measure("robustness", 1.0, 0.8, 1.0)), checkup())
    assert finding.text == "An attack (pgd, l2 1) breaks none of its answers."


def test_the_accuracy_is_that_on_the_most_examples():
    """A page does not open with two accuracies: few examples may be checked one by one."""
    scored = look(scores=(score("test examples", 0.32, n=1000),))
    assert "chance" not in {finding.rule for finding in findings_of(scored, checkup(DRAWN))}
    few = look(scores=(score("test examples", 0.27, n=100),))
    chance = findings_of(few, checkup(DRAWN))[0]
    assert chance.text.startswith(f"It is right on {(DRAWN == LABELS).double().mean():.1%} of 200 ")
    rare = findings_of(scored, checkup(DRAWN, commonest=0.5))[0]
    assert rare.text == (
        "It is right on 32.0% of 1,000 examples (95% interval 29.2% to 35.0%), no better than "
        "always answering the commonest class (50.0%)."
    )
    without = findings_of(scored, checkup(DRAWN, commonest=0.5, linear=None))
    assert "accuracy" not in {finding.rule for finding in without}  # chance has said it


@pytest.mark.parametrize("name", ["line_regions", "region_at", "plane_regions"])
def test_more_linear_regions_than_a_linear_model_are_no_surprise(name):
    seen = checkup()
    assert BY_NAME["surprising"](look(measure(name, 900.0, linear=1.0)), seen) is None


def test_a_number_is_not_compared_with_a_baseline_that_is_all_but_zero():
    for linear, is_told in ((1e-2, True), (1e-9, False)):
        seen = BY_NAME["surprising"](look(measure("path_length", 4.7, linear=linear)), checkup())
        assert (seen is not None) == is_told


def test_a_part_of_a_number_is_compared_with_no_baseline():
    whole = measure("boundary", 90.0, linear=1.0)
    part = measure("boundary", 90.0, linear=1.0, result=BarelyCut())
    assert BY_NAME["surprising"](look(whole), checkup()) is not None
    assert BY_NAME["surprising"](look(part), checkup()) is None
    assert part.certainty == "estimate, 1% covered"
    assert whole.certainty == "estimate"


def findings_of(page, seen):
    page.checkup = seen
    return findings(page)
