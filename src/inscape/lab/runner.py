"""The runner: takes the missing cells of a plan to an executor until their records are there."""

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from inscape.files.leftovers import tidy
from inscape.lab.catalogue import is_own
from inscape.lab.encoding import shown
from inscape.lab.executors import CellTask, Executor, Failure, SerialExecutor, TaskOutcome
from inscape.lab.index_file import Index
from inscape.lab.planning import RunPlan as RunPlan
from inscape.lab.planning import plan as plan
from inscape.lab.planning import recorded as recorded
from inscape.lab.store import Store
from inscape.lab.worker import work
from inscape.runtime.progress import Bar, progress

ATTEMPTS = 3  # for a cell whose worker dies
LONGEST = 80  # characters of the settings of a cell that failed
_LOOK = 0.5  # seconds between two looks at the folder of records


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a run did.

    Attributes:
        plan: What it was to do.
        computed: How many records it wrote.
        reused: How many were there before.
        failures: Cells that raised, or whose workers died again and again.
        notices: A sentence about each record that was repaired.
        seconds: Time that it took.
    """

    plan: RunPlan
    computed: int
    reused: int
    failures: tuple[Failure, ...]
    notices: tuple[str, ...]
    seconds: float


class RunError(RuntimeError):
    """Some cells have no record after a run; ``report`` has the rest."""

    def __init__(self, report: RunReport) -> None:
        first = report.failures[0]
        more = len(report.failures) - 1
        super().__init__(
            f"{len(report.failures)} of {len(report.plan.cells)} cells of {report.plan.id} failed; "
            f"the cell {_short(shown(first.settings))} said {first.error}"
            f"{f', and {more} more failed' if more else ''}: fix it and run the same command "
            "again, which computes only what is missing."
        )
        self.report = report


def _short(text: str) -> str:
    """Cut a line of settings, which may hold long lists."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def run(
    plan: RunPlan,
    *,
    store: Store,
    executor: Executor | None = None,
    on_done: Callable[[TaskOutcome], None] | None = None,
    quiet: bool | None = None,
) -> RunReport:
    """Compute the missing cells of a plan.

    Each record is written by the worker the moment it is there. A worker that dies costs what it
    had not written: those cells are tried again, a batch in halves, a single cell three times.
    Cells that fail do not stop the others; in the end they raise ``RunError``.

    Args:
        plan: From ``plan``.
        store: The same store.
        executor: Where to run; here, one after the other, by default.
        on_done: Called with the outcome of each task.
        quiet: As in ``progress``: True shows nothing, None asks the environment.
    """
    chosen = executor or SerialExecutor()
    tidy()
    since = time.monotonic()
    fresh = _NewRecords(store.folder(plan.name, plan.scale), [plan.keys[i] for i in plan.missing])
    failures: list[Failure] = []
    waiting = tasks(plan, store, chosen)
    with _shown(plan, fresh, quiet):
        while waiting:
            again: list[CellTask] = []
            for done in _outcomes(chosen, waiting):
                failures += done.failures
                if done.lost:
                    retries, given_up = _retries(done, fresh)
                    again += retries
                    failures += given_up
                if on_done is not None:
                    on_done(done)
            waiting = again
    Index(store).entries(plan.name)
    report = RunReport(
        plan=plan,
        computed=len(fresh.written()),
        reused=len(plan.cells) - len(plan.missing),
        failures=tuple(failures),
        notices=store.take_notices(),
        seconds=time.monotonic() - since,
    )
    if failures:
        raise RunError(report)
    return report


