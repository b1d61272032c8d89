"""Cut a plane by units with their kink at the zero of a function: ReLU and similar."""

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.piecewise.planes import resolution_kernels, sign_kernels
from inscape.piecewise.planes.arrangement import MOST_LINES, Arrangement, head, rest, starts
from inscape.piecewise.planes.subdivision import FaceLines

Array = npt.NDArray[Any]


class _Signs:
    """Signs of all functions at the vertices, and whether each is above zero on each face."""

    def __init__(self, work: Arrangement, units: int) -> None:
        words = (units + 63) // 64
        self.plus = np.zeros((len(work.plane.place), words), np.uint64)
        self.minus = np.zeros_like(self.plus)
        self.on = np.zeros((work.plane.faces, words), np.uint64)


def cut_by_signs(work: Arrangement, at: int) -> Iterator[None]:
    """Cut all faces by all units of an operation, each at the zero of its pre-activation."""
    units = work.source.size(at)
    signs = _Signs(work, units)
    work.source.begun(at, work.plane.faces)
    blocks = yield from _listed(work, at, signs)
    *listed, undecided = zip(*blocks, strict=True)
    counts, unit, coef = (np.concatenate(parts) for parts in listed)
    for pairs, area in undecided:
        work.rounding.add_undecided(pairs, area)
    start, entry = np.concatenate([[0], np.cumsum(counts)]), np.arange(len(unit))
    on, lists = signs.on[: work.plane.faces], (start, unit, coef)
    gain = (1.0 - work.source.slopes(at))[unit, None]
    grown = (gain * coef[:, 3:] / sign_kernels.ROUNDING) ** 2
    change = np.concatenate([gain * coef[:, :3], grown], 1)[:, None]
    is_first = True
    while len(entry):
        head_start, entries = head(start, entry, MOST_LINES)
        lines = FaceLines(
            start=head_start, key=unit[entries], unit=unit[entries], coef=coef[entries],
            plus=signs.plus, minus=signs.minus, on=on,
            alike=is_first and len(entries) == len(entry),
        )  # fmt: skip
        is_first = False
        parent, on = work.cut(lines, at)
        yield
        left = rest(start, entry, MOST_LINES)
        active = np.flatnonzero(np.diff(left[0])[parent])
        start, entry = yield from _narrowed(work, active, parent, left, lists, signs, on)
    yield from work.source.finished(at, lists[0], unit, change)
    work.history.add(on, units, work.origin)


def _listed(
    work: Arrangement, at: int, signs: _Signs
) -> Generator[None, None, list[tuple[Array, Array, Array, tuple[int, float]]]]:
    """Return how many functions cross each face, which, and their coefficients there.

    Then how many have no sign on a face, and the area of these faces.
    """
    plane = work.plane
    where, owner = (plane.first, plane.halves, plane.ends), plane.owner

    def mark(faces: Array, coef: Array) -> None:
        work.source.coefficients(at, faces, coef)
        more = (plane.place, owner, signs.plus, signs.minus)
        sign_kernels.marked(coef, faces, *where, *more)

    def lists(faces: Array, coef: Array) -> tuple[Array, Array, Array, tuple[int, float]]:
        over, silent = np.empty((2, len(faces), signs.plus.shape[1]), np.uint64)
        count = np.empty(len(faces), np.int64)
        bits = (signs.plus, signs.minus, signs.on, over, silent)
        total = sign_kernels.crossed(faces, *where, *bits, count)
        unit, kept = np.empty(total, np.int64), np.empty((total, 4))
        sign_kernels.listed(coef, over, unit, kept)
        undecided = resolution_kernels.undecided(coef, silent, faces, *where, plane.place)
        work.source.passed(at, faces, coef, signs.on[faces], over)  # overwrites the coefficients
        return count, unit, kept, undecided

    return (yield from work.in_turn(at, mark, lists))


def _narrowed(
    work: Arrangement,
    active: Array,
    parent: Array,
    left: tuple[Array, Array],
    lists: tuple[Array, Array, Array],
    signs: _Signs,
    on: Array,
) -> Generator[None, None, tuple[Array, Array]]:
    """Return which of the lines listed for the parents cross the faces."""
    plane, (start, entry), (_, unit, coef) = work.plane, left, lists
    where = (plane.first, plane.halves, plane.ends, plane.place, signs.plus, signs.minus, on)

    def part(a: int, b: int) -> tuple[Array, Array]:
        source = parent[active[a:b]]
        room = int((start[source + 1] - start[source]).sum())
        count, out = np.empty(b - a, np.int64), np.empty(room, np.int64)
        total = sign_kernels.still_crossed(
            active[a:b], source, start, entry, unit, coef, *where, count, out
        )
        return count, out[:total]

    blocks = yield from work.over(len(active), part, 256)
    counts, entries = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return starts(active, counts, plane.faces), entries
