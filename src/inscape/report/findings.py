"""Findings: the sentences that open a page, each true by a rule, the most worrying first.

A rule looks at what was measured and returns a sentence with its numbers, or None. Its severity
is how much it should worry the reader; below :data:`CALM` a sentence only informs. The table is
:data:`RULES`, the thresholds stand beside it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from inscape._core.result import Z95, wilson
from inscape.extrapolation import Extrapolation
from inscape.report.checkup import Checkup
from inscape.report.parts import Measured, Score
from inscape.report.words import listed, number, plain

if TYPE_CHECKING:
    from inscape.report.look import Look

#: A page opens with at most, and if it can with at least, so many sentences.
MOST, LEAST = 7, 3
#: Findings below this severity inform and do not warn.
CALM = 30
#: Points of accuracy by which another scaling must be better to be the right one.
JUMP = 0.10
#: Points of accuracy between training and test rows that count as memorised.
GAP = 0.05
#: How many times a peer's error the network's must be to be called much worse.
WORSE = 1.5
#: Fraction of dead units, of saturated rows, of explained variance that is worth a sentence.
DEAD, SATURATED, LINEAR = 0.10, 0.50, 0.99
#: Half width over value of an interval that is too wide to use.
WIDE = 1.0
#: Difference in accuracy under attack that is worth a sentence.
BRITTLE = 0.02


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence of the opening: what was found, where it stands, and what to do.

    Attributes:
        rule: The rule that it is true by.
        severity: How much it should worry the reader, 0 to 100.
        text: The sentence, with its numbers.
        advice: What to do, or "".
        section: The measure whose section has the rest, or "scores".
    """

    rule: str
    severity: int
    text: str
    advice: str = ""
    section: str = "scores"


Rule = Callable[["Look", Checkup], Finding | None]


def findings(look: "Look") -> tuple[Finding, ...]:
    """Return what the page opens with: all that warns, and what informs to fill three."""
    if look.checkup is None:
        return ()
    told = [rule(look, look.checkup) for rule in RULES]
    ranked = sorted((f for f in told if f is not None), key=lambda f: -f.severity)
    warnings = sum(finding.severity >= CALM for finding in ranked)
    return tuple(ranked[: min(MOST, max(LEAST, warnings))])


def chance(look: "Look", seen: Checkup) -> Finding | None:
    """Accuracy no better than always giving the commonest class."""
    if seen.labels is None or seen.right is None or seen.n < 20:
        return None
    commonest = float(seen.labels.bincount().max()) / seen.n
    accuracy = float(seen.right.double().mean())
    low = float(wilson(torch.tensor(accuracy, dtype=torch.float64), seen.n)[0])
    if low > commonest:
        return None
    return Finding(
        rule="chance",
        severity=100,
        text=f"It is right on {accuracy:.1%} of {seen.n:,} rows, no better than always answering "
        f"the commonest class ({commonest:.1%}).",
        advice="Check that the weights were loaded, how the inputs are scaled and how the classes "
        "are numbered.",
    )


def scaling(look: "Look", seen: Checkup) -> Finding | None:
    """Accuracy jumps under another scaling of the inputs."""
    if not seen.scalings or not math.isfinite(seen.plain):
        return None
    name = max(seen.scalings, key=lambda name: seen.scalings[name])
    best = seen.scalings[name]
    error = math.sqrt((best * (1 - best) + seen.plain * (1 - seen.plain)) / seen.tried)
    if best - seen.plain < max(JUMP, Z95 * error):
        return None
    how = f"with {name}"
    return Finding(
        rule="scaling",
        severity=95,
        text=f"The inputs look scaled otherwise than in training: {how} it is right on {best:.1%} "
        f"of {seen.tried:,} rows instead of {seen.plain:.1%}.",
        advice=f"Look again {how}." if name.startswith("--") else "Scale the data as in training.",
    )


def untrained(look: "Look", seen: Checkup) -> Finding | None:
    """Weights that are distributed as at initialisation."""
    if not seen.weighed or len(seen.fresh) < seen.weighed:
        return None
    return Finding(
        rule="untrained",
        severity=90,
        text=f"The weights look untrained: in {_all(seen.weighed)} they are distributed as PyTorch "
        "draws them.",
        advice="Give the trained weights with --weights.",
        section="model",
    )


