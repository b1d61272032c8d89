"""An upper bound on swaps where there are too many orders to search them all."""

import numpy as np
import torch

from inscape._core import checks, generator
from inscape.boolean.swaps import Array, Swaps
from inscape.boolean.truth_table import TruthTable, points
from inscape.runtime.progress import progress

#: Weights are integers of about this size.
FINE = 10**6
#: Climbs from random weights, beside those from equal weights and from Chow's.
CLIMBS = 4


def swaps_bound(function: TruthTable, *, tries: int = 6000, seed: int = 0) -> Swaps:
    """Return an upper bound on the swaps of a function of any number of inputs, with weights.

    It climbs from equal weights, from the Fourier coefficients of the single inputs and from random
    weights, moving one weight at a time and keeping what is no worse. None or one is exact: only
    constants have none.

    Args:
        function: The function.
        tries: How many weights to try.
        seed: Seed of the random weights and moves.

    >>> from inscape.boolean.truth_table import parity
    >>> swaps_bound(parity(10), tries=6).swaps
    10
    """
    checks.at_least(CLIMBS + 2, tries=tries)
    rng = generator(seed)
    draws = torch.randn(CLIMBS, function.n, generator=rng, dtype=torch.float64).numpy()
    chow = points(function.n).T @ function.values / (1 << function.n)
    starts = [np.ones(function.n), chow, *draws]
    steps = tries // len(starts)
    climbs = []
    with progress(len(starts), label=f"bound on the swaps of {function.n} inputs") as bar:
        for start in starts:
            climbs.append(_climb(function, np.rint(FINE * start), steps, rng))
            bar.advance()
    count, weights = min(climbs, key=lambda climb: climb[0])
    integers = weights.astype(np.int64)
    integers //= max(int(np.gcd.reduce(integers)), 1)
    return Swaps(
        n=function.n,
        number=function.number,
        swaps=count,
        weights=torch.from_numpy(integers),
        kind="exact" if count <= 1 else "upper bound",
    )


def _climb(
    function: TruthTable, weights: Array, steps: int, rng: torch.Generator
) -> tuple[int, Array]:
    """Move one weight after the other by a random step of a random size."""
    places, bits = points(function.n), function.bits
    inputs = torch.randint(function.n, (steps,), generator=rng).tolist()
    moves = torch.randn(steps, generator=rng, dtype=torch.float64)
    moves *= FINE * 10 ** (-3 * torch.rand(steps, generator=rng, dtype=torch.float64))
    sums = places @ weights
    best = first = _changes(sums, bits)
    start = weights.copy()
    for at, move in zip(inputs, moves.round().tolist(), strict=True):
        moved = sums + move * places[:, at]
        count = _changes(moved, bits)
        if count <= best:
            best, sums = count, moved
            weights[at] += move
    if best > len(bits):  # the start had inputs of different value in one place, and stayed there
        weights = 2.0 ** np.arange(function.n)
        best = _changes(places @ weights, bits)
    return best, start if best == first else weights


def _changes(sums: Array, bits: Array) -> int:
    """Count the changes; more than there are inputs where equal sums have different values."""
    order = np.argsort(sums, kind="stable")
    changed = np.diff(bits[order].astype(np.int8)) != 0
    if bool((changed & (np.diff(sums[order]) == 0)).any()):
        return 2 * len(bits)
    return int(changed.sum())
