"""Section 3.4's training: many small networks on truth tables, each with a seed of its own.

The seed of a network is a hash of what it stands for (problem, size, leak, trial): numbers are
mixed in one after the other by the finaliser of SplitMix64, and the upper 63 bits are kept. So a
network's bits depend on nothing that is trained beside it, and more trials leave the first as they
were.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LEARNING_RATE = 0.025
EPOCHS = 4000
#: Trials of the dissertation's four-input runs.
TRIALS = 100
#: The leak of section 3.4 wherever nothing else is said.
LEAK = 0.1

SETTINGS_NOTE = (
    "Adam with learning rate 0.025 on the whole truth table at each step, inputs -1 and 1, up to "
    "4000 epochs, as printed. Left open and chosen here: He's normal law with the fan-in of each "
    "layer, biases that start at 0, and that training stops at the first epoch after which every "
    "row is right, so that success means success at some epoch."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcomes:
    """What became of the networks, one row for each problem and one column for each trial.

    Attributes:
        solved: Whether all rows of the truth table were right after some epoch.
        epochs: Epochs that were trained.
        right: Rows that are right at the end.
        best: The most rows that were right after any epoch.
        diverged: Whether the loss stopped being a number.
    """

    solved: Array
    epochs: Array
    right: Array
    best: Array
    diverged: Array


def trained(
    tables: Array,
    points: Array,
    *,
    width: int,
    depth: int,
    leak: float,
    seeds: Array,
    epochs: int = EPOCHS,
    start: Array | None = None,
    stops: bool = True,
) -> Outcomes:
    """Train a network for each problem and seed.

    Args:
        tables: Truth tables of 0 and 1, one row for each problem.
        points: Inputs in the same order, of -1 and 1.
        width: Units of each hidden layer.
        depth: Hidden layers.
        leak: Slope below zero; 0 for ReLU.
        seeds: One row for each problem and one column for each trial.
        epochs: Most steps of each network.
        start: First weights, one row for each network, problem by problem; drawn without it.
        stops: Whether training stops once all rows are right; else success is that of the end.
    """
    from inscape.ensembles.fit_tiny import fit_tiny

    found = fit_tiny(
        (points.shape[1], *[width] * depth, 1),
        points.astype(np.float32),
        np.repeat(tables.astype(np.float32), seeds.shape[1], axis=0),
        seeds=seeds.ravel().tolist(),
        weights=start,
        activation="leaky_relu" if leak else "relu",
        slope=leak,
        lr=LEARNING_RATE,
        epochs=epochs,
        stop="right" if stops else None,
        threads=1,
        progress=False,
    )
    solved = found.stopped if stops else found.right == len(points)
    return Outcomes(
        solved=np.asarray(solved).reshape(seeds.shape),
        epochs=np.asarray(found.epochs).reshape(seeds.shape),
        right=np.asarray(found.right).reshape(seeds.shape),
        best=np.asarray(found.best_right).reshape(seeds.shape),
        diverged=np.asarray(found.diverged).reshape(seeds.shape) >= 0,
    )


def member_seeds(
    problems: Sequence[int] | Array, trials: Sequence[int] | Array, *about: int
) -> Array:
    """Return a seed for each problem and trial.

    Args:
        problems: A number for each problem: its row.
        trials: A number for each trial: its column.
        about: What else the networks stand for: number of inputs, width, depth, leak.
    """
    state = np.zeros((), np.uint64)
    for number in about:
        state = _mixed(state, np.asarray(number, np.uint64))
    state = _mixed(state, np.asarray(problems, np.uint64)[:, None])
    state = _mixed(state, np.asarray(trials, np.uint64)[None, :])
    return (state >> np.uint64(1)).astype(np.int64)


def step_seconds(n: int, width: int, depth: int) -> float:
    """Return about how long one step of one network takes on one core.

    A point costs a fixed part, and a part for each weight: 0.2 microseconds for 4-3-1, and 53 for
    ten inputs and five layers of ten.
    """
    weights = (n + 1) * width + (depth - 1) * width * (width + 1) + width + 1
    return float(2**n * (8e-9 + 9e-11 * weights) + 6e-8)


def per_mille(leak: float) -> int:
    """Return a leak as a whole number, for hashes."""
    return round(1000 * leak)


def _mixed(state: Array, number: Array) -> Array:
    """Return SplitMix64's finaliser of a state that has taken in a number."""
    with np.errstate(over="ignore"):
        z = (state ^ number) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
