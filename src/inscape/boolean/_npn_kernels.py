"""Compiled: enumerate the functions of an NPN class, one flip or exchange at a time."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from inscape.runtime.compilation import compiled

Array = Any


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that the kernels of this file call."""
    jit: Callable[..., Any] = njit
    return jit(inspect.unwrap(function), forceinline=True, nogil=True)


@part
def _flipped(word: Any, digit: int, flips: Array) -> Any:
    """Return a function with one input negated: the halves of every block change places."""
    shift, mask = np.uint64(1) << np.uint64(digit), flips[digit]
    return ((word & mask) << shift) | ((word >> shift) & mask)


@part
def _exchanged(word: Any, digit: int, lows: Array, full: Any) -> Any:
    """Return a function with an input and the next one exchanged."""
    shift, low = np.uint64(1) << np.uint64(digit), lows[digit]
    stay = full ^ (low | (low << shift))
    return (word & stay) | ((word & low) << shift) | ((word >> shift) & low)


@compiled
def smallest(
    words: Array, flips: Array, lows: Array, steps: Array, turns: Array, full_mask: Array
) -> Array:
    """Return the smallest number in the class of each function."""
    full = full_mask[0]
    out = np.empty_like(words)
    for k in range(len(words)):
        word = words[k]
        best = min(word, full ^ word)
        for permutation in range(len(steps) + 1):
            for turn in turns:
                word = _flipped(word, turn, flips)
                best = min(best, word, full ^ word)
            if permutation < len(steps):
                word = _exchanged(word, steps[permutation], lows, full)
                best = min(best, word, full ^ word)
        out[k] = best
    return out


@compiled
def stabiliser_sizes(
    words: Array, flips: Array, lows: Array, steps: Array, turns: Array, full_mask: Array
) -> Array:
    """Return how many transforms leave each function unchanged."""
    full = full_mask[0]
    out = np.zeros(len(words), dtype=np.int64)
    for k in range(len(words)):
        start = words[k]
        word = start
        for permutation in range(len(steps) + 1):
            out[k] += int(word == start) + int(full ^ word == start)
            for turn in turns:
                word = _flipped(word, turn, flips)
                out[k] += int(word == start) + int(full ^ word == start)
            if permutation < len(steps):
                word = _exchanged(word, steps[permutation], lows, full)
    return out


@part
def _cross(word: Any, crossed: Array, full: Any) -> None:
    """Cross out a function, or its negation where the first digit is one."""
    representative = min(word, full ^ word)
    crossed[representative >> np.uint64(6)] |= np.uint64(1) << (representative & np.uint64(63))


@compiled
def cross_out(
    crossed: Array,
    representatives: Array,
    flips: Array,
    lows: Array,
    steps: Array,
    turns: Array,
    full_mask: Array,
) -> int:
    """Cross out the class of every function not yet crossed out; keep the first, return the count.

    Only functions whose first digit is 0 are listed; the others are their negations.
    """
    lowest_bit, full = np.uint64(1), full_mask[0]
    count = 0
    for number in range(np.int64(full >> lowest_bit) + 1):
        start = np.uint64(number)
        if crossed[start >> np.uint64(6)] >> (start & np.uint64(63)) & lowest_bit:
            continue
        representatives[count] = start
        count += 1
        word = start
        for permutation in range(len(steps) + 1):
            _cross(word, crossed, full)
            for turn in turns:
                word = _flipped(word, turn, flips)
                _cross(word, crossed, full)
            if permutation < len(steps):
                word = _exchanged(word, steps[permutation], lows, full)
    return count
