"""Compiled: where on a line the largest of several affine functions becomes another."""

from typing import Any

import numpy as np

from inscape._core.compiled import compiled
from inscape._core.pieces.line_kernels import part

Array = Any


@part
def _winner(here: Array, there: Array, window: Array, noise: float) -> int:
    """Return who is largest at this end; of several he who does best at the other, the first."""
    most = -np.inf
    for j in window:
        most = max(most, here[j])
    best = -1
    for j in window:
        if here[j] >= most - noise and (best < 0 or there[j] > there[best] + noise):
            best = j
    return int(best)


@part
def _next(left: Array, right: Array, window: Array, holder: int, noise: float) -> Any:
    """Return who takes over next on the way from left to right, and at which share of it."""
    best, share = -1, np.inf
    for j in window:
        gain = right[j] - right[holder]
        if gain <= noise:
            continue
        lead = max(left[holder] - left[j], 0.0)
        at = lead / (lead + gain)
        if at < share or (at == share and right[j] > right[best]):
            best, share = j, at
    return best, share


@compiled(reorder=False)
def window_changes(
    functions: Array, noise: Array, windows: Array, piece: Array, share: Array
) -> int:
    """Write where between neighbouring rows a window changes its choice; return how often.

    More are counted than written where the room does not do. A maximum is convex: who is largest
    at both ends is largest in between.
    """
    count = 0
    for r in range(len(noise)):
        if noise[r] == np.inf:
            continue
        left, right = functions[r], functions[r + 1]
        for w in range(len(windows)):
            window = windows[w]
            holder = _winner(left, right, window, noise[r])
            last = _winner(right, left, window, noise[r])
            for _ in range(len(window)):
                if holder == last:
                    break
                holder, at = _next(left, right, window, holder, noise[r])
                if holder < 0:
                    break
                if count < len(piece):
                    piece[count], share[count] = r, at
                count += 1
    return count
