"""Jobs: one computation per client and kind; a newer request stops an older one."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from inscape.piecewise.graph.cache import EXPORTS
from inscape.runtime.deadline import now
from inscape.runtime.progress import silence

R = TypeVar("R")
Thread = Literal["quick", "long", "similar", "lab"]

#: Jobs that are remembered.
JOBS = 64


class OvertakenError(Exception):
    """A newer request of the same client has taken the place of this one."""


class TimeSpentError(Exception):
    """A computation has taken longer than a request may."""


@dataclass(eq=False)
class Job:
    """A computation in steps: what stops it, and how far it has come.

    While a step runs no graph of a network is exported in another thread.
    """

    seconds: float
    layer: str = ""
    done: int = 0
    cells: int = 0
    finished: bool = False
    _stopped: threading.Event = field(default_factory=threading.Event)
    _begun: float | None = None

    def stop(self) -> None:
        """Stop before the next step."""
        self._stopped.set()

    def reached(self, layer: str, cells: int) -> None:
        """Keep how far the work has come."""
        self.layer, self.cells, self.done = layer, cells, self.done + 1

    def run(self, steps: Callable[["Job"], Generator[None, None, R]]) -> R:
        """Return what a generator returns, unless it is stopped or the time is over."""
        self._begun = now()
        try:
            with silence():
                self._check()
                work = steps(self)
                try:
                    while True:
                        with EXPORTS.shared():
                            next(work)
                        self._check()
                except StopIteration as end:
                    result: R = end.value
                    return result
                finally:
                    work.close()
        finally:
            self.finished = True

    def _check(self) -> None:
        if self._stopped.is_set():
            raise OvertakenError
        if self._begun is not None and now() - self._begun > self.seconds:
            raise TimeSpentError


class Jobs:
    """Who computes when: threads for exact regions, gradients, trainings, and one for the rest.

    A client has one job of each kind; a newer one stops it. Clients that have not asked for longest
    are forgotten.
    """

    def __init__(self) -> None:
        self._threads = {
            name: ThreadPoolExecutor(1, thread_name_prefix=f"explorer-{name}")
            for name in get_args(Thread)
        }
        self._latest: OrderedDict[tuple[str, str], Job] = OrderedDict()
        self._lock = threading.Lock()

    def start(
        self,
        client: str,
        kind: str,
        steps: Callable[[Job], Generator[None, None, R]],
        *,
        seconds: float,
        thread: Thread = "quick",
    ) -> tuple[Job, Future[R]]:
        """Begin a computation, and stop the one of the same client and kind."""
        job = Job(seconds)
        with self._lock:
            before = self._latest.pop((client, kind), None)
            if before is not None:
                before.stop()
            self._latest[client, kind] = job
            while len(self._latest) > JOBS:
                _, oldest = self._latest.popitem(last=False)
                oldest.stop()
        return job, self._threads[thread].submit(job.run, steps)

    def latest(self, client: str) -> Job | None:
        """Return the long job of a client, the last that was begun."""
        return self._latest.get((client, "long"))

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            for job in self._latest.values():
                job.stop()
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


def last_of(steps: Iterator[R]) -> Generator[None, None, R]:
    """Return the last of ever better results, in as many steps.

    >>> from inscape._core.anytime import finished
    >>> finished(last_of(iter([1, 2, 3])))
    3
    """
    answer = next(steps)
    for better in steps:
        answer = better
        yield
    return answer
