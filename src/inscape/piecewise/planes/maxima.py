"""Cut a plane where the largest of several functions changes: MaxPool, maximum, minimum."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.piecewise.planes import merging, sign_kernels
from inscape.piecewise.planes.arrangement import MOST_LINES, Arrangement, starts
from inscape.piecewise.planes.subdivision import FaceLines, dissolved

Array = npt.NDArray[Any]


class _Windows:
    """Windows of several functions, and the largest of each on each face."""

    def __init__(self, work: Arrangement, windows: Array, size: int) -> None:
        self.windows, self.size = windows, size
        small = windows.shape[1] <= 256
        self.pattern = np.zeros((work.plane.faces, len(windows)), np.uint8 if small else np.int32)


def cut_by_maxima(work: Arrangement, at: int, windows: Array, sign: float = 1.0) -> Iterator[None]:
    """Cut all faces by all windows of an operation, each where its largest function switches.

    The output of a window is its largest function, times ``sign``.
    """
    state = _Windows(work, windows, work.source.size(at))
    work.source.begun(at, work.plane.faces)
    blocks = yield from work.in_batches(
        at, lambda faces, coef: _listed(work, at, faces, coef, state)
    )
    counts, unit, coef = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    start, entry = np.concatenate([[0], np.cumsum(counts)]), np.arange(len(unit))
    state.pattern = state.pattern[: work.plane.faces]
    grown = (coef[:, 1:, 3:] / sign_kernels.ROUNDING) ** 2
    change = np.concatenate([sign * (coef[:, 1:, :3] - coef[:, :1, :3]), grown], 2)
    lists = (start, unit)
    active, parent = np.flatnonzero(np.diff(start)), np.arange(work.plane.faces)
    none = np.empty((0, 0), np.uint64)
    while len(active):
        (start, entry), (line_start, key, line_unit, line_coef) = _undecided(
            work, active, parent, (start, entry), (unit, coef), state
        )
        if not len(key):
            break
        lines = FaceLines(
            start=line_start, key=key, unit=line_unit, coef=line_coef, plus=none, minus=none,
            on=np.empty((work.plane.faces, 0), np.uint64), alike=False,
        )  # fmt: skip
        cut_here = np.diff(line_start) > 0
        parent, _ = work.cut(lines, at)
        yield
        if work.stalled:  # rounding: nothing is left to cut
            break
        state.pattern = state.pattern[parent]
        active = np.flatnonzero(cut_here[parent])
    _dissolve(work, state)
    yield from work.source.finished(at, *lists, change)
    work.history.add(state.pattern, len(windows), work.origin)


def _listed(
    work: Arrangement, at: int, faces: Array, coef: Array, state: _Windows
) -> list[tuple[Array, Array, Array]]:
    """Return how many windows have no one maximum on each face, which, and their functions."""
    from inscape.piecewise.planes import maxima_kernels  # imports numba

    plane, windows = work.plane, state.windows
    where = (plane.first, plane.halves, plane.ends, plane.place, windows)

    def part(a: int, b: int) -> tuple[Array, Array, Array]:
        block, functions = faces[a:b], coef[a:b]
        work.source.coefficients(at, block, functions)
        functions[:, 3] += np.abs(functions[:, :3]).sum(1) ** 2
        tolerance = sign_kernels.ROUNDING * np.sqrt(functions[:, 3])
        count, room = np.empty(b - a, np.int64), 1024
        while True:
            unit = np.empty(room, np.int64)
            total = maxima_kernels.undecided_windows(
                functions, block, *where, tolerance, state.pattern, count, unit
            )
            if total <= room:
                break
            room = total
        unit = unit[:total]
        row = np.repeat(np.arange(b - a), count)
        of = windows[unit]
        kept = np.empty((total, windows.shape[1], 4))
        kept[:, :, :3] = functions[row[:, None], :3, of]
        kept[:, :, 3] = tolerance[row[:, None], of]
        work.source.passed_maxima(at, block, functions, state.pattern[block])
        return count, unit, kept

    return work.workers.over(len(faces), part, 8)


def _undecided(
    work: Arrangement,
    active: Array,
    parent: Array,
    lists: tuple[Array, Array],
    undecided: tuple[Array, Array],
    state: _Windows,
) -> tuple[tuple[Array, Array], tuple[Array, Array, Array, Array]]:
    """Return the windows without one maximum on the faces, and lines between two candidates."""
    from inscape.piecewise.planes import maxima_kernels  # imports numba

    plane, (start, entry), (unit, coef) = work.plane, lists, undecided
    where = (plane.first, plane.halves, plane.ends, plane.place, MOST_LINES, state.pattern)

    def part(a: int, b: int) -> tuple[Array, ...]:
        source = parent[active[a:b]]
        lengths = start[source + 1] - start[source]
        room, drawn = int(lengths.sum()), int(np.minimum(lengths, MOST_LINES).sum())
        count, lines = np.empty(b - a, np.int64), np.empty(b - a, np.int64)
        out, line_coef = np.empty(room, np.int64), np.empty((drawn, 4))
        key, line_unit = np.empty(drawn, np.int64), np.empty(drawn, np.int64)
        maxima_kernels.still_undecided(
            active[a:b], source, start, entry, unit, coef, state.windows, state.size,
            *where, count, out, lines, key, line_unit, line_coef,
        )  # fmt: skip
        left, total = int(count.sum()), int(lines.sum())
        return count, out[:left], lines, key[:total], line_unit[:total], line_coef[:total]

    blocks = work.workers.over(len(active), part, 64)
    count, out, lines, key, line_unit, line_coef = (
        np.concatenate(parts) for parts in zip(*blocks, strict=True)
    )
    still = (starts(active, count, plane.faces), out)
    return still, (starts(active, lines, plane.faces), key, line_unit, line_coef)


def _dissolve(work: Arrangement, state: _Windows) -> None:
    """Remove edges between faces of one parent with equal patterns.

    Two candidates are separated by a line that may continue where a third one is largest.
    """
    plane = work.plane
    a, b = plane.sides.T
    alike = (a >= 0) & (b >= 0)
    alike[alike] &= work.origin[a[alike]] == work.origin[b[alike]]
    alike[alike] &= (state.pattern[a[alike]] == state.pattern[b[alike]]).all(1)
    if alike.any():
        root = merging.joined(plane.sides, alike, plane.faces)
        work.plane, kept = dissolved(plane, root)
        work.divide(kept)
        state.pattern = state.pattern[kept]
