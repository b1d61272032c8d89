"""Threads for kernels that let go of the interpreter, each with a range of the work."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

#: Ranges for each thread, so that one with little to do takes more of them.
RANGES = 4


class Workers:
    """The caller's own thread, and as many beside it as make up the number."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def over(self, size: int, work: Callable[[int, int], Any], least: int = 512) -> list[Any]:
        """Call ``work(begin, end)`` for ranges that make up ``size``; return what each gave."""
        most = RANGES * self.threads if self._pool else 1
        parts = max(1, min(most, size // least))
        bounds = [size * k // parts for k in range(parts + 1)]
        return self.each([partial(work, a, b) for a, b in itertools.pairwise(bounds)])

    def each(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Do tasks that do not need each other, begun in order; return what each gave."""
        if self._pool is None or len(tasks) == 1:
            return [task() for task in tasks]
        found: list[Any] = [None] * len(tasks)
        left = iter(range(len(tasks)))

        def run() -> None:
            nonlocal left
            try:
                while (k := next(left, None)) is not None:
                    found[k] = tasks[k]()
            except BaseException:
                left = iter(range(0))  # no thread begins another task
                raise

        beside = [self._pool.submit(run) for _ in range(min(self.threads, len(tasks)) - 1)]
        try:
            run()
        finally:
            wait(beside)
        for one in beside:
            one.result()
        return found

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
