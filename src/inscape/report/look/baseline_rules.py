"""Rules that compare a network with a linear model and with its own initialisation."""

import math
from typing import TYPE_CHECKING

from inscape._core import Summary
from inscape._core.result import CORRELATION
from inscape.report.look.baselines import ratio, times_as_large
from inscape.report.look.checkup import Checkup
from inscape.report.look.directions import half_width, surprise
from inscape.report.look.finding import (
    FEWEST,
    Finding,
    linear_label,
    mean_interval,
    measurement,
)
from inscape.report.look.parts import Reference
from inscape.report.words import first_up, number, plain

if TYPE_CHECKING:
    from inscape.report.look.look import Look

#: Difference in accuracy under attack that is worth a sentence.
BRITTLE = 0.02
#: Fraction of its outputs' variance that a linear model must explain for a network to be nearly
#: linear: what remains is a tenth of their standard deviation.
LINEAR = 0.99
#: Units of its interval by which a number must differ from every baseline to be surprising.
FAR = 4.0
#: A baseline that is so many times smaller or larger is degenerate, and compared with nothing.
APART = 1e4
#: Numbers that other rules speak of, or that differ from those of a linear model by their nature.
EXPECTED = ("robustness", "plane_regions", "line_regions", "region_at", "local_minimum")


def untrained(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of weights that are distributed as at initialisation."""
    if not checkup.weighed or len(checkup.fresh) < checkup.weighed:
        return None
    layers = "its one layer" if checkup.weighed == 1 else f"all {checkup.weighed} layers"
    return Finding(
        rule="untrained",
        severity=98,
        text=f"The weights look untrained: in {layers} they are distributed as an initialisation "
        "draws them.",
        advice="Give the trained weights with --weights.",
        section="model",
    )


def no_better_than_linear(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn if a linear model is as accurate, and say which is more robust under attack."""
    pair = _against_linear(checkup)
    if pair is None or pair[2] > 0 or look.data.measured == "all examples":
        return None  # of the very examples that it was fitted to, a linear model knows too much
    own, linear, _, high = pair
    label = first_up(linear_label(look))
    text = (
        f"{label} is better ({linear:.1%} against {own:.1%} of {checkup.n:,} examples)"
        if high < 0
        else f"{label} does as well ({linear:.1%} against {own:.1%} of {checkup.n:,} examples, "
        "difference not significant)"
    )
    attacked = _broken_sooner(look)
    if attacked is not None:
        text += f", and is more robust under attack ({attacked[1]:.2f} against {attacked[0]:.2f})"
    return Finding(
        rule="no better than linear",
        severity=65,
        text=f"{text}.",
        advice="Check what the network adds to a linear model.",
    )


def brittle(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn if the network is more accurate than the linear model but less robust."""
    pair, attacked = _against_linear(checkup), _broken_sooner(look)
    if pair is None or attacked is None or pair[2] <= 0:
        return None
    own, linear = attacked
    return Finding(
        rule="brittle",
        severity=55,
        text=f"It is more accurate than {linear_label(look)} ({pair[0]:.1%} against {pair[1]:.1%}) "
        f"but less robust: under attack {own:.2f} of its answers stay right, against "
        f"{linear:.2f}.",
        advice="inscape.controls.adversarial_training or a Jacobian penalty makes it more robust.",
        section="robustness",
    )


def nearly_linear(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn if the outputs are nearly an affine function of those of the linear model."""
    explained = checkup.linearity
    if explained is None or explained < LINEAR:
        return None
    return Finding(
        rule="nearly linear",
        severity=45,
        text=f"It is nearly linear: a linear model explains {explained:.1%} of the variance of its "
        f"outputs on {checkup.n:,} examples.",
        advice="A linear model would do.",
    )


def better_than_linear(look: "Look", checkup: Checkup) -> Finding | None:
    """Report how much more accurate than a linear model the network is."""
    pair = _against_linear(checkup)
    if pair is None or pair[2] <= 0:
        return None
    own, linear, low, high = pair
    return Finding(
        rule="better than linear",
        severity=20,
        text=f"It is right on {own:.1%} of {checkup.n:,} examples, {100 * low:.1f} to "
        f"{100 * high:.1f} points more than {linear_label(look)} ({linear:.1%}).",
    )


def regression(look: "Look", checkup: Checkup) -> Finding | None:
    """Compare the squared errors with those of a linear model."""
    if checkup.targets is None or checkup.linear is None or checkup.n < FEWEST:
        return None
    own, linear = checkup.errors(checkup.outputs), checkup.errors(checkup.linear)
    low, high = mean_interval(linear - own)
    numbers = f"{number(float(own.mean()), 3)} against {number(float(linear.mean()), 3)}"
    how = "larger than" if high < 0 else "not significantly smaller than"
    how = "smaller than" if low > 0 else how
    return Finding(
        rule="regression",
        severity=20 if low > 0 else 65,
        text=f"Its mean squared error on {checkup.n:,} examples is {how} that of the linear model, "
        f"{numbers}.",
        advice="" if low > 0 else "Check what the network adds to a linear model.",
    )


def surprising(look: "Look", checkup: Checkup) -> Finding | None:
    """Report the number that is farthest from all of its baselines."""
    compared = [m for m in look.measurements if m.name not in EXPECTED and not m.is_partial]
    most = max(compared, key=surprise, default=None)
    if most is None or surprise(most) < FAR or most.summary is None:
        return None
    parts = []
    for name, words in (("initialisation", "at initialisation"), ("linear", linear_label(look))):
        reference = most.reference(name)
        times = None if reference is None else _comparable_ratio(most.summary, reference)
        if times is not None and reference is not None and reference.value is not None:
            joined = "as" if name == "initialisation" else "as that of"
            parts.append(f"{times} {joined} {words} ({number(reference.value, 3)})")
    if not parts:
        return None
    return Finding(
        rule="surprising",
        severity=11,
        text=f"Its {plain(most.name)} of {number(most.summary.value, 3)} is {' and '.join(parts)}.",
        section=most.name,
    )


def _comparable_ratio(summary: Summary, reference: Reference) -> str | None:
    """Say how many times as large as a baseline a number is, if both are of any like size.

    With the running statistics of batch norm as they begin, a deep network is all but constant.
    """
    times = times_as_large(summary, reference)
    if times is None or not 1 / APART < times < APART:
        return None
    return ratio(summary, reference)


def _against_linear(checkup: Checkup) -> tuple[float, float, float, float] | None:
    """Return both accuracies on the same examples, and the 95% interval of their difference."""
    own, linear = checkup.right, checkup.linear_right
    if own is None or linear is None or checkup.n < FEWEST:
        return None
    added = own.double() - linear.double()  # paired: what one example adds
    interval = mean_interval(added, range=CORRELATION)
    return float(own.double().mean()), float(linear.double().mean()), *interval


def _broken_sooner(look: "Look") -> tuple[float, float] | None:
    """Return the accuracy under attack of the network and the linear model, if that is higher.

    The difference must be worth a sentence, and beyond the 95% interval of a difference.
    """
    measured = measurement(look, "robustness")
    linear = measured.reference("linear") if measured else None
    if measured is None or measured.summary is None or linear is None or linear.value is None:
        return None
    own = measured.summary
    chance = math.hypot(half_width(own.low, own.high), half_width(linear.low, linear.high))
    return (own.value, linear.value) if linear.value - own.value >= max(BRITTLE, chance) else None
