"""The joblib executor: worker processes on this machine."""

import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from inscape.files.leftovers import semaphore_prefix
from inscape.lab.executors import CellTask, TaskFunction, TaskOutcome, lost_task

_WATCH = 0.5  # seconds between two looks at the parent


@dataclass(frozen=True)
class JoblibExecutor:
    """Runs tasks in ``jobs`` processes, which are started anew where one dies.

    The death of one worker takes all down, by the design of loky. Those tasks that were under way
    are then run one at a time, so that only the one at fault is lost.
    """

    jobs: int
    name: str = "joblib"

    def run(self, tasks: Sequence[CellTask], work: TaskFunction) -> Iterator[TaskOutcome]:
        """Yield the outcome of each task as it is done."""
        waiting = list(tasks)
        while waiting:
            under_way: dict[tuple[str, ...], CellTask] = {}
            yield from self._pool(waiting, under_way, work)
            yield from self._suspects(list(under_way.values()), work)

    def _suspects(self, tasks: Sequence[CellTask], work: TaskFunction) -> Iterator[TaskOutcome]:
        """Find out which of the tasks under way was the end of its worker."""
        for task in tasks:
            alone = {task.keys: task}
            if len(tasks) > 1:
                alone = {}
                yield from self._pool([task], alone, work)
            if alone:
                yield lost_task(task, "its process was killed or ran out of memory")

    def _pool(
        self,
        waiting: list[CellTask],
        under_way: dict[tuple[str, ...], CellTask],
        work: TaskFunction,
    ) -> Iterator[TaskOutcome]:
        """Yield outcomes until all is done or a worker dies; what it was at is in ``under_way``."""
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import BrokenProcessPool

        def calls() -> Iterator[object]:
            while waiting:
                task = waiting.pop(0)
                under_way[task.keys] = task
                yield delayed(work)(task)

        # Two processes at least: with one, joblib would run the task in this very process.
        with (
            _own_semaphores(),
            parallel_config(
                backend="loky",
                inner_max_num_threads=1,
                initializer=_settle,
                initargs=(os.getpid(),),
            ),
        ):
            pool = Parallel(
                n_jobs=max(self.jobs, 2),
                pre_dispatch=self.jobs,
                batch_size=1,
                max_nbytes=None,  # tasks are small: no arrays in shared memory,
                temp_folder=tempfile.gettempdir(),  # nor an empty folder for them
                return_as="generator_unordered",
            )
            outcomes = pool(calls())
            try:
                for done in outcomes:
                    del under_way[done.task.keys]
                    yield done
            except BrokenProcessPool:
                return
            except BaseException:
                _stop_workers()
                raise


@contextmanager
def _own_semaphores() -> Iterator[None]:
    """Name the semaphores of a pool so that, after a kill, a later process knows them as ours."""
    from joblib.externals.loky.backend.synchronize import SemLock

    prefix, usual = semaphore_prefix(), SemLock._make_name
    SemLock._make_name = staticmethod(lambda: f"/{prefix}-{next(SemLock._rand)}")
    try:
        yield
    finally:
        SemLock._make_name = staticmethod(usual)


def _stop_workers() -> None:
    """Kill the workers, whatever they are at: files are whole at any moment."""
    from joblib.externals.loky import get_reusable_executor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about workers stopped while tasks were waiting
        get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _settle(driver: int) -> None:
    """Let a new worker leave Ctrl-C to the driver, and end soon after the driver was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":  # elsewhere a process does not learn that its parent is gone
        threading.Thread(target=_follow, args=(driver,), daemon=True).start()


def _follow(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(_WATCH)
    os._exit(1)
