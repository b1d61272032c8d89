"""Quantities over copies of image networks: what is independent is a copy of the design."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inscape.lab.experiment import Estimate, Settings
from inscape.lab.quantities import Column, Difference
from inscape.lab.records import Record, Records
from inscape.lab.statistics import mean_estimate, paired_difference
from inscape.papers.sattelberg._networks import OPTIMIZERS

Read = Callable[[Record], float]
Estimating = Callable[[Records], Estimate | None]


def keeps(settings: Settings) -> bool:
    """Keep one copy by SGD of the pretrained network, and our networks without it."""
    if settings["net"] != "mobilenet":
        return not settings["mobilenet"]
    is_first = settings["copy"] == 1 and settings["optimizer"] == "sgd"
    return bool(settings["mobilenet"]) and is_first


def of_outputs(name: str) -> Read:
    """Return what reads the mean of a number over the ten outputs."""
    return lambda record: float(np.mean(record.values[name]))


def between_optimizers(of: Read, net: str, *, adamw_first: bool, log: bool = False) -> Difference:
    """Return a number of a network by one optimizer less that by the other, copy by copy."""
    names = ("adamw", "sgd") if adamw_first else ("sgd", "adamw")
    first, second = (Column(of, net=net, optimizer=name) for name in names)
    return Difference(first, second, unit="copy", log=log)


def of_kinds(
    records: Records, of: Read, nets: Sequence[str], optimizers: Sequence[str] = OPTIMIZERS
) -> dict[int, float]:
    """Return the mean of a number over networks and optimizers, for each copy that has all."""
    columns: list[dict[Any, Any]] = [
        records.where(net=net, optimizer=optimizer).column(of, "copy")
        for net in nets
        for optimizer in optimizers
    ]
    copies = set.intersection(*(set(column) for column in columns))
    return {copy: float(np.mean([c[copy] for c in columns])) for copy in sorted(copies)}


def kinds(of: Read, *nets: str, by: Sequence[str] = OPTIMIZERS) -> Estimating:
    """Return what gives the mean over copies of a number of some networks."""

    def estimate(records: Records) -> Estimate | None:
        values = list(of_kinds(records, of, nets, by).values())
        return mean_estimate(values) if values else None

    return estimate


def gap(
    of: Read,
    first: Sequence[str],
    second: Sequence[str],
    by: tuple[Sequence[str], Sequence[str]] = (OPTIMIZERS, OPTIMIZERS),
) -> Estimating:
    """Return what gives how much a number of some networks exceeds that of others.

    Args:
        of: The number of one network.
        first: Architectures of the one side, averaged.
        second: Architectures of the other.
        by: The optimizers of each side.
    """

    def estimate(records: Records) -> Estimate | None:
        a, b = of_kinds(records, of, first, by[0]), of_kinds(records, of, second, by[1])
        copies = sorted(a.keys() & b.keys())
        return paired_difference([a[c] for c in copies], [b[c] for c in copies]) if copies else None

    return estimate
