"""Threads for kernels that release the GIL, each with a range of the work."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

#: Ranges for each thread, so that one with little to do takes more of them.
RANGES = 4


class Workers:
    """A pool of threads that includes the caller's own."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def over(self, size: int, work: Callable[[int, int], Any], least: int = 512) -> list[Any]:
        """Call ``work(begin, end)`` for ranges that make up ``size``; return their results."""
        most = RANGES * self.threads if self._pool else 1
        parts = max(1, min(most, size // least))
        bounds = [size * k // parts for k in range(parts + 1)]
        return self.each([partial(work, a, b) for a, b in itertools.pairwise(bounds)])

    def each(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run independent tasks, begun in order; return their results."""
        if self._pool is None or len(tasks) == 1:
            return [task() for task in tasks]
        results: list[Any] = [None] * len(tasks)
        left = iter(range(len(tasks)))

        def run() -> None:
            nonlocal left
            try:
                while (k := next(left, None)) is not None:
                    results[k] = tasks[k]()
            except BaseException:
                left = iter(range(0))  # no thread begins another task
                raise

        beside = [self._pool.submit(run) for _ in range(min(self.threads, len(tasks)) - 1)]
        try:
            run()
        finally:
            wait(beside)
        for future in beside:
            future.result()
        return results

    def close(self) -> None:
        """Shut the threads down."""
        if self._pool is not None:
            self._pool.shutdown()
