"""Compiled: the least number of class changes of a Boolean function over all orders.

All permutations and negations of the inputs are searched. Two things prune the search. Some
subsets are lighter than others for all ascending weights; a chain of such subsets on which the
function changes k times makes k changes in every order. And orders are built from both ends, so
that changes are counted twice as soon.
"""

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
    return jit(inspect.unwrap(function), nogil=True)


@compiled
def following(depth: Array) -> Array:
    """Return for each node of a tree in preorder the next one that does not lie under it."""
    nodes = len(depth)
    after = np.empty(nodes, dtype=np.int32)
    open_at = np.full(depth.max() + 1, nodes, dtype=np.int32)
    for node in range(nodes - 1, -1, -1):
        after[node] = open_at[depth[node]]
        open_at[depth[node] :] = node
    return after


@part
def _write_views(word: Any, views: Array, digits: int) -> None:
    """Fill view q with the values at q ^ c for all choices c of negated inputs, as bits."""
    flips = 1 << (digits - 1)  # of which only half are needed: an order may be read backwards
    for q in range(2 * flips):
        view = np.uint64(0)
        for c in range(flips):
            view |= (word >> np.uint64(q ^ c) & np.uint64(1)) << np.uint64(c)
        views[q] = view


@part
def _chains(views: Array, places: Array, first: int, pairs: Array, buffers: Any) -> None:
    """Bound 64 transforms at once: bit t of level[top, k] is set if a chain has k changes.

    The transforms are all negations under some permutations, from ``first`` on.
    """
    values, levels = buffers
    flips = len(views) // 2
    for e in range(len(views)):
        value = np.uint64(0)
        for k in range(64 // flips):
            if first + k < len(places):
                value |= views[places[first + k, e]] << np.uint64(k * flips)
        values[e] = value
        levels[e, 0] = ~np.uint64(0)
        levels[e, 1:] = 0
    for at in range(len(pairs)):
        low, high = pairs[at, 0], pairs[at, 1]
        change = values[low] ^ values[high]
        for k in range(1, levels.shape[1]):
            levels[high, k] |= levels[low, k] | (levels[low, k - 1] & change)


@part
def _values(word: Any, place: Array, flip: int, pairs: Array, buffers: Any) -> None:
    """Write the values of a transform and how often they change on chains to either end."""
    value, up, down = buffers
    for e in range(len(value)):
        value[e] = np.int64(word >> np.uint64(place[e] ^ flip) & np.uint64(1))
        up[e] = down[e] = 0
    for at in range(len(pairs)):
        low, high = pairs[at, 0], pairs[at, 1]
        down[high] = max(down[high], down[low] + (value[low] ^ value[high]))
    for at in range(len(pairs) - 1, -1, -1):
        low, high = pairs[at, 0], pairs[at, 1]
        up[low] = max(up[low], up[high] + (value[low] ^ value[high]))


@part
def _order(limit: int, buffers: Any, tree: Any, state: Array) -> int:
    """Return a last node of the tree whose order has at most ``limit`` changes, or -1.

    The state at a depth is changes from below, changes from above and the values at both ends.
    """
    value, up, down = buffers
    subset, depth, after = tree
    top = len(value) - 1
    last = len(value) // 2 - 1
    state[0] = value[0] << 1 | value[top]
    node = 0
    while node < len(subset):
        d, low = depth[node], np.int64(subset[node])
        high = top ^ low
        was = state[d]
        x, y = value[low], value[high]
        below = (was >> 8) + (x ^ (was >> 1 & 1))
        above = (was >> 2 & 63) + (y ^ (was & 1))
        if max(below + above + (x ^ y), below + up[low], above + down[high]) > limit:
            node = after[node]
            continue
        if d == last:
            return node
        state[d + 1] = below << 8 | above << 2 | x << 1 | y
        node += 1
    return -1


@compiled
def least_changes(
    words: Array, places: Array, pairs: Array, subset: Array, depth: Array, after: Array
) -> Array:
    """Return for each function: least changes, permutation, negations, node, bound by chains."""
    size = places.shape[1]
    flips = size // 2
    digits = 0
    while 1 << digits < size:
        digits += 1
    most = digits * (digits + 1) // 2
    permutations_per_word = 64 // flips
    blocks = (len(places) + permutations_per_word - 1) // permutations_per_word
    views, values = np.zeros((2, size), dtype=np.uint64)
    levels = np.zeros((size, most + 2), dtype=np.uint64)
    exceeding = np.zeros((blocks, most + 2), dtype=np.uint64)
    buffers = (np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64))
    state = np.zeros(flips + 1, dtype=np.int64)
    out = np.zeros((len(words), 5), dtype=np.int64)
    for at in range(len(words)):
        _write_views(words[at], views, digits)
        for block in range(blocks):
            _chains(views, places, block * permutations_per_word, pairs, (values, levels))
            exceeding[block] = levels[size - 1]
        limit, node = -1, -1
        bound = -1
        while node < 0:
            limit += 1
            for transform in range(len(places) * flips):
                block, bit = transform // 64, np.uint64(transform % 64)
                if limit <= most and exceeding[block, limit + 1] >> bit & np.uint64(1):
                    continue
                if bound < 0:
                    bound = limit
                place, flip = places[transform // flips], transform % flips
                _values(words[at], place, flip, pairs, buffers)
                node = _order(limit, buffers, (subset, depth, after), state)
                if node >= 0:
                    out[at] = limit, transform // flips, flip, node, bound
                    break
    return out
