"""Swaps of all classes of Boolean functions: what a record keeps of them."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

METRICS = ("degree", "influence", "entropy", "algebraic degree")
#: Families of functions, by the name of what lists their classes.
FAMILIES = ("threshold", "symmetric", "parities", "monotone", "read_once", "quadratic")
#: At most so many of the classes with most swaps are kept.
KEPT = 50
#: Classes that linear programmes look at, for each number of swaps; more swaps cost more.
SAMPLE = {0: 1, 1: 8, 2: 8, 3: 8, 4: 8, 5: 3}
#: Classes of five inputs from which these are drawn, beside those with one swap.
POOL = 4000


def distribution(inputs: int) -> dict[str, Any]:
    """Find the swaps of all classes; count them, and hold them beside the other metrics."""
    from inscape.boolean import npn, swaps_many

    numbers = npn.classes(inputs)
    found = swaps_many(numbers, inputs, threads=1)
    sizes = npn.class_sizes(numbers, inputs)
    most = int(found.swaps.max())
    largest = numbers[found.swaps == most]
    return {
        "classes": len(numbers),
        "histogram": np.bincount(found.swaps).tolist(),
        "functions": [int(sizes[found.swaps == k].sum()) for k in range(most + 1)],
        "maximum": most,
        "largest": largest[:KEPT].tolist(),
        "shown": shown(numbers, found.swaps, found.weights, inputs),
        "by_chains": int((found.chains == found.swaps).sum()),
        **relations(numbers, found.swaps, inputs),
    }


def shown(numbers: Array, swaps: Array, weights: Array, inputs: int) -> int:
    """Return for how many functions their weights, in whole numbers, give their swaps."""
    from inscape.boolean import points

    places = points(inputs).astype(np.int64)
    digits = np.arange((1 << inputs) - 1, -1, -1, dtype=np.uint64)
    right = 0
    for at in range(0, len(numbers), 20_000):
        part = slice(at, at + 20_000)
        sums = weights[part] @ places.T
        order = np.argsort(sums, axis=1)
        apart = (np.diff(np.take_along_axis(sums, order, 1), axis=1) > 0).all(1)
        bits = (numbers[part, None] >> digits & np.uint64(1)).astype(np.int8)
        changed = np.diff(np.take_along_axis(bits, order, 1), axis=1) != 0
        right += int((apart & (changed.sum(1) == swaps[part])).sum())
    return right


def relations(numbers: Array, swaps: Array, inputs: int) -> dict[str, Any]:
    """Return Kendall's tau of swaps and each metric, and the metric's mean for each swaps value."""
    from scipy.stats import kendalltau

    from inscape.boolean import families, metrics

    values = metrics(numbers, inputs)
    values["algebraic degree"] = families.algebraic_degrees(numbers, inputs)
    tau = {name: float(kendalltau(swaps, values[name]).statistic) for name in METRICS}
    levels = range(int(swaps.max()) + 1)
    spread = {
        name: [_spread(values[name][swaps == k]) for k in levels if (swaps == k).any()]
        for name in METRICS
    }
    return {"tau": tau, "spread": spread}


def _spread(values: Array) -> list[float]:
    """Return smallest, mean and largest."""
    return [float(values.min()), float(values.mean()), float(values.max())]


def by_families(inputs: int) -> dict[str, Any]:
    """Return how many classes of each family have each number of swaps.

    Threshold functions are the monotone ones with at most one.
    """
    from inscape.boolean import families, swaps_many

    counts = {}
    for name in FAMILIES[1:]:
        numbers = getattr(families, name)(inputs)
        counts[name] = np.bincount(swaps_many(numbers, inputs, threads=1).swaps).tolist()
    return {"families": {"threshold": counts["monotone"][:2], **counts}}


def pool(inputs: int) -> Array:
    """Return the classes to draw from: all, or of five inputs some and all with one swap."""
    from inscape.boolean import families, npn

    numbers = npn.classes(inputs)
    if inputs < 5:
        return numbers
    drawn = np.random.default_rng(1).choice(numbers, POOL, replace=False)
    return np.union1d(drawn, families.threshold(inputs))


def by_programmes(inputs: int) -> dict[str, Any]:
    """Decide by linear programmes whether the swaps, and one fewer, are possible.

    Of three inputs all classes are taken, of four and five some with each number of swaps.
    """
    from inscape.boolean import swaps_many, table
    from inscape.boolean.linear_programs import at_most

    numbers = pool(inputs)
    swaps = swaps_many(numbers, inputs, threads=1).swaps
    tried: list[int] = []
    tally = {"agree": 0, "unproved": 0, "programmes": 0}
    rng = np.random.default_rng(0)
    for level, many in SAMPLE.items():
        alike = numbers[swaps == level]
        taken = alike if inputs < 4 else rng.permutation(alike)[:many]
        for number in taken.tolist():
            function = table(number, inputs)
            enough = at_most(function, level)
            fewer = at_most(function, level - 1) if level else None
            refuted = fewer is None or fewer.weights is None
            tally["agree"] += enough.weights is not None and refuted
            for search in (enough, *((fewer,) if fewer else ())):
                tally["programmes"] += search.solved
                tally["unproved"] += search.unproved
        tried.append(len(taken))
    return {"tried": tried, **tally}
