"""Quantities as data: what an experiment estimates, over which records, with which interval.

``Mean("accuracy").where(optimizer="adam")`` is a number of every record that was trained by Adam,
and the mean of them with Student's interval. A quantity knows which settings tell the sides of its
comparison apart (``groups``), and what is independent in it (``unit``), so that others can permute
the one over the other.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from inscape._core.result import CORRELATION, REAL, Range
from inscape.lab.experiment import Estimate
from inscape.lab.intervals import log_ratio_of_means, studentised
from inscape.lab.records import Of, Record, Records, in_view
from inscape.lab.statistics import (
    STUDENTISED,
    bootstrap_estimate,
    exact_estimate,
    kendall_tau,
    log_slope,
    mean_estimate,
    paired_difference,
    proportion_difference,
    proportion_of,
)

Interval = Literal["t", "bootstrap"]


@dataclass(frozen=True, init=False)
class Column:
    """One side of a comparison: a number of each record that has these settings.

    >>> Column("loss", optimizer="adam").settings
    {'optimizer': 'adam'}
    """

    of: Of
    settings: Mapping[str, Any]

    def __init__(self, of: Of, **settings: Any) -> None:
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "settings", settings)

    def __call__(self, records: Records, unit: str) -> dict[Any, Any]:
        """Return the number of each unit, such as a seed."""
        return records.where(**self.settings).column(self.of, unit)

    def values(self, records: Records) -> list[Any]:
        """Return the number of each record."""
        return records.where(**self.settings).values(self.of)


@dataclass(frozen=True)
class Quantity(ABC):
    """A rule from records to a number with its interval; None where records are missing."""

    _: KW_ONLY
    #: What is independent: a setting such as the seed, or empty if every record is.
    unit: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    keep: Callable[[Record], bool] | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the settings that tell the sides of the comparison apart."""
        return ()

    def where(self, keep: Callable[[Record], bool] | None = None, /, **settings: Any) -> "Quantity":
        """Return the same quantity of fewer records: see :meth:`Records.where`."""
        return replace(self, settings={**self.settings, **settings}, keep=keep or self.keep)

    def __call__(self, records: Iterable[Record]) -> Estimate | None:
        """Return the estimate from the records that the quantity is about."""
        chosen = in_view(records).where(self.keep, **self.settings)
        return self.estimate(chosen) if chosen else None

    @abstractmethod
    def estimate(self, records: Records) -> Estimate | None:
        """Return the estimate from filtered records."""


def mean_of(values: Sequence[Any], interval: Interval, within: Range = REAL) -> Estimate | None:
    """Return the mean of numbers with Student's interval or that of a bootstrap; None of none."""
    if not values:
        return None
    if interval == "bootstrap":
        return bootstrap_estimate(values, within=within)
    return mean_estimate(values, within=within)


@dataclass(frozen=True)
class Mean(Quantity):
    """The mean of a number of each record.

    Attributes:
        of: What is read of a record.
        within: Range of such a number; the interval is cut off there.
        interval: Student's, or the percentiles of a bootstrap over records.
    """

    of: Of
    within: Range = REAL
    interval: Interval = "t"

    def estimate(self, records: Records) -> Estimate | None:
        """Return the mean over records that have the number."""
        return mean_of(records.values(self.of), self.interval, self.within)


@dataclass(frozen=True)
class Proportion(Quantity):
    """The fraction of records for which something is true, with Wilson's interval."""

    of: Of

    def estimate(self, records: Records) -> Estimate | None:
        """Return the fraction of the records that tell."""
        values = records.values(self.of)
        return proportion_of([bool(value) for value in values]) if values else None


@dataclass(frozen=True)
class Exact(Quantity):
    """A number that was counted or computed exactly.

    Attributes:
        of: What is read of a record.
        rule: What is made of the numbers of several records: ``max``, ``sum``; the first by
            default.
        method: How it was found, in a few words.
        n: How many things it was counted over; so many records by default, one where the first
            record says it all.
    """

    of: Of
    rule: Callable[[Sequence[Any]], float] | None = None
    method: str = ""
    n: int | None = None

    def estimate(self, records: Records) -> Estimate | None:
        """Return the number, as if known for sure."""
        values = records.values(self.of)
        if not values:
            return None
        value = float(self.rule(values) if self.rule else values[0])
        n = self.n or (len(values) if self.rule else 1)
        return exact_estimate(value, n, self.method)


