"""The time and memory budget of a look, and the interruption of steps that exceed it.

Steps are short and look at the clock between them. What takes longer than it may all the same (one
call into a library, a huge layer) is interrupted from a second thread, between two instructions of
Python; so is what takes more memory than it may. That needs the main thread: elsewhere only the
clock between steps counts.
"""

import _thread
import contextvars
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from inscape.files.size_limits import in_bytes
from inscape.runtime.deadline import clock_is_real, now

#: Time over the budget, as a fraction of it and in seconds, after which a step is interrupted.
OVER, MORE = 0.05, 0.5
#: Seconds between two looks at the clock and the memory.
PAUSE = 0.05

#: Seconds after which an interruption that was lost comes again.
AGAIN = 0.5
#: Functions that run while something is deleted, where Python swallows exceptions.
DELETING = ("__del__", "remove")
#: Packages that run Python only to compile: half a kernel fails at every later call.
COMPILERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("numba", "llvmlite"))
#: Said of what was interrupted for its memory.
TOO_MUCH = "it takes more memory than the {} that --memory allows: raise it"

#: Memory pages of this process: the second number of this file counts those in use.
_STATM = Path("/proc/self/statm")


class Interrupted(BaseException):
    """An interruption of a step that took too long, or, with a reason, too much memory."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


class BudgetWatch:
    """A time budget that runs from now on, and a bound on memory."""

    def __init__(self, budget: float, *, memory: int | None = None) -> None:
        self.budget = budget
        self.start = now()
        self.memory = memory
        self.reserved = 0.0
        self.peak = 0
        self._processor = time.process_time()
        self._base = resident()
        self._until = math.inf
        self._why = ""
        self._asked = False
        self._before: Any = None

    @property
    def spent(self) -> float:
        """Return the seconds since the start."""
        return now() - self.start

    @property
    def processor(self) -> float | None:
        """Return the processor time since the start; None where a test drives the clock."""
        return time.process_time() - self._processor if clock_is_real() else None

    @property
    def left(self) -> float:
        """Return the seconds that are left for measuring, below 0 once they are over."""
        return self.budget - self.reserved - self.spent

    @property
    def over(self) -> bool:
        """Tell whether the time is over."""
        return self.left <= 0

    def allows(self, predicted: float) -> bool:
        """Tell whether so many seconds more would stay within the budget."""
        return predicted <= self.left

    def reserve(self, seconds: float) -> None:
        """Keep so many seconds at the end for what comes after measuring."""
        self.reserved = seconds

    def count_memory(self) -> None:
        """Count memory from now on: what is held already is the model and its data."""
        self._base = resident()

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Interrupt the block after so many seconds, or soon after the end of the budget."""
        grace, self._why = OVER * self.budget + MORE, ""
        end = self.start + self.budget - self.reserved + grace
        outer, self._until = self._until, min(now() + seconds, end)
        try:
            yield
        finally:
            self._until = outer

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch over the block from a second thread, where blocks can be interrupted."""
        if threading.current_thread() is not threading.main_thread() or not clock_is_real():
            yield
            return
        end = threading.Event()
        self._before = signal.signal(signal.SIGALRM, self._interrupt)
        look = contextvars.copy_context().run  # the thread goes by the same clock
        thread = threading.Thread(target=look, args=(self._look, end), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._until = math.inf
            end.set()
            thread.join()
            if self._before is not None:  # None is a handler that Python did not set
                signal.signal(signal.SIGALRM, self._before)

    def _look(self, end: threading.Event) -> None:
        while not end.wait(PAUSE):
            used = resident() - self._base
            self.peak = max(self.peak, used)
            heavy = self.memory is not None and used > self.memory and self._until < math.inf
            if heavy or now() > self._until:
                self._why = TOO_MUCH.format(in_bytes(self.memory or 0)) if heavy else ""
                self._asked = True
                _thread.interrupt_main(signal.SIGALRM)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise where the main thread is, unless the block that was meant has ended.

        Not amid an import or a compilation, which would leave half a module or kernel behind for
        the whole process, nor where Python would swallow it; the other thread asks again soon. An
        alarm of the caller's own goes to the handler that the caller has set.
        """
        expected, self._asked = self._asked, False
        if not expected:
            if callable(self._before):
                self._before(number, frame)
            return
        late = self._until < math.inf and (self._why or now() > self._until)
        if late and not _delicate(frame):
            self._until, why, self._why = now() + AGAIN, self._why, ""
            raise Interrupted(why)


def _delicate(frame: FrameType | None) -> bool:
    """Tell whether an import or a compilation is under way, or something is being deleted."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code.co_name in DELETING:
            return True
        if any(compiler in code.co_filename for compiler in COMPILERS):
            return True
        frame = frame.f_back
    return False


def resident() -> int:
    """Return the bytes of memory that this process holds; 0 where that is unknown."""
    import resource

    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0
