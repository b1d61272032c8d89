"""Compiled: walk through all functions of an NPN class, one flip or exchange at a time."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from inscape._core.compiled import compiled

Array = Any


def part(function: Callable[..., Any]) -> Any:
    """Make a function a part of the kernels of this file."""
    jit: Callable[..., Any] = njit
    return jit(inspect.unwrap(function), forceinline=True, nogil=True)


@part
def _flipped(word: Any, digit: int, flips: Array) -> Any:
    """Negate one input: the halves of every block change places."""
    shift, mask = np.uint64(1) << np.uint64(digit), flips[digit]
    return ((word & mask) << shift) | ((word >> shift) & mask)


@part
def _exchanged(word: Any, digit: int, lows: Array, full: Any) -> Any:
    """Exchange an input with its neighbour."""
    shift, low = np.uint64(1) << np.uint64(digit), lows[digit]
    stay = full ^ (low | (low << shift))
    return (word & stay) | ((word & low) << shift) | ((word >> shift) & low)


@compiled
def smallest(
    words: Array, flips: Array, lows: Array, steps: Array, turns: Array, ones: Array
) -> Array:
    """Return the smallest number of each class."""
    full = ones[0]
    out = np.empty_like(words)
    for k in range(len(words)):
        word = words[k]
        best = min(word, full ^ word)
        for outer in range(len(steps) + 1):
            for turn in turns:
                word = _flipped(word, turn, flips)
                best = min(best, word, full ^ word)
            if outer < len(steps):
                word = _exchanged(word, steps[outer], lows, full)
                best = min(best, word, full ^ word)
        out[k] = best
    return out


@compiled
def keepers(
    words: Array, flips: Array, lows: Array, steps: Array, turns: Array, ones: Array
) -> Array:
    """Return how many transforms leave each function as it is."""
    full = ones[0]
    out = np.zeros(len(words), dtype=np.int64)
    for k in range(len(words)):
        start = words[k]
        word = start
        for outer in range(len(steps) + 1):
            out[k] += int(word == start) + int(full ^ word == start)
            for turn in turns:
                word = _flipped(word, turn, flips)
                out[k] += int(word == start) + int(full ^ word == start)
            if outer < len(steps):
                word = _exchanged(word, steps[outer], lows, full)
    return out


@part
def _cross(word: Any, crossed: Array, full: Any) -> None:
    """Cross out a function, or its negation where the first digit is one."""
    shown = min(word, full ^ word)
    crossed[shown >> np.uint64(6)] |= np.uint64(1) << (shown & np.uint64(63))


@compiled
def cross_out(
    crossed: Array, room: Array, flips: Array, lows: Array, steps: Array, turns: Array, ones: Array
) -> int:
    """Cross out the class of every function not yet crossed out; keep the first, return the count.

    Only functions whose first digit is 0 stand in the list; the others are their negations.
    """
    one, full = np.uint64(1), ones[0]
    count = 0
    for number in range(np.int64(full >> one) + 1):
        start = np.uint64(number)
        if crossed[start >> np.uint64(6)] >> (start & np.uint64(63)) & one:
            continue
        room[count] = start
        count += 1
        word = start
        for outer in range(len(steps) + 1):
            _cross(word, crossed, full)
            for turn in turns:
                word = _flipped(word, turn, flips)
                _cross(word, crossed, full)
            if outer < len(steps):
                word = _exchanged(word, steps[outer], lows, full)
    return count
