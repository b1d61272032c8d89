"""Shares of trainings that succeed, and differences of two shares, with intervals of 95%."""

from collections.abc import Sequence
from math import hypot

from inscape.lab.experiment import Estimate

#: The normal quantile of an interval of 95%.
Z = 1.959964


def share(successes: Sequence[bool]) -> Estimate:
    """Return the share of successes with Wilson's interval, which never has the width zero."""
    n = len(successes)
    p = sum(successes) / n
    middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * (p * (1 - p) / n + Z * Z / (4 * n * n)) ** 0.5
    return Estimate(
        value=p,
        low=max(0.0, middle - half),
        high=min(1.0, middle + half),
        se=(p * (1 - p) / n) ** 0.5,
        n=n,
        method=f"Wilson's interval over {n} networks",
    )


def difference(ones: Sequence[bool], others: Sequence[bool]) -> Estimate:
    """Return the first share minus the second, with Newcombe's interval made of Wilson's two."""
    a, b = share(ones), share(others)
    gap = a.value - b.value
    return Estimate(
        value=gap,
        low=gap - hypot(a.value - a.low, b.high - b.value),
        high=gap + hypot(a.high - a.value, b.value - b.low),
        se=hypot(a.se, b.se),
        n=min(a.n, b.n),
        method=f"Newcombe's interval over {a.n} and {b.n} networks",
    )
