"""NPN classes: functions that differ by negated or exchanged inputs or a negated output."""

from collections.abc import Iterator, Sequence
from math import factorial, lcm

import numpy as np

from inscape.boolean._words import (
    MOST,
    Array,
    exchange_masks,
    exchanges,
    flip_masks,
    gray,
    words,
)
from inscape.boolean.truth_table import TruthTable

#: All classes are listed up to this number of inputs; six have 2 x 10^14.
MOST_LISTED = 5


def canonical(number: int, n: int) -> int:
    """Return the smallest number of the class of a function of at most six inputs.

    Exact: all n! 2^n 2 transforms are tried.

    >>> canonical(27030, 4), canonical(0b1110, 2)
    (27030, 1)
    """
    _check(n, MOST, "a canonical form")
    return int(canonical_many([TruthTable(n, number).number], n)[0])


def canonical_many(numbers: Sequence[int] | Array, n: int) -> Array:
    """Return the smallest numbers of the classes of many functions, as uint64."""
    from inscape.boolean._npn_kernels import smallest

    _check(n, MOST, "a canonical form")
    return np.asarray(smallest(words(numbers, n), *_tables(n)))


def permuted(numbers: Sequence[int] | Array, n: int) -> Array:
    """Return the smallest numbers that permuted inputs and a negated output can give."""
    from inscape.boolean._npn_kernels import smallest

    _check(n, MOST, "a canonical form")
    flips, lows, steps, _, full_mask = _tables(n)
    no_flips = np.zeros(0, dtype=np.int64)
    return np.asarray(smallest(words(numbers, n), flips, lows, steps, no_flips, full_mask))


def class_sizes(numbers: Sequence[int] | Array, n: int) -> Array:
    """Return how many functions the classes of many functions have.

    That is the number of transforms over the number of those that leave the function unchanged.
    """
    from inscape.boolean._npn_kernels import stabiliser_sizes

    _check(n, MOST, "a class")
    stabilisers = stabiliser_sizes(words(numbers, n), *_tables(n))
    return np.asarray(2 * factorial(n) * (1 << n) // stabilisers)


def classes(n: int) -> Array:
    """Return the smallest number of every class of functions of at most five inputs, ascending.

    There are 2, 4, 14, 222 and 616126. Exact: every function is visited and its class crossed out;
    five inputs take about half a minute and 256 MB, once, and the list is kept in the user's cache.

    >>> classes(2).tolist()
    [0, 1, 3, 6]
    """
    _check(n, MOST_LISTED, "the list of all classes")
    if n <= 4:
        return listed(n)
    from inscape.boolean._cache import cached_arrays

    return cached_arrays(f"npn-classes-{n}", lambda: {"numbers": listed(n)})["numbers"]


def listed(n: int) -> Array:
    """Return the classes, computed without the cache."""
    from inscape.boolean._npn_kernels import cross_out

    crossed = np.zeros(max(1 << ((1 << n) - 1), 64) // 64, dtype=np.uint64)
    representatives = np.zeros(class_count(n), dtype=np.uint64)
    cross_out(crossed, representatives, *_tables(n))
    return representatives


def class_count(n: int) -> int:
    """Return how many classes there are, by Burnside's lemma, without listing them.

    >>> [class_count(n) for n in range(1, 7)]
    [2, 4, 14, 222, 616126, 200253952527184]
    """
    _check(n, MOST, "the number of classes")
    fixed = 0
    for cycles, transforms in _signed_cycles(n):
        lengths = _orbits(cycles)
        count = sum(lengths.values())
        negated = 0 if any(length % 2 for length in lengths) else 1 << count
        fixed += transforms * ((1 << count) + negated)
    return fixed // (2 * factorial(n) * (1 << n))


def _signed_cycles(n: int) -> Iterator[tuple[tuple[tuple[int, bool], ...], int]]:
    """Yield the conjugacy classes of permutations with negations of inputs, and their sizes.

    A class is a multiset of cycles, each with its length and whether an odd number of its inputs is
    negated.
    """
    kinds = [(length, odd) for length in range(n, 0, -1) for odd in (False, True)]

    def parts(remaining: int, first: int) -> Iterator[tuple[tuple[int, bool], ...]]:
        if not remaining:
            yield ()
        for at in range(first, len(kinds)):
            if kinds[at][0] <= remaining:
                for rest in parts(remaining - kinds[at][0], at):
                    yield (kinds[at], *rest)

    for cycles in parts(n, 0):
        centraliser_order = 1
        for kind in set(cycles):
            centraliser_order *= (2 * kind[0]) ** cycles.count(kind) * factorial(cycles.count(kind))
        yield cycles, factorial(n) * (1 << n) // centraliser_order


def _orbits(cycles: tuple[tuple[int, bool], ...]) -> dict[int, int]:
    """Return how many orbits of each length the 2^n inputs of a table fall into.

    An input is fixed by k steps if each cycle is: that holds for 2^gcd inputs of a cycle, or for
    none if k steps negate an input an odd number of times.
    """
    period = lcm(*(length * (1 + odd) for length, odd in cycles))
    exact_period: dict[int, int] = {}
    for k in (k for k in range(1, period + 1) if period % k == 0):
        fixed = 1
        for length, odd in cycles:
            turns = np.gcd(length, k)
            fixed *= 0 if odd and (k // turns) % 2 else 1 << int(turns)
        exact_period[k] = fixed - sum(exact_period[j] for j in exact_period if k % j == 0)
    return {k: count // k for k, count in exact_period.items() if count}


def _tables(n: int) -> tuple[Array, Array, Array, Array, Array]:
    full_mask = np.array([(1 << (1 << n)) - 1], dtype=np.uint64)
    return flip_masks(n), exchange_masks(n), exchanges(n), gray(n), full_mask


def _check(n: int, most: int, subject: str) -> None:
    if not 1 <= n <= most:
        raise ValueError(
            f"{subject} needs 1 to {most} inputs, found {n}: compare such functions by their "
            "Fourier degree, influence and entropy, which are equal within a class."
        )
