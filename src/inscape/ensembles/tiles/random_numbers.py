"""Random numbers of the tiny networks: each a hash of seed, purpose and place.

No draw depends on the one before, so a member's numbers depend on its seed alone. With
``mix`` the finishing function of splitmix64 and all sums modulo 2^64,

- the stream of a purpose is ``key = mix(mix(seed) + purpose)``: 1 for weights, 2 for shuffles;
- its draw ``i`` is ``mix(key + (i + 1) * 0x9E3779B97F4A7C15)``, so a stream is splitmix64 itself;
- a uniform number is the upper 53 bits of a draw, plus a half, over 2^53: never 0, never 1;
- normal numbers come in pairs by Box and Muller, from draws ``2 i`` and ``2 i + 1``;
- the order of epoch ``e`` is a shuffle of Fisher and Yates, from the last place to the second, with
  the stream whose key is draw ``e`` of the shuffles: place ``j`` is swapped with place
  ``(draw j >> 32) * (j + 1) >> 32``.

This file imports numba, and is itself imported when it is first needed.
"""

import math
from typing import Any

import numpy as np

from inscape.ensembles.tiles.options import Array
from inscape.runtime.compilation import compiled, part

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
WEIGHTS, SHUFFLES = np.uint64(1), np.uint64(2)


@part
def mix(z: Any) -> Any:
    """Return 64 bits that look random."""
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@part
def draw(key: Any, i: int) -> Any:
    """Return draw ``i`` of a stream."""
    return mix(key + (np.uint64(i) + np.uint64(1)) * GOLDEN)


@part
def uniform(key: Any, i: int) -> float:
    """Return a number between 0 and 1."""
    return (float(draw(key, i) >> np.uint64(11)) + 0.5) / 9007199254740992.0


@part
def fill_normal(key: Any, row: Array, begin: int, end: int, scale: float) -> None:
    """Write normal numbers, the entry ``i`` of a row always from the same draws."""
    for i in range(begin, end):
        pair = i // 2 * 2
        size = math.sqrt(-2.0 * math.log(uniform(key, pair)))
        angle = 2.0 * math.pi * uniform(key, pair + 1)
        row[i] = scale * size * (math.cos(angle) if i == pair else math.sin(angle))


@part
def fill_uniform(key: Any, row: Array, begin: int, end: int, limit: float) -> None:
    """Write numbers between ``-limit`` and ``limit``."""
    for i in range(begin, end):
        row[i] = limit * (2.0 * uniform(key, i) - 1.0)


@part
def draw_weights(seed: Any, sizes: Array, distribution: int, row: Array) -> None:
    """Write the first weights of one member."""
    key = mix(mix(seed) + WEIGHTS)
    at = 0
    for layer in range(len(sizes) - 1):
        a, b = sizes[layer], sizes[layer + 1]
        bias = at + a * b
        end = bias + b
        if distribution == 0:
            fill_normal(key, row, at, bias, math.sqrt(2.0 / a))
        elif distribution == 1:
            fill_uniform(key, row, at, bias, math.sqrt(6.0 / a))
        elif distribution == 2:
            fill_uniform(key, row, at, bias, math.sqrt(6.0 / (a + b)))
        else:
            fill_uniform(key, row, at, end, math.sqrt(1.0 / a))
        for i in range(bias, end if distribution != 3 else bias):
            row[i] = 0.0
        at = end


@part
def draw_order(seed: Any, epoch: int, places: Array) -> None:
    """Write the order of the points in an epoch."""
    key = draw(mix(mix(seed) + SHUFFLES), epoch)
    for j in range(len(places)):
        places[j] = j
    for j in range(len(places) - 1, 0, -1):
        other = ((draw(key, j) >> np.uint64(32)) * np.uint64(j + 1)) >> np.uint64(32)
        places[j], places[other] = places[other], places[j]


@compiled(reorder=False)
def all_weights(seeds: Array, sizes: Array, distribution: int, rows: Array) -> None:
    """Write the first weights of all members."""
    for k in range(len(seeds)):
        draw_weights(seeds[k], sizes, distribution, rows[k])


@compiled(reorder=False)
def one_order(seed: Any, epoch: int, places: Array) -> None:
    """Write the order of the points in an epoch."""
    draw_order(seed, epoch, places)
