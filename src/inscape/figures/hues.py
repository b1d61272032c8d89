"""Colours of cells: by activation pattern, by affine map, or along a scale."""

import hashlib
from typing import Any, Literal

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.colors import Colormap, LogNorm, Normalize

from inscape.figures.style import MAGNITUDE, SIGNED
from inscape.regions.plane_regions import PlaneRegions

Array = npt.NDArray[Any]
Color = Literal["pattern", "map", "area", "value", "plain"]


#: The smallest cells that cover this fraction of the plane have the last colour of the scale.
UNSEEN = 0.01

#: Cells whose patterns are summed at a time, as numbers.
BLOCK = 4096

#: The largest values of both signs, on this fraction of the plane, have the last colours.
EXTREME = 0.1


def oklch(lightness: Array, chroma: Array, hue: Array) -> Array:
    """Return sRGB colours for lightness, chroma and hue (in turns) of Ottosson's OKLab."""
    a, b = chroma * np.cos(2 * np.pi * hue), chroma * np.sin(2 * np.pi * hue)
    cones = np.stack(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.2914855480 * b,
        ],
        -1,
    )
    linear = np.clip(cones**3 @ _CONES_TO_RGB.T, 0.0, 1.0)
    low, high = 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055
    encoded: Array = np.where(linear <= 0.0031308, low, high)
    return encoded


_CONES_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def by_pattern(result: PlaneRegions, like: PlaneRegions | None = None) -> Array:
    """Return a colour for each activation pattern, the same in all figures of one network.

    Every unit that is on shifts the hue in its own direction, so that cells which share most of
    their pattern look alike; the pattern as a whole decides how light the cell is.
    """
    own = _turns(result)
    turns = own if like is None else _turns(like)
    turn = own - turns.mean(0)
    size = np.sqrt((turns.var(0)).sum()) or 1.0
    hue = np.arctan2(turn[:, 1], turn[:, 0]) / (2 * np.pi)
    far = 1.0 - np.exp(-((turn / size) ** 2).sum(1))
    return oklch(0.62 + 0.25 * _noise(result.patterns.numpy()), 0.06 + 0.085 * far, hue)


def _turns(result: PlaneRegions) -> Array:
    """Return for each cell the sum of its units' directions; early layers have longer ones."""
    draw = np.random.default_rng(0)
    turn = np.zeros((result.cells, 2))
    for op, units in enumerate(result.units):
        directions = draw.normal(size=(units, 2)) / 2.0**op
        pattern = result.pattern(op).numpy()
        for at in range(0, len(pattern), BLOCK):
            turn[at : at + BLOCK] += pattern[at : at + BLOCK].astype(np.float64) @ directions
    return turn


def by_map(result: PlaneRegions, output: int | None, like: PlaneRegions | None = None) -> Array:
    """Return a colour for each map: the hue is where it points, the strength how steep it is.

    For all outputs together, these are the two directions in which the maps differ most.
    """
    direction = coefficients(result, output, like)
    known = coefficients(result if like is None else like, output, like)
    steps = np.unique(np.hypot(known[:, 0], known[:, 1]))
    size = np.searchsorted(steps, np.hypot(direction[:, 0], direction[:, 1])) / max(
        1, len(steps) - 1
    )
    size = size.clip(0.0, 1.0)
    hue = np.arctan2(direction[:, 1], direction[:, 0]) / (2 * np.pi) + 0.07
    return oklch(0.90 - 0.34 * size, 0.02 + 0.13 * size, hue)


def coefficients(
    result: PlaneRegions, output: int | None, like: PlaneRegions | None = None
) -> Array:
    """Return both slopes of an output on every cell, or of all outputs their main components."""
    slopes: Array = result.slopes.numpy()
    if output is not None or slopes.shape[1] == 1:
        rows: Array = slopes[:, output or 0]
        return rows
    known = result if like is None else like
    weight = (known.areas / known.areas.sum()).numpy()[:, None]
    flat = known.slopes.numpy().reshape(known.cells, -1)
    mean = (weight * flat).sum(0)
    _, _, axes = np.linalg.svd(np.sqrt(weight) * (flat - mean), full_matrices=False)
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])[:, None]
    main = np.zeros((result.cells, 2))
    main[:, : len(axes[:2])] = (slopes.reshape(result.cells, -1) - mean) @ axes[:2].T
    return main


def scale(result: PlaneRegions, color: Color, output: int) -> tuple[Colormap, Normalize]:
    """Return colour map and range of areas or of values."""
    if color == "area":
        areas = result.areas[result.areas > 0].sort().values
        high, below = float(areas[-1]), areas.cumsum(0) < UNSEEN * areas.sum()
        low = float(areas[min(int(below.sum()), len(areas) - 1)])
        return matplotlib.colormaps[MAGNITUDE], LogNorm(min(low, 0.5 * high), high)
    middles = middle_values(result, output)
    low, high = float(middles.min()), float(middles.max())
    if low < 0 < high:
        order = np.abs(middles).argsort()
        within = result.areas.numpy()[order].cumsum() <= (1 - EXTREME) * float(result.areas.sum())
        size = float(np.abs(middles)[order[min(int(within.sum()), len(order) - 1)]])
        return matplotlib.colormaps[SIGNED], Normalize(-size, size)
    return matplotlib.colormaps[MAGNITUDE], Normalize(low, high)


def middle_values(result: PlaneRegions, output: int) -> Array:
    """Return an output at the centres of mass of all cells, which is its mean there."""
    moved = (result.slopes[:, output] * (result.centroids - result.center)).sum(1)
    values: Array = (result.intercepts[:, output] + moved).numpy()
    return values


def _noise(patterns: Array) -> Array:
    """Return a number from 0 to 1 for each pattern, that has nothing to do with its neighbours."""
    if not patterns.shape[1]:
        return np.full(len(patterns), 0.5)
    salt = np.frombuffer(hashlib.sha256(b"inscape").digest(), np.uint8)
    draw = np.random.default_rng(salt)
    weights = draw.integers(1, 2**32, patterns.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed = (patterns.astype(np.uint64) + np.uint64(1)) @ weights
    mixed = (mixed ^ (mixed >> np.uint64(15))) * np.uint64(0x9E3779B97F4A7C15)
    uniform: Array = (mixed >> np.uint64(40)).astype(np.float64) / 2.0**24
    return uniform
