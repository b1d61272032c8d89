"""Two steps over blocks of faces in threads, where the second reads results of the first."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.runtime.deadline import NEVER, Deadline

Array = npt.NDArray[Any]
BlockStep = Callable[[Array, int], Any]

#: Seconds until a thread looks again whether the others have come far enough.
NAP = 2e-5


class BlockQueue:
    """Blocks of faces that threads take in order, until none are left or a step is at its end."""

    def __init__(self, faces: int, size: int, end: Deadline = NEVER) -> None:
        self.faces, self.size = faces, size
        self.blocks = -(-faces // size)
        self.results: dict[int, Any] = {}
        self._next, self._lock = 0, Lock()
        self._begun = np.zeros(self.blocks, bool)
        self.begin(end)

    def begin(self, end: Deadline) -> None:
        """Begin a step that takes one block at least, and others until its end."""
        self._end, self._least = end, self._next + 1

    def run(self, first: BlockStep, second: BlockStep) -> None:
        """Process blocks; the second step of each waits until the next block had its first.

        So the blocks before it, which other threads have, are mostly done by then. The steps are
        passed which of two buffers is the block's.
        """
        waiting: list[tuple[int, int]] = []
        room = 0
        try:
            while (block := self._taken()) is not None:
                first(self._some(block), room)
                self._begun[block] = True
                self._finish(waiting, second)
                waiting, room = [(block, room)], 1 - room
            self._finish(waiting, second)
        except BaseException:
            self._begun[:] = True  # no thread waits for a step that failed
            raise

    def _taken(self) -> int | None:
        """Return the next block; None where there is none, or the step is at its end."""
        with self._lock:
            block = self._next
            if block >= self.blocks or (block >= self._least and self._end.passed()):
                return None
            self._next += 1
            return block

    def _some(self, block: int) -> Array:
        return np.arange(block * self.size, min((block + 1) * self.size, self.faces))

    def _finish(self, waiting: list[tuple[int, int]], second: BlockStep) -> None:
        for block, room in waiting:
            while not self._begun[:block].all():
                time.sleep(NAP)
            self.results[block] = second(self._some(block), room)
