"""Differences of two fractions of trainings that succeed, with intervals of 95%."""

from collections.abc import Sequence
from math import hypot

from inscape.lab.experiment import Estimate
from inscape.lab.statistics import proportion_of


def difference(ones: Sequence[bool], others: Sequence[bool]) -> Estimate:
    """Return the first fraction minus the second, with Newcombe's interval made of Wilson's two."""
    a, b = proportion_of(ones), proportion_of(others)
    gap = a.value - b.value
    return Estimate(
        value=gap,
        low=gap - hypot(a.value - a.low, b.high - b.value),
        high=gap + hypot(a.high - a.value, b.value - b.low),
        se=hypot(a.se, b.se),
        n=min(a.n, b.n),
        method=f"Newcombe's interval over {a.n} and {b.n} networks",
        interval="binomial",
    )