def never_predicted(look: "Look", seen: Checkup) -> Finding | None:
    """Classes that are among the labels and are never the answer."""
    if seen.labels is None:
        return None
    counts = seen.labels.bincount()
    expected = [k for k, count in enumerate(counts.tolist()) if count >= 10]
    missing = [k for k in expected if not bool((seen.answers == k).any())]
    if not missing:
        return None
    named = listed([str(k) for k in missing[:5]]) + (", ..." if len(missing) > 5 else "")
    rows = sum(int(counts[k]) for k in missing)
    return Finding(
        rule="never predicted",
        severity=80,
        text=f"{'Class' if len(missing) == 1 else 'Classes'} {named} {_is(len(missing))} never "
        f"predicted, though {rows:,} of {seen.n:,} rows belong there.",
        advice="Look at how the classes are numbered, and at their balance in training.",
    )


def masking(look: "Look", seen: Checkup) -> Finding | None:
    """Signs that an attack was blind rather than the network robust."""
    measured = _measure(look, "robustness")
    warnings = getattr(measured.result, "doubts", ()) if measured else ()
    if not warnings:
        return None
    return Finding(
        rule="masking",
        severity=70,
        text=f"Its robustness may be an illusion: {warnings[0][0].lower()}{warnings[0][1:]}",
        advice="Attack it again with attack='autoattack'.",
        section="robustness",
    )


def no_better_than_linear(look: "Look", seen: Checkup) -> Finding | None:
    """Accuracy that a linear model has too, and what it does under attack."""
    pair = _against_linear(seen)
    if pair is None:
        return None
    own, linear, low, high = pair
    if low > 0:
        return None
    label = _linear_label(look)
    text = (
        f"{label} is better ({linear:.1%} against {own:.1%} of {seen.n:,} rows)"
        if high < 0
        else f"{label} does as well ({linear:.1%} against {own:.1%} of {seen.n:,} rows, difference "
        "not significant)"
    )
    attacked = _under_attack(look)
    if attacked is not None and attacked[1] - attacked[0] >= BRITTLE:
        text += f", and holds better under attack ({attacked[1]:.2f} against {attacked[0]:.2f})"
    return Finding(
        rule="no better than linear",
        severity=65,
        text=f"{text}.",
        advice="Ask what the network adds before you trust it with more.",
    )


def brittle(look: "Look", seen: Checkup) -> Finding | None:
    """More accurate than the linear model, and more easily broken."""
    pair, attacked = _against_linear(seen), _under_attack(look)
    if pair is None or attacked is None or pair[2] <= 0:
        return None
    own, linear = attacked
    if linear - own < BRITTLE:
        return None
    return Finding(
        rule="brittle",
        severity=55,
        text=f"It is more accurate than {_lower(_linear_label(look))} ({pair[0]:.1%} against "
        f"{pair[1]:.1%}) but breaks more easily: under attack {own:.2f} of the answers stay right, "
        f"against {linear:.2f}.",
        advice="inscape.controls.adversarial_training or a Jacobian penalty buys robustness.",
        section="robustness",
    )


def outside(look: "Look", seen: Checkup) -> Finding | None:
    """Errors outside the data that are much larger than those of a simple peer."""
    measured = _measure(look, "extrapolation")
    if measured is None or not isinstance(measured.result, Extrapolation):
        return None
    rows = [row for row in measured.result.by_zone() if row["zone"] == "outside"]
    errors = {str(row["model"]): row for row in rows}
    own = errors.pop("network", None)
    peers = {name: row for name, row in errors.items() if name != "linear"}
    if own is None or not peers:
        return None
    name = min(peers, key=lambda name: _float(peers[name]["error"]))
    error, best = _float(own["error"]), _float(peers[name]["error"])
    apart = own["low"] is not None and _float(own["low"]) > _float(peers[name]["high"] or best)
    if error < WORSE * best or not apart:
        return None
    return Finding(
        rule="outside",
        severity=60,
        text=f"Outside the convex hull of its data a {plain(name)} errs less: {number(best, 3)} "
        f"against {number(error, 3)} (mean over {own['queries']} rows).",
        advice="Do not trust it there without a check for distance.",
        section="extrapolation",
    )


