"""Cells as pixels: which cell lies under each point of a grid."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.compilation import compiled

Array = npt.NDArray[Any]


def raster(
    place: Array, corners: Array, first: Array, low: Array, high: Array, shape: tuple[int, int]
) -> Array:
    """Return the cell under the middle of each pixel of a window, -1 for none.

    Rows go up from ``low``; ``shape`` is rows and columns.
    """
    pixels = np.full(shape, -1, np.int64)
    pixel = (high - low) / np.array([shape[1], shape[0]])
    _filled((place - low) / pixel - 0.5, corners, first, pixels)
    return pixels


@compiled(reorder=False)
def _filled(place: Array, corners: Array, first: Array, pixels: Array) -> None:
    """Write the number of each convex cell to the whole places inside it, row by row."""
    rows, columns = pixels.shape
    for cell in range(len(first) - 1):
        begin, end = first[cell], first[cell + 1]
        bottom, top = np.inf, -np.inf
        for i in range(begin, end):
            bottom = min(bottom, place[corners[i], 1])
            top = max(top, place[corners[i], 1])
        for row in range(max(0, int(np.ceil(bottom))), min(rows - 1, int(np.floor(top))) + 1):
            left, right = np.inf, -np.inf
            for i in range(begin, end):
                j = i + 1 if i + 1 < end else begin
                a, b = place[corners[i]], place[corners[j]]
                if min(a[1], b[1]) <= row <= max(a[1], b[1]):
                    if a[1] == b[1]:
                        left, right = min(left, a[0], b[0]), max(right, a[0], b[0])
                    else:
                        x = a[0] + (b[0] - a[0]) * (row - a[1]) / (b[1] - a[1])
                        left, right = min(left, x), max(right, x)
            if right < left:
                continue
            for column in range(
                max(0, int(np.ceil(left))), min(columns - 1, int(np.floor(right))) + 1
            ):
                pixels[row, column] = cell