@dataclass(frozen=True)
class Largest(Quantity):
    """The largest of errors that have no sampling in them."""

    of: Of

    def estimate(self, records: Records) -> Estimate | None:
        """Return the largest error over records."""
        values = records.values(self.of)
        if not values:
            return None
        return exact_estimate(max(values), len(values), f"largest of {len(values)}")


@dataclass(frozen=True)
class Comparison(Quantity):
    """Two columns held beside each other, unit by unit.

    Attributes:
        first: The one side.
        second: The other.
    """

    first: Column
    second: Column
    _: KW_ONLY
    unit: str = "seed"

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the settings in which the two columns differ."""
        first, second = self.first.settings, self.second.settings
        return tuple(name for name in {**first, **second} if first.get(name) != second.get(name))

    def pairs(self, records: Records) -> list[tuple[Any, Any]]:
        """Return both numbers of each unit that has both, units in rising order."""
        first, second = (side(records, self.unit) for side in (self.first, self.second))
        return [(first[key], second[key]) for key in sorted(first.keys() & second.keys())]


@dataclass(frozen=True)
class Difference(Comparison):
    """The mean of the first column minus the second, with the interval of the paired t test.

    Attributes:
        log: Whether logarithms are subtracted: the logarithm of a ratio.
    """

    _: KW_ONLY
    log: bool = False

    def estimate(self, records: Records) -> Estimate | None:
        """Return the mean difference over units."""
        pairs = np.array(self.pairs(records), dtype=float)
        if not len(pairs):
            return None
        return paired_difference(*(np.log(pairs) if self.log else pairs).T)


@dataclass(frozen=True)
class LogRatio(Comparison):
    """Log10 of the ratio of two arithmetic means, with a studentised bootstrap over units.

    None where a number is not positive: it has no logarithm.
    """

    def estimate(self, records: Records) -> Estimate | None:
        """Return how many decades the first mean lies above the second."""
        pairs = self.pairs(records)
        if not pairs or any(not (above > 0 and below > 0) for above, below in pairs):
            return None
        if len(pairs) < STUDENTISED:
            return bootstrap_estimate(pairs, _decades, draws=1000)
        table = np.array(pairs, dtype=float)
        low, high, se = (end / math.log(10) for end in studentised(table, log_ratio_of_means))
        return Estimate(
            value=_decades(pairs),
            low=low,
            high=high,
            se=se,
            n=len(pairs),
            method=f"studentised bootstrap over {len(pairs)} seeds",
            interval="studentised",
        )


def _decades(pairs: Sequence[tuple[float, float]]) -> float:
    above, below = np.mean(np.array(pairs), axis=0)
    return float(np.log10(above / below))


@dataclass(frozen=True)
class ProportionDifference(Comparison):
    """The first fraction minus the second, unpaired, with Newcombe's interval."""

    def estimate(self, records: Records) -> Estimate | None:
        """Return the difference of two fractions of records."""
        ones, others = (
            [bool(value) for value in side.values(records)] for side in (self.first, self.second)
        )
        return proportion_difference(ones, others) if ones and others else None


