"""How often training finds a Boolean function: a quick run now, and the records of figure 3.5."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from inscape.boolean import npn
from inscape.boolean.truth_table import TruthTable
from inscape.lab.statistics import proportion_estimate
from inscape.lab.store import Store

#: Training as in section 3.4 of Sattelberg's dissertation.
EPOCHS, LEAK = 4000, 0.1
#: Activations that are tried, with their slopes below zero.
KINDS = {"leaky ReLU": LEAK, "ReLU": 0.0}
#: Where the two million networks of figure 3.5 are.
RECORDS, SCALES = "sattelberg/figure-3.5", ("paper", "laptop")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How many networks of one size learned the function, with Wilson's interval of 95%."""

    size: str
    width: int
    depth: int
    parameters: int
    activation: str
    networks: int
    solved: int
    fraction: float
    low: float
    high: float
    epochs: float | None


@dataclass(frozen=True, kw_only=True)
class EarlierTrial:
    """The smallest network of figure 3.5 that learned the class, and how often."""

    size: str
    activation: str
    networks: int
    solved: int
    fraction: float
    low: float
    high: float
    scale: str


def trials(
    table: TruthTable,
    sizes: Sequence[tuple[int, int]],
    *,
    networks: int,
    seed: int,
    until: float,
    threads: int | None,
    quiet: bool | None,
) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """Train networks of some sizes; return how many learned it, and the sizes without time."""
    from inscape.runtime.progress import progress

    done, late = [], []
    with progress(len(sizes) * len(KINDS), label="training", quiet=quiet) as bar:
        for width, depth in sizes:
            for kind, slope in KINDS.items():
                if time.perf_counter() > until:
                    late.append(f"{named(table.n, width, depth)} with {kind}")
                else:
                    done.append(_trial(table, width, depth, kind, slope, networks, seed, threads))
                bar.advance()
    return tuple(done), tuple(late)


def _trial(
    table: TruthTable,
    width: int,
    depth: int,
    kind: str,
    slope: float,
    networks: int,
    seed: int,
    threads: int | None,
) -> Trial:
    from inscape.ensembles.fit_tiny import fit_tiny

    trained = fit_tiny(
        (table.n, *[width] * depth, 1),
        torch.from_numpy(table.points),
        torch.from_numpy(table.bits.astype(float)),
        seeds=range(seed, seed + networks),
        activation="leaky_relu" if slope else "relu",
        slope=slope,
        epochs=EPOCHS,
        threads=threads,
        progress=False,
    )
    solved = int(trained.stopped.sum())
    rate = proportion_estimate(solved, networks)
    epochs = float(trained.epochs[trained.stopped].double().median()) if solved else None
    return Trial(
        size=named(table.n, width, depth),
        width=width,
        depth=depth,
        parameters=trained.weights.shape[1],
        activation=kind,
        networks=networks,
        solved=solved,
        fraction=rate.value,
        low=rate.low,
        high=rate.high,
        epochs=epochs,
    )


def named(n: int, width: int, depth: int) -> str:
    """Return the size of a network: inputs, hidden units of each layer, output."""
    return "-".join(map(str, [n, *[width] * depth, 1]))


def seen_before(canonical: int, results: Path) -> tuple[EarlierTrial, ...]:
    """Return, for each activation, the smallest network of figure 3.5 that learned a class."""
    if not results.is_dir():
        return ()
    store = Store(results, mends=False)
    place = int(np.searchsorted(npn.classes(4), canonical))
    for scale in SCALES:
        earlier = [
            trial
            for record in store.records(RECORDS, scale)
            if (trial := _earlier_trial(record.settings, record.values, place, scale)) is not None
        ]
        if earlier:
            return tuple(
                min((trial for trial in earlier if trial.activation == kind), key=_weights)
                for kind in KINDS
                if any(trial.activation == kind for trial in earlier)
            )
    return ()


def _earlier_trial(
    settings: Mapping[str, Any], values: Mapping[str, Any], place: int, scale: str
) -> EarlierTrial | None:
    count, trials = int(np.asarray(values["successes"])[place]), int(settings["trials"])
    if not count:
        return None
    rate = proportion_estimate(count, trials)
    return EarlierTrial(
        size=named(4, settings["width"], settings["depth"]),
        activation="leaky ReLU" if settings["leak"] else "ReLU",
        networks=trials,
        solved=count,
        fraction=rate.value,
        low=rate.low,
        high=rate.high,
        scale=scale,
    )


def _weights(trial: EarlierTrial) -> int:
    widths = [int(part) for part in trial.size.split("-")]
    return sum((a + 1) * b for a, b in pairwise(widths))
