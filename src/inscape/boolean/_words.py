"""Truth tables of up to six inputs as words of 64 bits: flips and exchanges of inputs.

Bit p of a word is the value at index 2^n - 1 - p. To negate an input is to exchange bits of the
word; which bits does not depend on whether they are counted from the left or from the right.
"""

from collections.abc import Sequence
from functools import cache
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Words have 64 bits.
MOST = 6


def words(numbers: Sequence[int] | Array, n: int) -> Array:
    """Return numbers of functions of ``n`` inputs as words; raise ValueError for others."""
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "iu":
        numbers = np.array([index(number) for number in numbers], dtype=object)
    least, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if least < 0 or most >> (1 << n):
        raise ValueError(
            f"functions of {n} inputs must have numbers from 0 to 2^{1 << n} - 1, found "
            f"{least if least < 0 else most}: change the number or raise n."
        )
    return numbers.astype(np.uint64)


@cache
def flip_masks(n: int) -> Array:
    """Return for each digit b the positions where it is zero: a flip moves them up."""
    places = range(1 << n)
    masks = [sum(1 << p for p in places if not p >> b & 1) for b in range(n)]
    return np.array(masks, dtype=np.uint64)


@cache
def exchange_masks(n: int) -> Array:
    """Return for each b the positions with digit b one and digit b + 1 zero: they move up."""
    places = range(1 << n)
    masks = [sum(1 << p for p in places if p >> b & 3 == 1) for b in range(n - 1)]
    return np.array([*masks, 0], dtype=np.uint64)


@cache
def exchanges(n: int) -> Array:
    """Return the exchanges of neighbouring digits that run through every permutation once.

    This is the Steinhaus-Johnson-Trotter algorithm.
    """
    order, heading = list(range(n)), [-1] * n
    steps: list[int] = []
    while True:
        mobile = [
            value
            for at, value in enumerate(order)
            if 0 <= at + heading[value] < n and order[at + heading[value]] < value
        ]
        if not mobile:
            return np.array(steps, dtype=np.int64)
        largest = max(mobile)
        at = order.index(largest)
        other = at + heading[largest]
        steps.append(min(at, other))
        order[at], order[other] = order[other], order[at]
        for value in range(largest + 1, n):
            heading[value] *= -1


@cache
def gray(n: int) -> Array:
    """Return the 2^n - 1 digits to flip, one after the other, in the order of a Gray code."""
    steps = [(k & -k).bit_length() - 1 for k in range(1, 1 << n)]
    return np.array(steps, dtype=np.int64)