def tasks(plan: RunPlan, store: Store, executor: Executor) -> list[CellTask]:
    """Return the missing cells as tasks, the longest first.

    Cells that may share a call are put together, up to the batch of the experiment; into more
    tasks where there would be fewer than the executor runs at a time.
    """
    groups: dict[Hashable, list[int]] = {}
    for index in plan.missing:
        alone = plan.runs.together is None
        groups.setdefault(index if alone else plan.runs.alike(plan.cells[index]), []).append(index)
    batch = max(plan.runs.batch, 1)
    if sum(-(-len(group) // batch) for group in groups.values()) < executor.jobs:
        batch = min(batch, max(1, -(-len(plan.missing) // executor.jobs)))
    chunks = [
        group[start : start + batch]
        for group in groups.values()
        for start in range(0, len(group), batch)
    ]
    tasks = [_task(plan, store, executor.name, chunk) for chunk in chunks]
    return sorted(tasks, key=lambda task: -task.seconds)


def _task(plan: RunPlan, store: Store, name: str, chunk: Sequence[int]) -> CellTask:
    return CellTask(
        experiment=plan.source,
        name=plan.name,
        scale=plan.scale,
        cells=tuple(plan.cells[index] for index in chunk),
        keys=tuple(plan.keys[index] for index in chunk),
        data=tuple(plan.data[index] for index in chunk),
        claims=plan.claims,
        root=str(store.root.absolute()),
        threads=plan.runs.threads,
        seconds=sum(plan.guesses[index] for index in chunk),
        executor=name,
    )


def _outcomes(executor: Executor, waiting: Sequence[CellTask]) -> Iterator[TaskOutcome]:
    """Yield outcomes; an error or Ctrl-C on our side stops the executor, too."""
    outcomes = executor.run(waiting, work)
    try:
        yield from outcomes
    finally:
        close = getattr(outcomes, "close", None)
        if close is not None:
            close()


def _retries(done: TaskOutcome, fresh: "_NewRecords") -> tuple[list[CellTask], list[Failure]]:
    """Return what to try again of a task whose worker died, and what to give up."""
    task, written = done.task, fresh.written()
    remaining = [index for index, key in enumerate(task.keys) if key not in written]
    if len(remaining) > 1:
        halves = (remaining[: len(remaining) // 2], remaining[len(remaining) // 2 :])
        return [_part(task, half) for half in halves], []
    if task.attempt < ATTEMPTS:
        return [replace(_part(task, remaining), attempt=task.attempt + 1)] if remaining else [], []
    reason = f"that its worker died {task.attempt} times ({done.lost})"
    return [], [Failure(key=task.keys[i], settings=task.cells[i], error=reason) for i in remaining]


def _part(task: CellTask, indices: Sequence[int]) -> CellTask:
    return replace(
        task,
        cells=tuple(task.cells[i] for i in indices),
        keys=tuple(task.keys[i] for i in indices),
        data=tuple(task.data[i] for i in indices),
        seconds=task.seconds * len(indices) / len(task.cells),
        attempt=1,
    )


class _NewRecords:
    """The records that have been written since it was made, whoever wrote them."""

    def __init__(self, folder: Path, keys: Sequence[str]) -> None:
        self.folder = folder
        self.keys = keys
        self.before = self._inodes()

    def written(self) -> set[str]:
        now, before = self._inodes(), self.before
        return {key for key in self.keys if key in now and now[key] != before.get(key)}

    def _inodes(self) -> dict[str, int]:
        """Return the inode of each record: another one after each rewrite."""
        try:
            with os.scandir(self.folder) as files:
                return {f.name[:-5]: f.inode() for f in files if f.name.endswith(".json")}
        except FileNotFoundError:
            return {}


@contextmanager
def _shown(plan: RunPlan, fresh: _NewRecords, quiet: bool | None) -> Iterator[None]:
    """Show how many cells are done, those of a task under way included, and the time left."""
    recorded = len(plan.cells) - len(plan.missing)
    over = threading.Event()
    label = plan.name if is_own(plan.id) else plan.id
    with progress(len(plan.cells), label=label, done=recorded, quiet=quiet) as bar:
        times = {plan.keys[index]: plan.guesses[index] for index in plan.missing}
        watch = threading.Thread(
            target=_watch, args=(bar, fresh, recorded, times, over), daemon=True
        )
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()


def _watch(
    bar: Bar, fresh: _NewRecords, recorded: int, times: Mapping[str, float], over: threading.Event
) -> None:
    """Advance the bar by what is written; cells count for the time left as they were foreseen."""
    ended = False
    while not ended:
        ended = over.wait(_LOOK)
        written = fresh.written()
        done = sum(times[key] for key in written)
        bar.effort = done, sum(times.values()) - done
        bar.advance(recorded + len(written) - bar.done)
