"""Compiled: where along a segment the maximum of several affine functions switches."""

from typing import Any

import numpy as np

from inscape.piecewise.lines.kernels import part
from inscape.runtime.compilation import compiled

Array = Any


@part
def _winner(left: Array, right: Array, window: Array, noise: float) -> int:
    """Return the largest function at the left end; of ties the one largest at the right end."""
    most = -np.inf
    for j in window:
        most = max(most, left[j])
    best = -1
    for j in window:
        if left[j] >= most - noise and (best < 0 or right[j] > right[best] + noise):
            best = j
    return int(best)


@part
def _next(left: Array, right: Array, window: Array, holder: int, noise: float) -> Any:
    """Return the function that becomes the maximum next from left to right, and where."""
    best, fraction = -1, np.inf
    for j in window:
        gain = right[j] - right[holder]
        if gain <= noise:
            continue
        lead = max(left[holder] - left[j], 0.0)
        at = lead / (lead + gain)
        if at < fraction or (at == fraction and right[j] > right[best]):
            best, fraction = j, at
    return best, fraction


@compiled(reorder=False)
def window_changes(
    functions: Array, noise: Array, group: Array, windows: Array, piece: Array, fraction: Array
) -> int:
    """Write where between neighbouring rows the maximum of a window switches; return how often.

    ``noise`` has a row for each group of rows and a column for each window; nothing lies after a
    row whose group is -1. More are counted than written where the buffer is too small. A maximum is
    convex: the largest at both ends is the largest in between.
    """
    count = 0
    for r in range(len(group)):
        if group[r] < 0:
            continue
        left, right = functions[r], functions[r + 1]
        for w in range(len(windows)):
            window, near = windows[w], noise[group[r], w]
            holder = _winner(left, right, window, near)
            last = _winner(right, left, window, near)
            for _ in range(len(window)):
                if holder == last:
                    break
                holder, at = _next(left, right, window, holder, near)
                if holder < 0:
                    break
                if count < len(piece):
                    piece[count], fraction[count] = r, at
                count += 1
    return count


@compiled(reorder=False)
def winners(functions: Array, windows: Array, pattern: Array) -> None:
    """Write the index of the largest function of each window, the first of several, in each row."""
    for r in range(len(functions)):
        for w in range(len(windows)):
            best = 0
            for k in range(1, windows.shape[1]):
                if functions[r, windows[w, k]] > functions[r, windows[w, best]]:
                    best = k
            pattern[r, w] = best
