"""Orders of all inputs by a linear function: the additively representable orders of subsets.

With weights 0 < w1 < ... < wn, inputs are ordered by the sum of the weights of those that are true.
Which orders there are is which cells the hyperplanes with normals of -1, 0, 1 cut that cone into.
"""

from dataclasses import dataclass
from functools import cache
from itertools import permutations, product

import numpy as np

from inscape.boolean._words import MOST, Array

#: How many orders there are for 1 to 6 inputs.
KNOWN = (1, 1, 2, 14, 516, 124187)


@dataclass(frozen=True, eq=False)
class Trie:
    """All orders as the branches of a tree, from both ends at once; nodes in preorder.

    A node at depth d places subset ``subset`` at the d-th place from below and its complement at
    the d-th place from above: what is light has a heavy complement. ``after`` is the next node that
    does not lie under this one, ``order`` the row of an order that passes through it.
    """

    subset: Array
    depth: Array
    after: Array
    order: Array


def weights(n: int) -> Array:
    r"""Return positive integer weights, ascending, one row for each order of the 2^n subsets.

    Exact, in integers: the cone :math:`0 < w_1 < \ldots < w_n` is kept as its extreme rays and
    cut by one hyperplane after the other; a cell is cut where rays lie on both sides, and its new
    rays are combinations of neighbouring ones. The sum of the rays of a cell lies inside, so that
    no two subsets have equal weight. There are 1, 1, 2, 14, 516 and 124187 for n = 1 to 6, and six
    inputs take less than a second.

    >>> weights(3).tolist()
    [[1, 2, 4], [2, 3, 4]]
    """
    check_inputs(n)
    return _weights(n)


@cache
def _weights(n: int) -> Array:
    from inscape.boolean._cone_kernels import cut

    rows: Array = cut(_rays(n), hyperplanes(n), KNOWN[n - 1])
    rows.flags.writeable = False
    return rows


def hyperplanes(n: int) -> Array:
    """Return the normals of all hyperplanes that cut the cone, those of few inputs first."""
    normals = []
    for normal in product((1, 0, -1), repeat=n):
        sides = _rays(n) @ np.array(normal)
        leading = next((value for value in normal[::-1] if value), 0)
        if leading == 1 and sides.min() < 0 < sides.max():
            normals.append(normal)
    normals.sort(key=lambda normal: [value != 0 for value in normal[::-1]])
    return np.array(normals, dtype=np.int64).reshape(-1, n)


def _rays(n: int) -> Array:
    """Return the rays of the cone: the k largest weights are one, the others zero."""
    return np.tril(np.ones((n, n), dtype=np.int64))[:, ::-1].copy()


@cache
def trie(n: int) -> Trie:
    """Return all orders of the subsets of ``n`` weights as a tree."""
    rows = weights(n)
    lower = _lower_halves(rows, n)
    ranking = np.lexsort(_packed(lower).T[::-1])
    lower = lower[ranking]
    shared = np.zeros(len(lower), dtype=np.int64)
    shared[1:] = np.cumprod(lower[1:] == lower[:-1], axis=1, dtype=np.int64).sum(1)
    new = lower.shape[1] - shared
    row = np.repeat(np.arange(len(lower)), new)
    start = np.cumsum(new) - new
    depth = np.arange(len(row)) - start[row] + shared[row]
    from inscape.boolean._search_kernels import following

    return Trie(
        subset=lower[row, depth],
        depth=depth.astype(np.uint8),
        after=following(depth),
        order=ranking[row].astype(np.int32),
    )


def _lower_halves(rows: Array, n: int) -> Array:
    """Return the lighter half of the subsets in order; digit b of a subset is weight b + 1."""
    members = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.int32)
    parts = np.array_split(rows.astype(np.int32), len(rows) // 4096 + 1)
    halves = [np.argsort(part @ members.T, axis=1)[:, : 1 << (n - 1)] for part in parts]
    return np.concatenate(halves).astype(np.uint8)


def _packed(rows: Array) -> Array:
    """Pack rows of bytes into big words, which sort as the bytes do, and faster."""
    width = -(-rows.shape[1] // 8) * 8
    filled = np.zeros((len(rows), width), dtype=np.uint8)
    filled[:, : rows.shape[1]] = rows
    return filled.view(">u8").astype(np.uint64)


@cache
def placements(n: int) -> Array:
    """Return where each permutation of the digits takes each index, one row for each."""
    index = np.arange(1 << n)
    moved = [
        sum((index >> b & 1) << to for b, to in enumerate(order))
        for order in permutations(range(n))
    ]
    return np.array(moved, dtype=np.int64)


@cache
def covers(n: int) -> Array:
    """Return pairs of subsets, the second heavier for all ascending weights and next above.

    It has the lightest input more, or an input in place of the one before.
    """
    index = range(1 << n)
    pairs = [(e, e | 1) for e in index if not e & 1]
    pairs += [(e, e ^ (3 << b)) for e in index for b in range(n - 1) if e >> b & 3 == 1]
    return np.array(sorted(pairs), dtype=np.int64)


def check_inputs(n: int) -> None:
    """Raise ValueError for numbers of inputs whose orders cannot be listed."""
    if not 1 <= n <= MOST:
        raise ValueError(
            f"swaps are exact for 1 to {MOST} inputs, found {n}: seven have more than 200 million "
            "orders; take swaps_bound, which returns an upper bound."
        )
