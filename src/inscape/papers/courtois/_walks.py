"""A tree of walks that keep clear of each other, and its picture; the inner loops are compiled.

All randomness comes in as uniform numbers, which are used from the first on and then again.
"""

import math
from typing import Any

import numpy.typing as npt

from inscape.runtime.compilation import compiled

Array = npt.NDArray[Any]

#: Clear width along the border of the picture.
BORDER = 0.03
#: Beginnings that are tried for each branch.
TRIES = 12


def tree(
    numbers: Array,
    points: Array,
    branches: int,
    half: float,
    apart: float,
    longest: float,
    curl: float,
) -> int:
    """Write the points of a tree of walks into ``points``, and return how many there are.

    Args:
        numbers: Uniform numbers.
        points: Room for the points in the unit square, and for the heading at each.
        branches: How many walks there are, if there is room for them.
        half: Half of the width of an arm; points are half of it apart.
        apart: Least distance of the middles of two arms.
        longest: Largest length of a walk.
        curl: Largest turn for each half width.
    """
    step, margin = half / 2, half + BORDER
    points[0] = 0.35 + 0.3 * numbers[0], 0.35 + 0.3 * numbers[1], 2 * math.pi * numbers[2]
    used, count, made = 3, 1, 0
    for _ in range(TRIES * branches):
        if made == branches:
            break
        where, side, angle, bend, far = (numbers[(used + k) % len(numbers)] for k in range(5))
        origin = int(where * count)
        heading = points[origin, 2] + (1.0 if side < 0.5 else -1.0) * (0.9 + 0.6 * angle)
        length = int(longest * (0.4 + 0.6 * far) / step)
        end, used = walk(
            *(numbers, used + 5, points, count, origin, heading, length),
            *(step, margin, apart, curl, curl * (2 * bend - 1)),
        )
        if (end - count) * step > apart:
            count, made = end, made + 1
    return count


@compiled(reorder=False)
def walk(
    numbers: Array,
    used: int,
    points: Array,
    first: int,
    origin: int,
    heading: float,
    length: int,
    step: float,
    margin: float,
    apart: float,
    curl: float,
    bend: float,
) -> tuple[int, int]:
    """Walk on from ``origin`` while there is room; return the end and the numbers used."""
    x, y, end = points[origin, 0], points[origin, 1], first
    while end - first < length and end < len(points):
        turn = 0.5 * bend + 0.3 * curl * (2 * numbers[used % len(numbers)] - 1)
        used += 1
        for attempt in range(10):
            # Straight on if it can, else ever more to one side and the other.
            aside = 0.15 * ((attempt + 1) // 2) * (1 if attempt % 2 else -1)
            angle = heading + turn + aside
            u, v = x + step * math.cos(angle), y + step * math.sin(angle)
            free = attempt < 9 and margin <= min(u, v) and max(u, v) <= 1 - margin
            k = 0
            while free and k < end and (k < first or (end - k) * step >= 1.6 * apart):
                du, dv = points[k, 0] - points[origin, 0], points[k, 1] - points[origin, 1]
                # Where the branch leaves, and among its own last points, it may be near.
                if k >= first or du * du + dv * dv >= 2.25 * apart * apart:
                    du, dv = points[k, 0] - u, points[k, 1] - v
                    free = du * du + dv * dv >= apart * apart
                k += 1
            if free:
                break
        if not free:
            break
        x, y, heading = u, v, angle
        points[end, 0], points[end, 1], points[end, 2] = x, y, heading
        end += 1
    return end, used


@compiled(reorder=False)
def stamp(picture: Array, points: Array, radius: float) -> None:
    """Set all pixels whose centres are within ``radius`` of a point, in pixels."""
    rows, columns = picture.shape
    for k in range(len(points)):
        v, u = points[k, 0] - 0.5, points[k, 1] - 0.5
        for i in range(max(0, int(v - radius)), min(rows, int(v + radius) + 2)):
            for j in range(max(0, int(u - radius)), min(columns, int(u + radius) + 2)):
                if (i - v) * (i - v) + (j - u) * (j - u) <= radius * radius:
                    picture[i, j] = True
