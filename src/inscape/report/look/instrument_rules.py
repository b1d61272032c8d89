"""Rules on single instruments: attacks, extrapolation, idle units, intervals, linear regions."""

import math
from typing import TYPE_CHECKING

from torch import Tensor

from inscape._core.result import PROPORTION
from inscape.extrapolation import Extrapolation
from inscape.landscape import LocalMinimum
from inscape.report.look.checkup import Checkup
from inscape.report.look.finding import Finding, are, measurement
from inscape.report.look.parts import Measured, sentence_of
from inscape.report.words import listed, number, plain
from inscape.robustness.robustness import UNFINISHED

if TYPE_CHECKING:
    from inscape.report.look.look import Look

#: How many times a peer's error the network's must be to be called much worse.
WORSE = 1.5
#: Fraction of dead or of duplicate units that is worth a sentence: a tenth of the layers is idle.
IDLE = 0.10
#: Half width over value above which an interval is too wide to use: from there on the intervals of
#: two networks, one with twice the value of the other, overlap (1 + w > 2 - 2w).
WIDE = 1 / 3
#: The same for fractions from 0 to 1, in points: two networks 20 points apart overlap.
WIDE_FRACTION = 0.10
#: Width of the interval of an accuracy from which on it says nothing: that of some twenty points.
FEW = 0.4
#: From this many too wide intervals on, they come before the other findings that inform.
MANY = 3
#: Most instruments that are named where intervals are too wide.
NAMED = 4
#: Fraction of a window that must be cut before its regions are worth a sentence.
CUT = 0.1


