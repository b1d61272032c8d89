"""Executors: where tasks run. Each calls the same function with the same tasks.

An executor yields one ``TaskOutcome`` for each task, in any order. A task whose own worker died
comes back as ``lost_task(task, why)``; whether it is tried again is the runner's business. An
error that ``work`` raises (a full disk, an interrupt) ends the run: the executor stops its workers
and lets it through. What a cell itself raises never gets here: ``work`` turns it into a failure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from inscape._core import checks

NAMES = ("serial", "joblib", "ray", "slurm")

_HOMES = {
    "joblib": ("inscape.lab.processes", "JoblibExecutor"),
    "ray": ("inscape.lab.cluster_ray", "RayExecutor"),
    "slurm": ("inscape.lab.cluster_slurm", "SlurmExecutor"),
}


@dataclass(frozen=True, kw_only=True)
class CellTask:
    """The cells of one call of a worker: plain data, small, the same for every executor.

    Attributes:
        experiment: What to import: the id of an experiment, or the absolute path of its file.
        name: Name of the experiment in the store, ``paper/item``.
        scale: Scale in the store.
        cells: Settings of each cell.
        keys: Key of each cell.
        data: Data hash of each cell.
        claims: Hashes of the claims under which the cells are run.
        root: Folder of the store, absolute; workers elsewhere must see the same folder.
        threads: Threads that the task computes with, hence cores that it needs.
        seconds: Guess of its time on those cores.
        executor: Name of the executor, for the records.
        attempt: 1 for the first time, more where earlier workers died.
    """

    experiment: str
    name: str
    scale: str
    cells: tuple[Mapping[str, Any], ...]
    keys: tuple[str, ...]
    data: tuple[str, ...]
    claims: Mapping[str, str]
    root: str
    threads: int = 1
    seconds: float = 1.0
    executor: str = "serial"
    attempt: int = 1


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A cell that raised: its key, its settings, and the error in one line."""

    key: str
    settings: Mapping[str, Any]
    error: str


@dataclass(frozen=True, kw_only=True)
class TaskOutcome:
    """Which cells of a task have a record now, and which failed.

    Attributes:
        task: The task itself.
        keys: Cells whose records were written.
        failures: Cells that raised.
        lost: Why the worker died, if it did; its unwritten cells may be tried again.
    """

    task: CellTask
    keys: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = field(default=())
    lost: str = ""


#: The function that an executor calls with each task: ``inscape.lab.worker.work``.
TaskFunction = Callable[[CellTask], TaskOutcome]


def lost_task(task: CellTask, why: str) -> TaskOutcome:
    """Return the outcome of a task whose worker died."""
    return TaskOutcome(task=task, lost=why or "the worker died")


@runtime_checkable
class Executor(Protocol):
    """Runs tasks somewhere."""

    @property
    def name(self) -> str:
        """Return its name, as ``executor`` takes it."""

    @property
    def jobs(self) -> int:
        """Return how many tasks it runs at a time."""

    def run(self, tasks: Sequence[CellTask], work: TaskFunction) -> Iterator[TaskOutcome]:
        """Yield one outcome for each task, in any order."""


@dataclass(frozen=True)
class SerialExecutor:
    """Runs one task after the other in this process."""

    jobs: int = 1
    name: str = "serial"

    def run(self, tasks: Sequence[CellTask], work: TaskFunction) -> Iterator[TaskOutcome]:
        """Yield the outcome of each task in turn."""
        yield from map(work, tasks)


def executor(name: str = "joblib", jobs: int = 1) -> Executor:
    """Return the executor of that name for ``jobs`` tasks at a time.

    Args:
        name: ``serial`` (this process), ``joblib`` (processes of this machine), ``ray`` or
            ``slurm`` (clusters; each needs the extra of its name).
        jobs: Tasks at a time; ``serial`` takes no more than one.
    """
    checks.one_of(NAMES, executor=name)
    checks.at_least(1, jobs=jobs)
    if name == "serial":
        return SerialExecutor()
    module, class_name = _HOMES[name]
    chosen: Executor = getattr(import_module(module), class_name)(jobs)
    return chosen
