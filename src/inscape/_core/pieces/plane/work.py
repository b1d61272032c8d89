"""A plane while it is being cut: its faces so far, what they came from, and when to stop."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.deadline import NEVER
from inscape._core.pieces.plane.budget import Budget, Ending, SpentError
from inscape._core.pieces.plane.history import History
from inscape._core.pieces.plane.sources import Source
from inscape._core.pieces.plane.subdivision import Lines, Subdivision, cut
from inscape._core.pieces.plane.turns import Turns
from inscape._core.pieces.plane.workers import Workers

Array = npt.NDArray[Any]

#: Lines that are put into one face at a time; more wait for the next round.
MOST_LINES = 24

#: Of faces that are still to be cut when the time is over, one of so many is kept.
HURRY = 16

#: Faces a second, before any were cut.
FIRST_RATE = 1e5

#: Bytes of coefficients that are held at a time.
HELD = 2**24

#: Bytes of coefficients of one block of faces.
BLOCK = 2**22

#: Faces between two looks at the clock.
SOME = 512


class Work:
    """The faces so far; ``origin`` tells which face each was before the present bend.

    ``stalled`` tells whether the last lines cut none of them.
    """

    def __init__(
        self,
        source: Source,
        history: History,
        workers: Workers,
        budget: Budget,
        plane: Subdivision,
    ) -> None:
        self.source, self.history, self.workers = source, history, workers
        self.budget, self.plane = budget, plane
        self.origin = np.arange(plane.faces)
        self.until = NEVER
        self.ended_by: Ending = "complete"
        self.stalled = False
        self._rate = FIRST_RATE

    def coefficients(self, at: int) -> Array:
        """Return the coefficients of all functions of a bend, or of the outputs, on every face.

        Faces that there is no time for are left out.
        """
        source, faces = self.source, np.arange(self.plane.faces)
        out = np.empty((len(faces), 4, source.size(at)))

        def part(a: int, b: int) -> int:
            source.coefficients(at, faces[a:b], out[a:b])
            return b

        done = self.in_time(len(faces), part, 64)[-1]
        if done < len(faces):
            self.take(faces[:done])
        return out[:done]

    def in_time(self, size: int, work: Callable[[int, int], Any], least: int) -> list[Any]:
        """Call ``work(begin, end)`` for ranges that make up ``size``, or the first of it.

        The rest is left out when the time is over.
        """
        if self.until.is_never:
            return self.workers.over(size, work, least)
        found: list[Any] = []
        for begin in range(0, max(size, 1), SOME):
            if begin and self.until.passed():
                break
            some = min(SOME, size - begin)
            found += self.workers.over(some, partial(_moved, work, begin), least)
        return found

    def some_at_a_time(self, at: int, work: Callable[[Array, Array], list[Any]]) -> list[Any]:
        """Call ``work`` with some faces at a time and room for their coefficients.

        Faces that there is no time for are left out.
        """
        self.origin = np.arange(self.plane.faces)
        size, found, faces = self.source.size(at), [], self.plane.faces
        step = max(1, HELD // (32 * size))
        held = np.empty((min(step, faces), 4, size))
        for begin in range(0, faces, step):
            if begin and self.until.passed():
                self.take(np.arange(begin))
                break
            some = np.arange(begin, min(begin + step, faces))
            found += work(some, held[: len(some)])
        return found

    def in_turn(
        self,
        at: int,
        first: Callable[[Array, Array], None],
        second: Callable[[Array, Array], Any],
    ) -> list[Any]:
        """Call two functions with blocks of faces and room for their coefficients, in threads.

        The second has its turn with a block once the first was called with all blocks before it;
        what it gives is returned. Faces that there is no time for are left out.
        """
        turns = Turns(self.plane.faces, self._block(at), self.until)
        self.origin = np.arange(self.plane.faces)

        def run(*_: int) -> None:
            held = np.empty((2, turns.size, 4, self.source.size(at)))
            turns.run(lambda some, k: first(some, held[k, : len(some)]),
                      lambda some, k: second(some, held[k, : len(some)]))  # fmt: skip

        self.workers.over(min(self.workers.threads, turns.blocks), run, 1)
        if len(turns.found) < turns.blocks:
            self.take(np.arange(len(turns.found) * turns.size))
        return [turns.found[k] for k in range(len(turns.found))]

    def _block(self, at: int) -> int:
        """Return how many faces go into a block: some for every thread, if there are enough."""
        each = self.plane.faces // (4 * self.workers.threads)
        return max(1, min(BLOCK // (32 * self.source.size(at)), max(each, 128), self.plane.faces))

    def take(self, faces: Array) -> None:
        """Leave out all but some faces, for which there was no time."""
        self._end("seconds")
        self._take(faces)

    def _end(self, budget: Ending) -> None:
        """Take note of the first budget that was spent."""
        if self.budget.strict:
            raise SpentError(budget)
        self.ended_by = budget if self.ended_by == "complete" else self.ended_by

    def _take(self, faces: Array) -> None:
        self.plane = self.plane.taken(faces)
        self.divide(faces)

    def hurried(self, active: Array) -> Array | None:
        """Return which faces to go on with when the time is over; None while it is not.

        Those that need no further cut; if there are none, a few of the others.
        """
        if not self.until.passed() or not len(active):
            return None
        done = without(self.plane.faces, active)
        return done if len(done) else active[: max(1, len(active) // HURRY)]

    def divide(self, parent: Array) -> None:
        """Follow the faces when they are cut or left out."""
        self.history.divide(parent)
        self.origin = self.origin[parent]

    def cut(self, lines: Lines, at: int) -> tuple[Array, Array]:
        """Cut the faces by their lines, up to the budget; return the parents and the signs."""
        before, clock = self.plane.faces, self.until.clock
        start = clock()
        left = max(self.until.until - start, 0.0)
        in_time = before + 1 + self._rate * left
        most = int(min(self.budget.regions, in_time))
        self.plane, parent, on = cut(self.plane, lines, at, self.workers, most)
        self.stalled = np.array_equal(parent, np.arange(before))
        self._rate = (len(parent) + 1) / (clock() - start + 1e-6)
        if parent[-1] != before - 1 or self.plane.faces > most:
            self._end("seconds" if in_time < self.budget.regions else self.budget.limit)
        self.divide(parent)
        if self.plane.faces > most:
            self._take(np.arange(most))
        return parent[: self.plane.faces], on[: self.plane.faces]


def _moved(work: Callable[[int, int], Any], by: int, begin: int, end: int) -> Any:
    return work(by + begin, by + end)


def without(number: int, some: Array) -> Array:
    """Return which of a number of faces are not among some."""
    kept = np.ones(number, bool)
    kept[some] = False
    return np.flatnonzero(kept)


def starts(faces: Array, counts: Array, number: int) -> Array:
    """Return where the list of each of a number of faces begins, from the counts of some."""
    spread = np.zeros(number + 1, np.int64)
    spread[faces + 1] = counts
    return np.cumsum(spread)


def rest(start: Array, lists: Array, number: int) -> tuple[Array, Array]:
    """Return lists without their first ``number`` entries."""
    counts = np.maximum(np.diff(start) - number, 0)
    begin = np.concatenate([[0], np.cumsum(counts)])
    at = np.arange(begin[-1]) + np.repeat(start[:-1] + number - begin[:-1], counts)
    return begin, lists[at]


def head(start: Array, lists: Array, number: int) -> tuple[Array, Array]:
    """Return the first ``number`` entries of each list."""
    counts = np.minimum(np.diff(start), number)
    begin = np.concatenate([[0], np.cumsum(counts)])
    return begin, lists[np.arange(begin[-1]) + np.repeat(start[:-1] - begin[:-1], counts)]
