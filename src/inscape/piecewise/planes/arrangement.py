"""The line arrangement of a plane while it is cut: its faces, their parents, and the budget."""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.piecewise.planes.budget import CutBudget, Ending, SpentError
from inscape.piecewise.planes.coefficients import Coefficients
from inscape.piecewise.planes.patterns import PatternHistory
from inscape.piecewise.planes.resolution import Rounding
from inscape.piecewise.planes.subdivision import FaceLines, Subdivision, cut
from inscape.piecewise.planes.threads import Workers
from inscape.piecewise.planes.two_phase import BlockQueue
from inscape.runtime.deadline import NEVER, Deadline

Array = npt.NDArray[Any]

#: Lines that are put into one face at a time; more wait for the next round.
MOST_LINES = 24

#: Bytes of coefficients that are held at a time.
HELD = 2**24

#: Bytes of coefficients of one block of faces.
BLOCK = 2**22

#: Faces between two checks of the time limit.
BATCH = 4096

#: Seconds between two checks of the time limit.
SLICE = 0.05


class Arrangement:
    """The faces so far; ``origin`` is the face of each before the present operation.

    ``stalled`` tells whether the last lines cut none of them.
    """

    def __init__(
        self,
        source: Coefficients,
        history: PatternHistory,
        workers: Workers,
        budget: CutBudget,
        plane: Subdivision,
        *,
        watched: bool = False,
    ) -> None:
        self.source, self.history, self.workers = source, history, workers
        self.budget, self.plane = budget, plane
        self.origin = np.arange(plane.faces)
        self.ended_by: Ending = "complete"
        self.rounding = Rounding()
        self.stalled = False
        self.watched = watched

    def slice(self) -> Deadline:
        """Return the deadline of the next step; never where there is no time limit."""
        return Deadline.after(SLICE) if self.watched else NEVER

    def coefficients(self, at: int) -> Generator[None, None, Array]:
        """Return the coefficients of an operation's pre-activations, or outputs, on every face."""
        source, faces = self.source, np.arange(self.plane.faces)
        out = np.empty((len(faces), 4, source.size(at)))

        def part(a: int, b: int) -> None:
            source.coefficients(at, faces[a:b], out[a:b])

        yield from self.over(len(faces), part, 64, self._held(at))
        return out

    def over(
        self, size: int, work: Callable[[int, int], Any], least: int, batch: int = BATCH
    ) -> Generator[None, None, list[Any]]:
        """Call ``work(begin, end)`` for ranges that make up ``size``, in threads."""
        if not self.watched:
            return self.workers.over(size, work, least)
        results: list[Any] = []
        end = self.slice()
        for begin in range(0, max(size, 1), batch):
            number = min(batch, size - begin)
            results += self.workers.over(number, partial(_moved, work, begin), least)
            if end.passed():
                yield
                end = self.slice()
        return results

    def _held(self, at: int) -> int:
        """Return for how many faces coefficients are held at a time."""
        return max(1, HELD // (32 * self.source.size(at)))

    def in_batches(
        self, at: int, work: Callable[[Array, Array], list[Any]]
    ) -> Generator[None, None, list[Any]]:
        """Call ``work`` with batches of faces and a buffer for their coefficients."""
        self.origin = np.arange(self.plane.faces)
        size, results, faces = self.source.size(at), [], self.plane.faces
        step = self._held(at)
        held = np.empty((min(step, faces), 4, size))
        for begin in range(0, faces, step):
            block = np.arange(begin, min(begin + step, faces))
            results += work(block, held[: len(block)])
            yield
        return results

    def in_turn(
        self,
        at: int,
        first: Callable[[Array, Array], None],
        second: Callable[[Array, Array], Any],
    ) -> Generator[None, None, list[Any]]:
        """Call two functions with blocks of faces and a buffer for their coefficients, in threads.

        The second has its turn with a block once the first was called with all blocks before it;
        what it gives is returned.
        """
        turns = BlockQueue(self.plane.faces, self._block(at))
        self.origin = np.arange(self.plane.faces)

        def run(*_: int) -> None:
            held = np.empty((2, turns.size, 4, self.source.size(at)))
            turns.run(lambda block, k: first(block, held[k, : len(block)]),
                      lambda block, k: second(block, held[k, : len(block)]))  # fmt: skip

        while len(turns.results) < turns.blocks:
            turns.begin(self.slice())
            self.workers.over(min(self.workers.threads, turns.blocks), run, 1)
            yield
        return [turns.results[k] for k in range(turns.blocks)]

    def _block(self, at: int) -> int:
        """Return how many faces go into a block: some for every thread, if there are enough."""
        each = self.plane.faces // (4 * self.workers.threads)
        return max(1, min(BLOCK // (32 * self.source.size(at)), max(each, 128), self.plane.faces))

    def _end(self, budget: Ending) -> None:
        """Record the first budget that was spent."""
        if self.budget.strict:
            raise SpentError(budget)
        self.ended_by = budget if self.ended_by == "complete" else self.ended_by

    def _take(self, faces: Array) -> None:
        self.plane = self.plane.taken(faces)
        self.divide(faces)

    def divide(self, parent: Array) -> None:
        """Follow the faces when they are cut or left out."""
        self.history.divide(parent)
        self.origin = self.origin[parent]

    def cut(self, lines: FaceLines, at: int) -> tuple[Array, Array]:
        """Cut the faces by their lines, up to the budget; return the parents and the signs."""
        before, most = self.plane.faces, self.budget.regions
        self.rounding.add_lines(lines.coef)
        self.plane, parent, on = cut(self.plane, lines, at, self.workers, most)
        self.stalled = np.array_equal(parent, np.arange(before))
        if parent[-1] != before - 1 or self.plane.faces > most:
            self._end(self.budget.limit)
        self.divide(parent)
        if self.plane.faces > most:
            self._take(np.arange(most))
        return parent[: self.plane.faces], on[: self.plane.faces]


def _moved(work: Callable[[int, int], Any], by: int, begin: int, end: int) -> Any:
    return work(by + begin, by + end)


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