def memorised(look: "Look", seen: Checkup) -> Finding | None:
    """A gap between training and test rows."""
    train, test = (_score(look, rows) for rows in ("training rows", "test rows"))
    if train is None or test is None or train.accuracy is None or test.accuracy is None:
        return None
    a, b = train.accuracy, test.accuracy
    error = math.sqrt(a * (1 - a) / train.n + b * (1 - b) / test.n)
    if a - b < max(GAP, Z95 * error):
        return None
    return Finding(
        rule="memorised",
        severity=50,
        text=f"It has memorised: right on {a:.1%} of the training rows and {b:.1%} of the test "
        "rows.",
        advice="More data, weight decay or augmentation narrow the gap.",
    )


def saturates(look: "Look", seen: Checkup) -> Finding | None:
    """Probabilities that are 0 or 1 to six digits."""
    if seen.labels is None or seen.saturated < SATURATED:
        return None
    wrong = "" if seen.right is None else _sure_and_wrong(seen)
    return Finding(
        rule="saturates",
        severity=40,
        text=f"Its probabilities are saturated: on {seen.saturated:.0%} of {seen.n:,} rows the "
        f"largest is 1 to six digits{wrong}.",
        advice="Do not read them as confidence; calibrate, or measure logits.",
    )


def nearly_linear(look: "Look", seen: Checkup) -> Finding | None:
    """Outputs that are an affine function of the linear model's."""
    share = seen.linearity
    if share is None or share < LINEAR:
        return None
    return Finding(
        rule="nearly linear",
        severity=45,
        text=f"It is nearly linear: a linear model explains {share:.1%} of the variance of its "
        f"outputs on {seen.n:,} rows.",
        advice="A linear model would do.",
    )


def dead_units(look: "Look", seen: Checkup) -> Finding | None:
    """ReLU units that no row switches on."""
    if seen.dead < DEAD:
        return None
    units = sum(len(layer) for layer in seen.silent.values())
    worst = max(seen.silent, key=lambda name: float(seen.silent[name].double().mean()))
    share = float(seen.silent[worst].double().mean())
    return Finding(
        rule="dead units",
        severity=35,
        text=f"{seen.dead:.0%} of its {units:,} ReLU units (channels) are off on all of {seen.n:,} "
        f"rows, most of all in layer {worst!r} ({share:.0%}).",
        advice="inscape.pruning.node_pruning takes them out without a change.",
        section="model",
    )


def wide(look: "Look", seen: Checkup) -> Finding | None:
    """Intervals that are too wide to use."""
    vague = [m.name for m in look.measures if _relative(m) > WIDE]
    if not vague:
        return None
    return Finding(
        rule="wide",
        severity=25,
        text=f"The {'interval' if len(vague) == 1 else 'intervals'} of "
        f"{listed([plain(name) for name in vague])} {_is(len(vague))} too wide to use.",
        advice="More data, or a longer --budget, narrow them.",
        section=vague[0],
    )


def better_than_linear(look: "Look", seen: Checkup) -> Finding | None:
    """What the network adds to a linear model."""
    pair = _against_linear(seen)
    if pair is None or pair[2] <= 0:
        return None
    own, linear, low, high = pair
    return Finding(
        rule="better than linear",
        severity=20,
        text=f"It is right on {own:.1%} of {seen.n:,} rows, {100 * low:.1f} to {100 * high:.1f} "
        f"points more than {_lower(_linear_label(look))} ({linear:.1%}).",
    )


