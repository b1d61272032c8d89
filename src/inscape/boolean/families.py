"""Families of Boolean functions, as NPN classes: symmetric, monotone, threshold, read-once."""

from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from inscape.boolean._words import MOST, words
from inscape.boolean.npn import canonical_many, permuted
from inscape.boolean.swaps import swaps_many
from inscape.boolean.truth_table import variable

Classes = npt.NDArray[np.uint64]


def symmetric(n: int) -> Classes:
    """Return the classes with a function that only counts how many inputs are true."""
    _check(n)
    true_inputs = [index.bit_count() for index in range(1 << n)]
    size = 1 << n
    numbers = [
        sum((counts >> true_inputs[index] & 1) << (size - 1 - index) for index in range(size))
        for counts in range(1 << (n + 1))
    ]
    return _classes(numbers, n)


def parities(n: int) -> Classes:
    """Return the classes of the parities of none to all of the inputs."""
    _check(n)
    numbers, number = [0], 0
    for k in range(1, n + 1):
        number ^= variable(k, n).number
        numbers.append(number)
    return _classes(numbers, n)


def monotone(n: int) -> Classes:
    """Return the classes with a function that no input, turned true, can turn false.

    A function is the pair of what it is where the first input is false and where it is true; both
    are monotone, and the second is true wherever the first is. The first is needed up to
    permutations only. Six inputs take some ten seconds.
    """
    _check(n)
    if n == 1:
        return _classes([0, 1], n)
    smaller = _monotone(n - 1)
    _, first = np.unique(permuted(smaller, n - 1), return_index=True)
    return _classes(_pairs(smaller[first], smaller, n), n)


@cache
def _monotone(n: int) -> Classes:
    """Return all monotone functions: 3, 6, 20, 168, 7581."""
    if n == 1:
        return np.array([0, 1, 3], dtype=np.uint64)
    smaller = _monotone(n - 1)
    return _pairs(smaller, smaller, n)


def _pairs(lows: Classes, highs: Classes, n: int) -> Classes:
    shift = np.uint64(1 << (n - 1))
    return np.concatenate([low << shift | highs[highs & low == low] for low in lows])


@cache
def _read_once(n: int) -> tuple[int, ...]:
    """Return functions that need all of ``n`` inputs, each once, one for each class at least.

    Such a function is an AND or an OR of two on disjoint inputs, up to negations; negations of the
    inputs stay within a class, and a negated AND is an OR.
    """
    if n == 1:
        return (1,)
    numbers: set[int] = set()
    full_mask = (1 << (1 << n)) - 1
    for k in range(1, n // 2 + 1):
        for first in _read_once(k):
            for second in _read_once(n - k):
                low, high = _low(first, k, n), _high(second, n - k, n)
                for a in (low, full_mask ^ low):
                    numbers.update((a & high, a & (full_mask ^ high)))
    return tuple(int(number) for number in _classes(sorted(numbers), n))


def read_once(n: int) -> Classes:
    """Return the classes of functions with a formula of and, or, not that names no input twice."""
    _check(n)
    numbers = [0, *(_high(number, k, n) for k in range(1, n + 1) for number in _read_once(k))]
    return _classes(numbers, n)


def threshold(n: int) -> Classes:
    """Return the classes of functions that a hyperplane separates: those with at most one swap.

    All of them are monotone up to negated inputs.
    """
    numbers = monotone(n)
    return numbers[swaps_many(numbers, n).swaps <= 1]


def quadratic(n: int) -> Classes:
    """Return the classes of sums modulo 2 of products of at most two inputs; some are bent."""
    _check(n)
    inputs = [variable(k, n).number for k in range(1, n + 1)]
    products = [a & b for a, b in combinations(inputs, 2)]
    numbers = [0]
    for term in products:
        numbers += [number ^ term for number in numbers]
    representatives = _classes(numbers, n)
    for term in inputs:
        representatives = _classes(
            np.concatenate([representatives, representatives ^ np.uint64(term)]), n
        )
    return representatives


def algebraic_degrees(numbers: "list[int] | Classes", n: int) -> "npt.NDArray[np.int64]":
    """Return how many inputs the largest product has in each function's sum modulo 2."""
    _check(n)
    terms = words(numbers, n)
    for k in range(1, n + 1):  # subtract the half where input k is false from the other
        terms = terms ^ (
            (terms & np.uint64(variable(k, n).number ^ ((1 << (1 << n)) - 1)))
            >> np.uint64(1 << (n - k))
        )
    degrees = np.zeros(len(terms), dtype=np.int64)
    for index in range(1 << n):
        coefficients = terms >> np.uint64((1 << n) - 1 - index) & np.uint64(1)
        degrees = np.maximum(degrees, index.bit_count() * coefficients.astype(np.int64))
    return degrees


def _low(number: int, k: int, n: int) -> int:
    """Read a function of ``k`` inputs as one of the first ``k`` of ``n``."""
    spare = 1 << (n - k)
    block = (1 << spare) - 1
    return sum(block << spare * at for at in range(1 << k) if number >> at & 1)


def _high(number: int, k: int, n: int) -> int:
    """Read a function of ``k`` inputs as one of the last ``k`` of ``n``."""
    size = 1 << k
    return sum(number << size * at for at in range(1 << (n - k)))


def _classes(numbers: "list[int] | Classes", n: int) -> Classes:
    """Return the classes of functions, each once, ascending."""
    return np.unique(canonical_many(np.asarray(numbers, dtype=np.uint64), n))


def _check(n: int) -> None:
    if not 1 <= n <= MOST:
        raise ValueError(
            f"families are listed for 1 to {MOST} inputs, found {n}: their functions no longer fit "
            "into words of 64 bits."
        )
