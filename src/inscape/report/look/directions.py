"""Whether larger is better, the question that a number answers, and its distance from baselines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from inscape._core import instruments
from inscape._core.instrument import Better
from inscape.report.look.parts import Measured, Reference

#: Differences are counted in units of this fraction of the larger number, or of the interval.
UNIT = 0.05


@dataclass(frozen=True)
class Direction:
    """Whether a larger number is better, and what it means."""

    better: Better
    larger: str

    @property
    def short(self) -> str:
        """Return the direction in a few words."""
        return (
            f"larger means {self.larger}"
            if self.better == "neither"
            else f"{self.better} is better"
        )

    @property
    def sentence(self) -> str:
        """Return the direction as a sentence."""
        if self.better == "neither":
            return f"Larger means {self.larger}, in itself neither better nor worse."
        return f"{self.better.capitalize()} is better: larger means {self.larger}."


def direction(name: str) -> Direction | None:
    """Return which way the number of an instrument points; None where it does not say."""
    entry = instruments().get(name)
    return Direction(entry.better, entry.larger) if entry and entry.larger else None


def question(family: str) -> str:
    """Return the question that a family answers: the first sentence of its docstring."""
    try:
        summary = import_module(f"inscape.{family}").__doc__ or family
    except ImportError:  # a family that somebody else has added
        return family.capitalize()
    question, mark, _ = summary.partition("?")
    return question + mark if mark else family.capitalize()


def surprise(measured: Measured) -> float:
    """Return how far a number is from the nearest baseline, in units of their intervals.

    The unit is the half width of both intervals together, at least a twentieth of the larger
    number, so that exact numbers compare with estimates; 0 without a baseline.
    """
    summary = measured.summary
    if summary is None or not math.isfinite(summary.value):
        return 0.0
    own = half_width(summary.low, summary.high)
    factors = [
        _distance(summary.value, own, reference)
        for reference in measured.references
        if reference.name != "bound" and reference.value is not None
    ]
    return min(factors, default=0.0)


def _distance(value: float, own: float, reference: Reference) -> float:
    other = reference.value if reference.value is not None else math.nan
    if not math.isfinite(other):
        return 0.0
    size = max(abs(value), abs(other))
    unit = max(math.hypot(own, half_width(reference.low, reference.high)), UNIT * size)
    return abs(value - other) / unit if unit else 0.0


def half_width(low: float | None, high: float | None) -> float:
    """Return half the width of an interval, 0 where there is none."""
    width = 0.0 if low is None or high is None else (high - low) / 2
    return width if math.isfinite(width) else 0.0


def by_question(measurements: Sequence[Measured]) -> list[tuple[str, list[Measured]]]:
    """Return measurements grouped by the question that they answer, the most surprising first."""
    ranked = sorted(measurements, key=surprise, reverse=True)
    families = dict.fromkeys(measured.family for measured in ranked)
    return [(family, [m for m in ranked if m.family == family]) for family in families]
