"""Compiled: cut a cone into cells by hyperplanes, exactly, in integers.

A stack holds cells that are still to be cut: the extreme rays of each, the walls that each ray lies
on as bits (those of the cone come first, then the hyperplanes), and the next hyperplane.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from inscape.runtime.compilation import compiled

Array = Any

#: Rays that a cell has room for; with six inputs none has more than 24 while it is cut.
ROOM = 128


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that the kernel of this file calls."""
    jit: Callable[..., Any] = njit
    return jit(inspect.unwrap(function), nogil=True)


@part
def _touch(walls: Array, wall: int) -> None:
    """Set the bit of a wall that a ray lies on."""
    walls[wall >> 6] |= np.uint64(1) << np.uint64(wall & 63)


@part
def _sides(rays: Array, walls: Array, count: int, normal: Array, wall: int, sides: Array) -> bool:
    """Write on which side of a hyperplane each ray lies; return whether both sides have rays."""
    below = above = False
    for r in range(count):
        side = np.int64(0)
        for j in range(len(normal)):
            side += rays[r, j] * normal[j]
        sides[r] = side
        if side < 0:
            below = True
        elif side > 0:
            above = True
        else:
            _touch(walls[r], wall)
    return below and above


@part
def _are_adjacent(walls: Array, count: int, a: int, b: int) -> bool:
    """Return whether two rays are adjacent: no other ray lies on all the walls they share."""
    for c in range(count):
        if c in (a, b):
            continue
        inside = True
        for word in range(walls.shape[1]):
            if walls[a, word] & walls[b, word] & ~walls[c, word]:
                inside = False
                break
        if inside:
            return False
    return True


@part
def _intersect(ray: Array, lower: Array, upper: Array, upper_side: int, lower_side: int) -> None:
    """Write the ray where the face of two rays meets the hyperplane, in lowest terms."""
    divisor = np.int64(0)
    for j in range(len(ray)):
        ray[j] = upper_side * lower[j] - lower_side * upper[j]
        x, y = divisor, abs(ray[j])
        while y:
            x, y = y, x % y
        divisor = x
    for j in range(len(ray)):
        ray[j] //= divisor


@part
def _split(rays: Array, walls: Array, count: int, sides: Array, upper: Any, wall: int) -> Any:
    """Leave the part below in place, write the part above to ``upper``; return both counts."""
    upper_rays, upper_walls = upper
    high = 0
    for a in range(count):
        if sides[a] >= 0:
            upper_rays[high], upper_walls[high] = rays[a], walls[a]
            high += 1
    old = high
    for a in range(count):
        for b in range(count):
            if sides[a] < 0 < sides[b] and _are_adjacent(walls, count, a, b):
                _intersect(upper_rays[high], rays[a], rays[b], sides[b], sides[a])
                upper_walls[high] = walls[a] & walls[b]
                _touch(upper_walls[high], wall)
                high += 1
    low = 0
    for a in range(count):
        if sides[a] <= 0:
            rays[low], walls[low] = rays[a], walls[a]
            low += 1
    for r in range(old, high):
        rays[low], walls[low] = upper_rays[r], upper_walls[r]
        low += 1
    return low, high


@compiled
def cut(first: Array, normals: Array, most: int) -> Array:
    """Cut the cone of the rays ``first`` by all hyperplanes; return a point inside each cell.

    Ray r of the cone lies on all its walls but the r-th.
    """
    n, planes = len(first), len(normals)
    rays = np.zeros((planes + 2, ROOM, n), dtype=np.int64)
    walls = np.zeros((planes + 2, ROOM, (n + planes + 63) // 64), dtype=np.uint64)
    counts, following = np.zeros((2, planes + 2), dtype=np.int64)
    sides = np.zeros(ROOM, dtype=np.int64)
    interiors = np.zeros((most, n), dtype=np.int64)
    cells = top = 0
    counts[0] = n
    for r in range(n):
        rays[0, r] = first[r]
        for wall in range(n):
            if wall != r:
                _touch(walls[0, r], wall)
    while top >= 0:
        count, plane = counts[top], following[top]
        if plane == planes:
            for r in range(count):
                interiors[cells] += rays[top, r]
            cells += 1
            top -= 1
            continue
        following[top] = plane + 1
        if _sides(rays[top], walls[top], count, normals[plane], n + plane, sides):
            upper = (rays[top + 1], walls[top + 1])
            counts[top], counts[top + 1] = _split(
                rays[top], walls[top], count, sides, upper, n + plane
            )
            following[top + 1] = plane + 1
            top += 1
    return interiors[:cells]