def masking(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of signs that gradients are masked, so that an attack fails for that reason alone."""
    measured = measurement(look, "robustness")
    sentences = getattr(measured.result, "warnings", ()) if measured else ()
    begun = UNFINISHED.partition("{")[0]
    warnings = [sentence for sentence in sentences if not sentence.startswith(begun)]
    if not warnings:
        return None
    return Finding(
        rule="masking",
        severity=70,
        text=f"It may look more robust than it is: {warnings[0][0].lower()}{warnings[0][1:]}",
        advice="Attack it again with attack='autoattack'.",
        section="robustness",
    )


def outside(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn if errors outside the convex hull are much larger than those of a simple model."""
    measured = measurement(look, "extrapolation")
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
    disjoint = own["low"] is not None and _float(own["low"]) > _float(peers[name]["high"] or best)
    if error < WORSE * best or not disjoint:
        return None
    error_name = "fraction of wrong answers" if measured.result.classes else "mean squared error"
    return Finding(
        rule="outside",
        severity=60,
        text=f"Outside the convex hull of its data a {plain(name)} does better: {error_name} "
        f"{number(best, 3)} against {number(error, 3)}, on {own['queries']} examples.",
        advice="Do not trust it there without a check for distance.",
        section="extrapolation",
    )


def dead_units(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of ReLU units that are off on every example."""
    if checkup.dead < IDLE or not checkup.n:
        return None
    worst, fraction = _worst_layer(checkup.silent)
    return Finding(
        rule="dead units",
        severity=35,
        text=f"{checkup.dead:.0%} of its {_units(checkup.silent):,} ReLU units are off on all of "
        f"{checkup.n:,} examples, most of all in layer {worst!r} ({fraction:.0%}).",
        advice="inscape.pruning.node_pruning removes units that do nothing.",
        section="model",
    )


def duplicate_units(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of ReLU units that are a positive multiple of another one in their layer."""
    if checkup.duplicate < IDLE or not checkup.n:
        return None
    worst, fraction = _worst_layer(checkup.copies)
    return Finding(
        rule="duplicate units",
        severity=34,
        text=f"{checkup.duplicate:.0%} of its {_units(checkup.copies):,} ReLU units are copies of "
        f"another one up to a factor, most of all in layer {worst!r} ({fraction:.0%}).",
        advice="A narrower network would compute the same; inscape.pruning.node_pruning finds it.",
        section="model",
    )


def wide(look: "Look", checkup: Checkup) -> Finding | None:
    """Report intervals that are too wide to compare networks by."""
    vague = [measured.name for measured in look.measurements if _is_wide(measured)]
    if not vague:
        return None
    named = [plain(name) for name in vague[:NAMED]]
    rest = len(vague) - NAMED
    named += ["one more" if rest == 1 else f"{rest} more"] if rest > 0 else []
    intervals = "interval" if len(vague) == 1 else "intervals"
    return Finding(
        rule="wide",
        severity=25 if len(vague) >= MANY else 9,
        text=f"The 95% {intervals} of {listed(named)} {are(len(vague))} "
        "too wide to tell this network from one whose values are twice as large.",
        advice="More data or a longer budget would narrow them.",
        section=vague[0],
    )


def attacked(look: "Look", checkup: Checkup) -> Finding | None:
    """Report the accuracy under attack, if the attack is credible and had enough time."""
    measured = measurement(look, "robustness")
    if measured is None or measured.summary is None or masking(look, checkup) is not None:
        return None
    low, high = measured.summary.low, measured.summary.high
    if low is not None and high is not None and high - low > FEW:
        return None
    attack = measured.summary.basis.partition(";")[0]
    text = (
        f"Under attack ({attack}) at most {measured.summary.value:.2f} of its answers stay right."
    )
    if measured.summary.value == 1:
        text = f"An attack ({attack}) breaks none of its answers."
    return Finding(rule="attacked", severity=15, text=text, section="robustness")


def regions(look: "Look", checkup: Checkup) -> Finding | None:
    """Report the number of linear regions on the slice, if enough of it was covered."""
    measured = measurement(look, "plane_regions")
    if measured is None or measured.summary is None:
        return None
    covered = float(getattr(measured.result, "covered", 1.0))
    if covered < CUT:
        return None
    before = measured.reference("initialisation")
    value = None if before is None or covered < 1 else before.value
    then = "" if value is None else f", {number(value, 3)} before training"
    least = "at least " if measured.summary.kind == "lower bound" else ""
    where = "On its two inputs" if math.prod(look.model.inputs) == 2 else "On a plane through data"
    return Finding(
        rule="regions",
        severity=10,
        text=f"{where} it has {least}{number(measured.summary.value)} linear regions{then}.",
        section="plane_regions",
    )


def point(look: "Look", checkup: Checkup) -> Finding | None:
    """Report what kind of point of its training loss the network sits at, and what shows it."""
    measured = measurement(look, "local_minimum")
    if measured is None or not isinstance(measured.result, LocalMinimum):
        return None
    result = measured.result
    if result.covered < 1 and not result.is_moving:
        return None  # some samples that show nothing
    text = sentence_of(result)
    severity = 8 if result.is_moving else 16  # most trainings end on a slope
    return Finding(rule="point", severity=severity, text=text, section="local_minimum")


def _worst_layer(layers: dict[str, Tensor]) -> tuple[str, float]:
    fractions = {name: float(layer.double().mean()) for name, layer in layers.items()}
    worst = max(fractions, key=lambda name: fractions[name])
    return worst, fractions[worst]


def _units(layers: dict[str, Tensor]) -> int:
    return sum(len(layer) for layer in layers.values())


def _is_wide(measured: Measured) -> bool:
    """Tell whether an interval is too wide for the number to be compared."""
    summary, result = measured.summary, measured.result
    if summary is None or summary.low is None or summary.high is None:
        return False
    half = (summary.high - summary.low) / 2
    fraction = isinstance(result, Extrapolation) and result.classes
    if fraction or result.range == PROPORTION:
        return half > WIDE_FRACTION
    return half > WIDE * abs(summary.value)


def _float(value: object) -> float:
    return float(value) if isinstance(value, float | int | Tensor) else math.nan
