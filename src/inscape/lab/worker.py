"""The worker: runs the cells of a task and writes each record as soon as it is computed.

Numbers do not depend on the worker: a task always computes with the threads that its experiment
asks for, and the global random generators, which no cell should use, start from the key of its
first cell.
"""

import platform
import random
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from inscape import __version__
from inscape.lab import provenance
from inscape.lab.catalogue import experiment
from inscape.lab.cell_code import cell_code_hash
from inscape.lab.executors import CellTask, Failure, TaskOutcome
from inscape.lab.experiment import Experiment
from inscape.lab.store import Record, Store


def work(task: CellTask) -> TaskOutcome:
    """Run the cells of a task, write their records and return which failed.

    A cell that raises becomes a failure and the others go on. A disk that cannot be written is
    no cell's fault: that error is raised.
    """
    with _threads(task.threads):
        return _Work(task).done()


class _Work:
    """The state of one task."""

    def __init__(self, task: CellTask) -> None:
        self.task = task
        self.experiment: Experiment = experiment(task.experiment)
        self.store = Store(task.root)
        self.written: list[int] = []
        self.failed: list[int] = []
        self.failures: list[Failure] = []

    def done(self) -> TaskOutcome:
        self._run(range(len(self.task.cells)))
        keys = tuple(self.task.keys[index] for index in self.written)
        return TaskOutcome(task=self.task, keys=keys, failures=tuple(self.failures))

    def _run(self, indices: Sequence[int]) -> None:
        """Run cells together; where that raises, halve what is left to find the cell at fault."""
        try:
            with _seeded(self.task.keys[indices[0]]):
                self._run_together(indices)
        except _DiskError as error:
            raise error.cause from None
        except Exception as error:
            remaining = self._remaining(indices)
            if len(remaining) < 2:
                for index in remaining:
                    self._fail(index, error)
                return
            for half in (remaining[: len(remaining) // 2], remaining[len(remaining) // 2 :]):
                self._run(half)

    def _run_together(self, indices: Sequence[int]) -> None:
        cells = [dict(self.task.cells[index]) for index in indices]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started, since = datetime.now(UTC), time.perf_counter()
            for place, outcome in self.experiment.run(cells):
                seconds = time.perf_counter() - since
                if isinstance(outcome, Exception):
                    self._fail(indices[place], outcome)
                    continue
                texts = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
                about = self._provenance({**cells[place], **outcome}, started, seconds, texts)
                self._write(indices[place], outcome, about)
                caught.clear()
                started, since = datetime.now(UTC), time.perf_counter()
        if remaining := self._remaining(indices):
            raise RuntimeError(f"together yielded no outcome for {len(remaining)} of its cells")

    def _write(self, index: int, outcome: Mapping[str, Any], about: dict[str, Any]) -> None:
        task = self.task
        record = Record(
            experiment=task.name,
            scale=task.scale,
            key=task.keys[index],
            settings=task.cells[index],
            data=task.data[index],
            values=outcome,
            claims=task.claims,
            provenance=about,
            version=self.experiment.schema,
        )
        try:
            self.store.write(record)
        except OSError as error:
            raise _DiskError(error) from error
        self.written.append(index)

    def _provenance(
        self, known: Mapping[str, Any], started: datetime, seconds: float, texts: list[str]
    ) -> dict[str, Any]:
        """Return the provenance of a record; ``known`` holds its settings and values."""
        dtype = known.get("dtype", torch.get_default_dtype())
        return {
            "inscape": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "platform": f"{platform.system()} {platform.machine()}",
            "device": str(known.get("device", torch.get_default_device())),
            "dtype": str(dtype).removeprefix("torch."),
            "commit": provenance.commit(),
            "processor": provenance.processor(),
            "blas": provenance.linear_algebra(),
            "code": cell_code_hash(self.experiment),
            "threads": self.task.threads,
            "executor": self.task.executor,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(seconds, 6),
            "warnings": texts,
        }

    def _remaining(self, indices: Sequence[int]) -> list[int]:
        """Return the cells that have neither a record nor failed."""
        return [index for index in indices if index not in (*self.written, *self.failed)]

    def _fail(self, index: int, error: Exception) -> None:
        self.failed.append(index)
        self.failures.append(self._failure(index, error))

    def _failure(self, index: int, error: Exception) -> Failure:
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = str(error).strip().partition("\n")[0]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        return Failure(
            key=self.task.keys[index],
            settings=self.task.cells[index],
            error=f"{type(error).__name__}: {text} ({where})",
        )


class _DiskError(Exception):
    """An error of the store, kept apart from those of cells."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Compute with so many threads: torch, BLAS and OpenMP."""
    before = torch.get_num_threads()
    with threadpool_limits(limits=number):
        torch.set_num_threads(number)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def _seeded(key: str) -> Iterator[None]:
    """Start the global generators from a key, and leave them as they were."""
    seed = int(key, 16) % 2**32
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002
