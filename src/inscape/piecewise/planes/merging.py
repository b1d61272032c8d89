"""Merging of neighbouring cells with equal patterns or equal affine maps."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled

Array = npt.NDArray[Any]


@compiled(reorder=False)
def joined(sides: Array, alike: Array, faces: int) -> Array:
    """Return for each face the lowest face that it is joined to over edges that are ``alike``."""
    root = np.arange(faces)
    for e in range(len(sides)):
        if alike[e]:
            a, b = sides[e, 0], sides[e, 1]
            while root[a] != a:
                root[a] = root[root[a]]
                a = root[a]
            while root[b] != b:
                root[b] = root[root[b]]
                b = root[b]
            if a < b:
                root[b] = a
            else:
                root[a] = b
    for f in range(faces):
        a = f
        while root[a] != a:
            a = root[a]
        root[f] = a
    return root


@compiled(reorder=False)
def alike_maps(begin: int, end: int, sides: Array, maps: Array, noise: Array, alike: Array) -> None:
    """Mark edges whose two faces have the same map, within the rounding of these maps."""
    for e in range(begin, end):
        a, b = sides[e, 0], sides[e, 1]
        alike[e] = a >= 0 and b >= 0
        if not alike[e]:
            continue
        for k in range(maps.shape[2]):
            for i in range(3):
                if abs(maps[a, i, k] - maps[b, i, k]) > noise[a, k] + noise[b, k]:
                    alike[e] = False


@compiled(reorder=False)
def outlines(
    root: Array,
    first: Array,
    halves: Array,
    sides: Array,
    ends: Array,
    out_first: Array,
    out: Array,
) -> int:
    """Write the loop around each group of faces; return how many half-edges that takes.

    Groups must be convex, so that each has one loop and meets a vertex once; -1 where one is not.
    """
    by_origin = np.full(ends.max() + 1, -1)
    groups, written = 0, 0
    order = np.argsort(root, kind="mergesort")
    i = 0
    while i < len(order):
        j = i
        while j < len(order) and root[order[j]] == root[order[i]]:
            j += 1
        start = -1
        for n in range(i, j):
            f = order[n]
            for h in range(first[f], first[f + 1]):
                half = halves[h]
                other = sides[half >> 1, 1 - (half & 1)]
                if other < 0 or root[other] != root[f]:
                    by_origin[ends[half >> 1, half & 1]] = half
                    if start < 0:
                        start = half
        out_first[groups] = written
        half = start
        while True:
            if written >= len(out):
                return -1
            out[written] = half
            written += 1
            half = by_origin[ends[half >> 1, 1 - (half & 1)]]
            if half == start:
                break
        groups += 1
        i = j
    out_first[groups] = written
    return written
