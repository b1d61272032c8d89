"""The second design: add the measure to the loss, and see how far it falls (table 4.4).

A measure that gradient descent already keeps low cannot be lowered much at the same training loss.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inscape._core.result import NONNEGATIVE, PROPORTION
from inscape.lab.experiment import Axes, Estimate, Settings
from inscape.lab.statistics import mean_estimate, paired_difference
from inscape.lab.store import Record
from inscape.papers.volhejn._growing import own_seed, trained
from inscape.papers.volhejn._measures import FIRST_ORDER, SECOND_ORDER, THESIS, check, measured

#: Learning rate of the runs with each penalty.
LR = {"GN": 0.01, "PL0": 0.1, "PL1": 0.1, "WP": 0.01}
#: What no function that fits the labels can go below (Eq. 4.8 for the path length).
LOWER_BOUND = {"GN": 0.0, "PL0": 1.0, "PL1": 0.0, "WP": 0.0}
#: Coefficients of each penalty beside 0; path lengths are summed over pairs (V3).
COEFFICIENTS = {"GN": (1e-5, 1e-4, 1e-3), "PL0": (1e-4,), "PL1": (1e-5,), "WP": (1e-5, 3e-5)}

#: Training images of the thesis.
FULL = 10_000

#: Penalty, coefficient and learning rate of every run; those without penalty serve two measures.
RUNS = (
    ("none", 0.0, 0.01),
    ("none", 0.0, 0.1),
    *(
        (THESIS[measure], coefficient, LR[measure])
        for measure, coefficients in COEFFICIENTS.items()
        for coefficient in coefficients
    ),
)
AXES: Axes = {
    "penalty": ["none", *THESIS.values()],
    "coefficient": sorted({coefficient for _, coefficient, _ in RUNS}),
    "lr": [0.01, 0.1],
}


def keeps(settings: Settings) -> bool:
    """Keep the combinations of penalty, coefficient and learning rate that the thesis ran."""
    return (settings["penalty"], settings["coefficient"], settings["lr"]) in RUNS


def cell(
    data: str,
    n: int,
    penalty: str,
    coefficient: float,
    lr: float,
    seed: int,
    hidden: int,
    batch: int,
    stop_loss: float,
    epochs: int,
    measures: Sequence[str],
) -> dict[str, Any]:
    """Train one network with a penalty, and measure it on training and on test images."""
    check(measures)
    one = trained(
        data,
        n,
        own=own_seed(data, n, seed),  # the same start with and without penalty
        scale=0.01,
        hidden=hidden,
        lr=lr,
        batch=batch,
        stop_loss=stop_loss,
        epochs=epochs,
        penalty=penalty,
        coefficient=coefficient,
    )
    splits = {"test": one.test, "train": one.train}
    return one.went | {
        split: measured(one.model, *points, measures=measures, start=one.start)
        for split, points in splits.items()
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell from the thesis' numbers of epochs."""
    typical = {
        "none": (5000, 3e-4),
        "gradient_norm": (5500, 1.1e-3),
        "weights_product": (6500, 3.2e-4),
        "path_length": (9800, 3.4e-4),
        "gradient_path_length": (7300, 9e-4),
    }
    epochs, step = typical[settings["penalty"]]
    if settings["penalty"] == "none" and settings["lr"] == 0.1:
        epochs = 1400
    epochs = min(epochs, settings["epochs"])
    return float(4 + epochs * settings["n"] / settings["batch"] * step)


Table = Mapping[float, Mapping[str, Record]]


def table(records: Sequence[Record], measure: str) -> Table:
    """Return the runs that serve a measure, by coefficient and data set."""
    found: dict[float, dict[str, Record]] = defaultdict(dict)
    for record in records:
        settings = record.settings
        if settings["lr"] == LR[measure] and settings["penalty"] in ("none", THESIS[measure]):
            found[settings["coefficient"]][settings["data"]] = record
    return dict(sorted(found.items()))


def ratios(
    records: Sequence[Record], measure: str, coefficient: float, split: str = "test"
) -> dict[str, float]:
    """Return what is left of a measure above its bound, for each data set where both converged."""
    runs = table(records, measure)
    free, held = runs.get(0.0, {}), runs.get(coefficient, {})
    bound = LOWER_BOUND[measure]
    return {
        name: (value(held[name], measure, split) - bound)
        / (value(free[name], measure, split) - bound)
        for name in held
        if name in free and held[name].values["converged"] and free[name].values["converged"]
    }


def value(record: Record, measure: str, split: str = "test") -> float:
    """Return a measure of a run."""
    return float(record.values[split].get(measure, float("nan")))


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return, for each measure, its mean without and with penalty and what is left of it."""
    found: dict[str, Estimate] = {}
    left: dict[str, dict[str, float]] = {}
    there = {name for record in records for name in record.values["test"]}
    for measure, coefficients in COEFFICIENTS.items():
        top = coefficients[-1]
        if measure not in there:
            continue
        runs = table(records, measure)
        for coefficient in coefficients:
            for split in ("test", "train"):
                share = ratios(records, measure, coefficient, split)
                name = f"left/{measure}" + (f"/{coefficient:g}" if coefficient != top else "")
                if share:
                    found[name + (" on training points" if split == "train" else "")] = (
                        mean_estimate(list(share.values()), within=NONNEGATIVE)
                    )
        left[measure] = ratios(records, measure, top)
        if left[measure]:
            trained_on = ratios(records, measure, top, "train")
            both = [(left[measure][name], trained_on[name]) for name in left[measure]]
            found[f"lost/{measure}"] = paired_difference(*zip(*both, strict=True))
        for name, coefficient in (("free", 0.0), ("held", top)):
            values = [value(runs[coefficient][data], measure) for data in left[measure]]
            if values:
                found[f"{name}/{measure}"] = mean_estimate(values)
        held = runs.get(top, {})
        if held:
            found[f"omitted/{measure}"] = mean_estimate(
                [float(data not in left[measure]) for data in held], within=PROPORTION
            )
    shared = [name for name in left.get("GN", {}) if all(name in left[m] for m in left)]
    if shared and len(left) == len(THESIS):
        orders = [
            [float(np.mean([left[m][name] for m in group])) for name in shared]
            for group in (SECOND_ORDER, FIRST_ORDER)
        ]
        found["gap"] = paired_difference(*orders)
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what is left of each measure, after how many steps, and which data sets were left out."""
    said = []
    for measure, coefficients in COEFFICIENTS.items():
        runs, top = table(records, measure), coefficients[-1]
        share = ratios(records, measure, top)
        gone = sorted(set(runs.get(top, {})) - set(share))
        if not share or any(np.isnan(list(share.values()))):
            continue
        left = mean_estimate(list(share.values()), within=NONNEGATIVE)
        steps = np.median([_steps(runs[top][name]) for name in share])
        omitted = f"; left out, not converged: {', '.join(gone)}" if gone else ""
        said.append(
            f"{measure}: {left.value:.0%} is left at {top:g} ({left.low:.0%} to {left.high:.0%}), "
            f"after {steps:,.0f} steps{omitted}."
        )
    if said and records[0].settings["n"] < FULL:
        said.append(
            f"With {records[0].settings['n']:,} images an epoch has fewer steps than with the "
            f"thesis' {FULL:,}, so a penalty acts for a shorter time: what is left here says "
            "little about what could be left, and SGD's own preference stays undecided."
        )
    return said


def _steps(record: Record) -> int:
    """Return how many updates a run made."""
    settings = record.settings
    return int(record.values["epochs"]) * -(-int(settings["n"]) // int(settings["batch"]))
