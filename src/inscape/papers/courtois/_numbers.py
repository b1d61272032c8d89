"""Numbers of the checks: the largest error, slopes in logarithms, and records by their settings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inscape._core.result import REAL, Range
from inscape.lab.experiment import Estimate
from inscape.lab.statistics import exact_estimate, mean_estimate
from inscape.lab.store import Record


def largest(values: Sequence[float]) -> Estimate:
    """Return the largest of errors that have no sampling in them."""
    return exact_estimate(max(values), len(values), f"largest of {len(values)}")


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the power with which ``y`` grows: the slope of its logarithm on that of ``x``.

    >>> round(slope([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    across, up = np.log(x), np.log(y)
    across = across - across.mean()
    return float(across @ up / (across @ across))


def slope_over_seeds(records: Sequence[Record], x: str, y: str) -> Estimate | None:
    """Return the mean power over seeds, None where a seed has no two values of ``x``.

    What varies is a setting, or else one of the values.
    """
    found = []
    for seed in sorted({record.settings["seed"] for record in records}):
        own = [record for record in records if record.settings["seed"] == seed]
        across = [float(record.settings.get(x, record.values.get(x))) for record in own]
        if len(set(across)) < 2:
            return None
        found.append(slope(across, [float(record.values[y]) for record in own]))
    return mean_estimate(found) if found else None


def chosen(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """Return the records with these settings."""
    return [r for r in records if all(r.settings[name] == value for name, value in wanted.items())]


def means(records: Sequence[Record], name: str, within: Range = REAL) -> Estimate | None:
    """Return the mean of a number, of that range, over the networks that have it."""
    values = [r.values[name] for r in records if r.values.get(name) is not None]
    return mean_estimate(values, within=within) if values else None


def known(found: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    """Leave out what could not be estimated."""
    return {name: one for name, one in found.items() if one is not None}
