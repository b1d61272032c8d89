"""How length scale and robustness go with the knob of a control, from tables of whole sweeps."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inscape._core.result import CORRELATION, REAL, Range
from inscape.lab.experiment import Estimate
from inscape.lab.statistics import (
    bootstrap_estimate,
    mean_estimate,
    paired_difference,
    unrepeated,
)
from inscape.lab.store import Record

Array = npt.NDArray[np.float64]

#: Training error of noisy sums up to which a network counts as fitted: 1.2 times the noise. One
#: that gives the same everywhere has 0.75.
FITTED = 0.3
#: How much of its clean accuracy a network may lose beside the one without a control.
LOSS = 0.02
#: Clean accuracy from which on a network counts where scale and robustness are compared.
ABLE = 0.9


class Place(NamedTuple):
    """Which sweep: a task, a control, an activation and the number of hidden layers."""

    task: str
    control: str
    activation: str
    depth: int


class Sweep(NamedTuple):
    """Knobs, and by name a table of knobs and networks; NaN where there is no number."""

    knobs: Array
    tables: dict[str, Array]


def sweeps(records: Sequence[Record]) -> dict[Place, Sweep]:
    """Return all sweeps; with one hidden layer a shared knob is that of the first layer."""
    found = {}
    for record in records:
        own = record.settings
        place = Place(
            own["task"].partition(":")[0], own["control"], own["activation"], own["depth"]
        )
        tables = {
            name: np.array(record.values[name], float)
            for name in ("scale", "start", "loss", "clean", "robust")
            if name in record.values
        }
        found[place] = Sweep(np.array(record.values["knobs"], float), tables)
    for place in [p for p in found if p.control == "first" and p.depth == 1]:
        found[place._replace(control="shared")] = found[place]
    return found


def slopes(sweep: Sweep, name: str) -> Array:
    """Return for each network the slope of the log of a quantity by that of the knob."""
    return np.array([_slope(sweep.knobs, row) for row in sweep.tables[name].T])


def ranks(sweep: Sweep, name: str) -> Array:
    """Return for each network Spearman's correlation of a quantity with the knob."""
    return np.array([spearman(sweep.knobs, row) for row in sweep.tables[name].T])


def _slope(knobs: Array, values: Array) -> float:
    good = np.isfinite(values) & (values > 0)
    if good.sum() < 2:
        return np.nan
    return float(np.polyfit(np.log(knobs[good]), np.log(values[good]), 1)[0])


def spearman(x: Array, y: Array) -> float:
    """Return the rank correlation of pairs that are finite; 0 where one side is constant."""
    from scipy.stats import rankdata

    good = np.isfinite(x) & np.isfinite(y)
    if good.sum() < 2:
        return np.nan
    first, second = (rankdata(side[good]) for side in (x, y))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def mean_of(values: Array, within: Range = REAL) -> Estimate | None:
    """Return the mean over networks that have a number, with its interval in that range."""
    good = values[np.isfinite(values)]
    return mean_estimate(good, within=within) if len(good) else None


def fitted(sweep: Sweep) -> Array:
    """Return for each network the share of knobs at which it fits its data."""
    return np.asarray((sweep.tables["loss"] <= FITTED).mean(0), float)


def gain(sweep: Sweep, plain: Sweep) -> tuple[Estimate, float | None]:
    """Return robust accuracy at the best knob minus that without a control, and the knob.

    Knobs count at which the mean clean accuracy is at most 2 points lower; without any the control
    is left off, which gains nothing.
    """
    clean, robust = (_means(sweep.tables[name]) for name in ("clean", "robust"))
    keeps = clean >= float(np.nanmean(plain.tables["clean"])) - LOSS
    if not keeps.any():
        return unrepeated(0.0, "no knob keeps the clean accuracy"), None
    best = int(np.argmax(np.where(keeps, robust, -1.0)))
    pair = sweep.tables["robust"][best], plain.tables["robust"][0]
    good = np.isfinite(pair[0]) & np.isfinite(pair[1])
    return paired_difference(pair[0][good], pair[1][good]), float(sweep.knobs[best])


def _means(table: Array) -> Array:
    """Return the mean of each row; -1 where none of its networks has a number."""
    good = np.isfinite(table)
    return np.where(good.any(1), np.where(good, table, 0).sum(1) / np.maximum(good.sum(1), 1), -1)


def worst_rank(found: dict[Place, Sweep], control: str, activation: str) -> Estimate | None:
    """Return Spearman's correlation at the depth beyond one where it is farthest from -1."""
    deep = [
        mean_of(ranks(sweep, "scale"), CORRELATION)
        for place, sweep in found.items()
        if place[:3] == ("sums", control, activation) and place.depth > 1
    ]
    known = [one for one in deep if one is not None]
    return max(known, key=lambda one: one.value) if known else None


def nearest_law(
    found: dict[Place, Sweep], controls: Sequence[str], activation: str
) -> Estimate | None:
    """Return how far the best control's slope is from -1 at its worst depth beyond one."""
    table = [
        [slopes(sweep, "scale") for p, sweep in found.items() if _deep(p, control, activation)]
        for control in controls
    ]
    table = [rows for rows in table if rows]
    if not table:
        return None

    def best(networks: Sequence[Any]) -> float:
        some = np.array(networks)
        with np.errstate(invalid="ignore"):
            off = [max(abs(np.nanmean(row[some]) + 1) for row in rows) for rows in table]
        return float(np.nanmin(off))

    return bootstrap_estimate(list(range(len(table[0][0]))), best, draws=500)


def _deep(place: Place, control: str, activation: str) -> bool:
    return place[:3] == ("sums", control, activation) and place.depth > 1


def together(found: dict[Place, Sweep], activation: str) -> Estimate | None:
    """Return Spearman's correlation of length scale and robust accuracy of deep able networks.

    Over all controls, knobs and depths beyond one, for each number of a network.
    """
    mine = [
        sweep.tables
        for place, sweep in found.items()
        if (place.task, place.activation) == ("digits", activation) and place.depth > 1
    ]
    if not mine:
        return None
    scale, robust, clean = (
        np.concatenate([tables[name] for tables in mine if tables[name].shape[1:]], 0)
        for name in ("scale", "robust", "clean")
    )
    scale = np.where(clean >= ABLE, scale, np.nan)
    return mean_of(
        np.array([spearman(a, b) for a, b in zip(scale.T, robust.T, strict=True)]), CORRELATION
    )