@dataclass(frozen=True)
class Relation(Quantity):
    """How one number goes with another.

    Attributes:
        x: What it goes with, mostly a setting.
        y: The number.
    """

    x: Of
    y: Of
    _: KW_ONLY
    unit: str = "seed"

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the setting that the number goes with."""
        return (self.x,) if isinstance(self.x, str) else ()

    def lines(self, records: Records) -> dict[Any, tuple[list[Any], list[Any]]]:
        """Return both numbers of the records of each unit."""
        return {
            key: (own.values(self.x), own.values(self.y))
            for key, own in sorted(records.by(self.unit).items())
        }


@dataclass(frozen=True)
class Tau(Relation):
    """Kendall's tau within each unit, and its mean over units.

    Attributes:
        interval: How the interval over units is made.
        within: Range at which it is cut off.
        undefined: What stands for tau where one side is constant; such units count as NaN if not
            given.
        complete: Whether units that lack some of the ``x`` of the others are left out.
    """

    _: KW_ONLY
    interval: Interval = "bootstrap"
    within: Range = CORRELATION
    undefined: float | None = None
    complete: bool = False

    def estimate(self, records: Records) -> Estimate | None:
        """Return the mean tau over units."""
        return mean_of(self.taus(records), self.interval, self.within)

    def taus(self, records: Records) -> list[float]:
        """Return tau of each unit."""
        levels = set(records.values(self.x)) if self.complete else set()
        lines = ((x, y) for x, y in self.lines(records).values() if y and levels <= set(x))
        taus = [kendall_tau(x, y) for x, y in lines]
        if self.undefined is None:
            return taus
        return [self.undefined if math.isnan(tau) else tau for tau in taus]


@dataclass(frozen=True)
class TauOfMeans(Relation):
    """Kendall's tau of the levels of a setting and the mean at each, with a bootstrap over units.

    Attributes:
        levels: The levels in their order; those of the records, rising, by default.
        draws: Draws of the bootstrap.
    """

    _: KW_ONLY
    levels: tuple[Any, ...] = ()
    draws: int = 1000

    def estimate(self, records: Records) -> Estimate | None:
        """Return tau over the units that have every level."""
        assert isinstance(self.x, str)  # levels are those of a setting
        levels = self.levels or records.different(self.x)
        columns = [records.where(**{self.x: level}).column(self.y, self.unit) for level in levels]
        units = sorted(set.intersection(*map(set, columns))) if len(columns) > 1 else []
        if not units:
            return None
        lines = [[column[key] for column in columns] for key in units]
        return bootstrap_estimate(lines, _tau_of_means, draws=self.draws, within=CORRELATION)


def _tau_of_means(lines: Sequence[Sequence[float]]) -> float:
    means = np.mean(np.array(lines), axis=0)
    return kendall_tau(range(len(means)), means)


@dataclass(frozen=True)
class Slope(Relation):
    """The power with which a number grows, within each unit, and its mean over units."""

    def estimate(self, records: Records) -> Estimate | None:
        """Return the mean slope of logarithms; None where a unit has no two values of ``x``."""
        lines = self.lines(records)
        if any(len(set(x)) < 2 for x, _ in lines.values()):
            return None
        return mean_of([log_slope(x, y) for x, y in lines.values()], "t")


Rule = Quantity | Callable[[Records], Estimate | None]
Rules = Callable[[Records], Mapping[str, Estimate | None]]


class Quantities:
    """The analysis of an experiment: its quantities by name, those without records left out.

    Args:
        named: Quantities, or functions of the records that give one estimate.
        more: Functions that give several, where their names depend on the records.
    """

    def __init__(self, named: Mapping[str, Rule] | None = None, *more: Rules) -> None:
        self.named = dict(named or {})
        self.more = more

    def __call__(self, records: Iterable[Record]) -> dict[str, Estimate]:
        """Return the estimates."""
        view = in_view(records)
        estimates: dict[str, Estimate | None] = {name: of(view) for name, of in self.named.items()}
        for rules in self.more:
            estimates |= rules(view)
        return {name: estimate for name, estimate in estimates.items() if estimate is not None}


def exactly(
    numbers: Callable[[Records], Mapping[str, float]], n: int = 1, method: str = ""
) -> Rules:
    """Return the quantities of a function that counts or computes several numbers exactly.

    Args:
        numbers: Gives each number by its name.
        n: How many things they were counted over.
        method: How they were found, in a few words.
    """

    def estimates(records: Records) -> dict[str, Estimate | None]:
        return {
            name: exact_estimate(float(number), n, method)
            for name, number in numbers(records).items()
        }

    return estimates