def regression(look: "Look", seen: Checkup) -> Finding | None:
    """Squared errors beside those of a linear model."""
    if seen.targets is None or seen.linear is None or seen.n < 20:
        return None
    own, linear = seen.errors(seen.outputs), seen.errors(seen.linear)
    low, high = _mean_interval(linear - own)
    numbers = f"{number(float(own.mean()), 3)} against {number(float(linear.mean()), 3)}"
    if low > 0:
        return Finding(
            rule="regression",
            severity=20,
            text=f"Its mean squared error on {seen.n:,} rows is smaller than that of the linear "
            f"model, {numbers}.",
        )
    how = "larger than" if high < 0 else "not significantly smaller than"
    return Finding(
        rule="regression",
        severity=65,
        text=f"Its mean squared error on {seen.n:,} rows is {how} that of the linear model, "
        f"{numbers}.",
        advice="Ask what the network adds before you trust it with more.",
    )


def attacked(look: "Look", seen: Checkup) -> Finding | None:
    """How little breaks it, where nothing speaks against the attack."""
    measured = _measure(look, "robustness")
    if measured is None or measured.summary is None or masking(look, seen) is not None:
        return None
    return Finding(
        rule="attacked",
        severity=15,
        text=f"Under attack ({measured.summary.basis.partition(';')[0]}) at most "
        f"{measured.summary.value:.2f} of the answers stay right.",
        section="robustness",
    )


def pieces(look: "Look", seen: Checkup) -> Finding | None:
    """Of how many linear regions it is made on the slice."""
    measured = _measure(look, "plane_regions")
    if measured is None or measured.summary is None:
        return None
    before = measured.reference("initialisation")
    drawn = "" if before is None or before.value is None else f", {number(before.value, 3)} before"
    least = "at least " if measured.summary.kind == "lower bound" else ""
    return Finding(
        rule="regions",
        severity=10,
        text=f"On the slice through three examples it has {least}{number(measured.summary.value)} "
        f"linear regions{drawn and f'{drawn} training'}.",
        section="plane_regions",
    )


#: All rules, in the order in which equally severe findings are told.
RULES: tuple[Rule, ...] = (
    chance,
    scaling,
    untrained,
    never_predicted,
    masking,
    no_better_than_linear,
    outside,
    brittle,
    memorised,
    nearly_linear,
    saturates,
    dead_units,
    wide,
    better_than_linear,
    regression,
    attacked,
    pieces,
)


def _against_linear(seen: Checkup) -> tuple[float, float, float, float] | None:
    """Return both accuracies on the same rows, and the 95% interval of their difference."""
    own, linear = seen.right, seen.linear_right
    if own is None or linear is None or seen.n < 20:
        return None
    interval = _mean_interval(own.double() - linear.double())  # paired: what one row adds
    return float(own.double().mean()), float(linear.double().mean()), *interval


def _mean_interval(values: Tensor) -> tuple[float, float]:
    """Return the 95% interval of the mean of independent values."""
    half = Z95 * float(values.std()) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def _under_attack(look: "Look") -> tuple[float, float] | None:
    """Return the accuracy under attack of the network and of the linear model."""
    measured = _measure(look, "robustness")
    linear = measured.reference("linear") if measured else None
    if measured is None or measured.summary is None or linear is None or linear.value is None:
        return None
    return measured.summary.value, linear.value


def _sure_and_wrong(seen: Checkup) -> str:
    right = seen.right if seen.right is not None else torch.ones(0)
    wrong = int((~right.bool()).sum())
    return f", though {wrong:,} of them are wrong" if wrong else ""


def _measure(look: "Look", name: str) -> Measured | None:
    return next((measured for measured in look.measures if measured.name == name), None)


def _score(look: "Look", rows: str) -> Score | None:
    own = [score for score in look.scores if score.who == "the network" and score.rows == rows]
    return own[0] if own else None


def _linear_label(look: "Look") -> str:
    return "Logistic regression" if look.data.task == "classes" else "The linear model"


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _relative(measured: Measured) -> float:
    summary = measured.summary
    if summary is None or summary.low is None or summary.high is None or not summary.value:
        return 0.0
    return (summary.high - summary.low) / 2 / abs(summary.value)


def _float(value: object) -> float:
    return float(value) if isinstance(value, float | int | Tensor) else math.nan


def _all(count: int) -> str:
    return "its one layer" if count == 1 else f"all {count} layers"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
