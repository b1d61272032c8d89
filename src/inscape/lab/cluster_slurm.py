"""Tasks as jobs of Slurm, submitted from a login node through submitit and followed to their end.

Each element of the job array takes a share of the tasks, one after the other, and leaves a file
for each that it starts and for each that it ends; those files, on the disk that all nodes share,
are what is followed. Slurm is asked only about jobs that stay silent.
"""

import logging
import math
import os
import pickle
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inscape.files.atomic import written
from inscape.lab.cluster import exports, surroundings
from inscape.lab.executors import CellTask, TaskFunction, TaskOutcome, lost_task
from inscape.lab.slurm_options import SlurmOptions, slurm_options
from inscape.runtime.extras import need

FOLDER = ".slurm"  # in the store
LARGEST_ARRAY = 1000  # jobs; Slurm's own default limit is 1001
SHORTEST_JOB = 60.0  # seconds; a shorter job is not worth its start
SHORTEST_LIMIT = 60  # minutes
LONGEST_END = 30.0  # seconds for a job to end after its last task
BETWEEN_CHECKS = 5  # looks at the files for each look at the jobs
BETWEEN_CALLS = 60.0  # seconds between two calls of sacct


@dataclass(frozen=True)
class SlurmExecutor:
    """Runs tasks as a Slurm job array.

    Attributes:
        jobs: Jobs of the array that run at a time.
        name: Its name among the executors.
        slurm: Options as in ``SlurmOptions``, before those of the environment and the file.
        cluster: What submitit submits to; ``local`` takes processes of this machine instead, to
            try things out without a Slurm.
        pause: Seconds between two looks at the files.
    """

    jobs: int = 1
    name: str = "slurm"
    slurm: Mapping[str, Any] | None = None
    cluster: str = "slurm"
    pause: float = 2.0

    def run(self, tasks: Sequence[CellTask], work: TaskFunction) -> Iterator[TaskOutcome]:
        """Yield the outcome of each task as its file appears; one whose job ended is lost."""
        if not tasks:
            return
        submitit = need("submitit", extra="slurm", why="the executor 'slurm'")
        logging.getLogger("submitit").setLevel(logging.CRITICAL)  # it writes to stdout
        options = slurm_options(self.slurm)
        _check(options, tasks, self.cluster)
        array = _Array(submitit, self, options, work, _new_folder(Path(tasks[0].root)))
        try:
            waiting = dict(enumerate(tasks))
            while waiting:
                array.submit(waiting)
                yield from array.outcomes()
                waiting = array.unstarted
        finally:
            array.close()


class _Share:
    """What one job does: its tasks in turn, unless an earlier start of the job has done them."""

    def __init__(self, work: TaskFunction, tasks: Mapping[int, CellTask], folder: Path) -> None:
        self.work = work
        self.tasks = dict(tasks)
        self.folder = folder

    def __call__(self) -> None:
        for index, task in self.tasks.items():
            if not self._file(index).exists():
                self._file(index, "started").touch()
                self._leave(index, self._outcome(task))

    def checkpoint(self) -> None:
        """End the job: submitit calls this shortly before its time is over, or it is preempted.

        What has not been written then goes into another job, hence nothing is to be kept.
        """
        for index, task in self.tasks.items():
            if self._file(index, "started").exists() and not self._file(index).exists():
                self._leave(index, lost_task(task, "its job ran out of time or was preempted"))
        raise SystemExit(1)

    def _outcome(self, task: CellTask) -> TaskOutcome | Exception:
        try:
            return self.work(task)
        except Exception as error:
            return error

    def _leave(self, index: int, outcome: TaskOutcome | Exception) -> None:
        with written(self._file(index)) as file:
            pickle.dump(outcome, file)

    def _file(self, index: int, suffix: str = "outcome") -> Path:
        return self.folder / f"{index}.{suffix}"


class _Array:
    """The jobs of a run and the tasks that they have not ended yet."""

    def __init__(
        self,
        submitit: Any,
        executor: SlurmExecutor,
        options: SlurmOptions,
        work: TaskFunction,
        folder: Path,
    ) -> None:
        self.submitit = submitit
        self.executor = executor
        self.options = options
        self.work = work
        self.folder = folder
        self.shares: list[tuple[Any, dict[int, CellTask]]] = []  # what each job has yet to end
        self.first: dict[str, int] = {}  # the task that each job begins with
        self.unstarted: dict[int, CellTask] = {}
        self.jobs: list[Any] = []
        self.lost = False
        self.called = time.monotonic()

    def submit(self, tasks: Mapping[int, CellTask]) -> None:
        """Submit the tasks, in shares of about a minute or more."""
        shares = _shares(tasks, self.executor.jobs)
        queue = self.submitit.AutoExecutor(folder=self.folder, cluster=self.executor.cluster)
        queue.update_parameters(**_parameters(self.options, shares, self.executor.jobs))
        try:
            jobs = queue.submit_array([_Share(self.work, share, self.folder) for share in shares])
        except RuntimeError as error:
            raise RuntimeError(
                f"sbatch refused the jobs ({' '.join(str(error).split())}): check partition, "
                "account, time, cpus, gpus and mem in INSCAPE_SLURM_* or the table [slurm]."
            ) from error
        self.jobs += jobs
        self.first |= {job.job_id: min(share) for job, share in zip(jobs, shares, strict=True)}
        self.shares, self.unstarted = list(zip(jobs, shares, strict=True)), {}

    def outcomes(self) -> Iterator[TaskOutcome]:
        """Yield outcomes until each task has ended, was lost, or is left to another job."""
        rounds = 0
        silent: set[str] = set()
        while self.shares:
            yield from self._ended_tasks()
            if rounds % BETWEEN_CHECKS == 0:
                # Twice in a row, since files of another machine may take a while to be seen.
                ended = self._ended_jobs()
                yield from self._ended_tasks()
                for job, share in self.shares:
                    if job.job_id in silent & ended:
                        yield from self._give_up(job, share)
                self.shares = [(job, share) for job, share in self.shares if share]
                silent = ended
            rounds += 1
            if self.shares:
                time.sleep(self.executor.pause)

    def close(self) -> None:
        """Take back what is queued or running; where all went well, leave no files behind."""
        if self.shares:
            self._cancel()
        elif not self.lost and self._over():
            shutil.rmtree(self.folder, ignore_errors=True)

    def _cancel(self) -> None:
        if self.executor.cluster == "slurm":
            arrays = sorted({job.job_id.split("_")[0] for job, _ in self.shares})
            subprocess.run(["scancel", *arrays], check=False, capture_output=True)
        else:
            for job, _ in self.shares:
                job.cancel(check=False)
            self._over()

    def _over(self) -> bool:
        """Wait for the last file of each job, which submitit writes after ours."""
        until = time.monotonic() + LONGEST_END
        while not (over := all(job.done() for job in self.jobs)) and time.monotonic() < until:
            time.sleep(min(self.executor.pause, 1.0))
        return over

    def _ended_tasks(self) -> Iterator[TaskOutcome]:
        names = {path.name for path in self.folder.iterdir()}
        for _, share in self.shares:
            for index in [index for index in share if f"{index}.outcome" in names]:
                outcome = pickle.loads((self.folder / f"{index}.outcome").read_bytes())
                del share[index]
                if isinstance(outcome, BaseException):
                    raise outcome
                self.lost = self.lost or bool(outcome.lost)
                yield outcome
        self.shares = [(job, share) for job, share in self.shares if share]

    def _ended_jobs(self) -> set[str]:
        jobs = [job for job, _ in self.shares]
        if jobs and time.monotonic() - self.called > BETWEEN_CALLS:
            jobs[0].get_info(mode="force")  # one call of sacct for all jobs
            self.called = time.monotonic()
        ended = {job.job_id for job in jobs if job.done()}
        unknown = {job.job_id for job in jobs if job.state == "UNKNOWN"}
        if unknown and (queued := _queued()) is not None:
            ended |= unknown - queued
        return ended

    def _give_up(self, job: Any, share: dict[int, CellTask]) -> Iterator[TaskOutcome]:
        """Yield the task that a job died of; the rest, if it came so far, goes to another job."""
        names = {path.name for path in self.folder.iterdir()}
        began = f"{self.first[job.job_id]}.started" in names
        self.lost = True
        why = f"Slurm job {job.job_id} ended as {job.state}, see {job.paths.stderr}"
        for index, task in share.items():
            if began and f"{index}.started" not in names:
                self.unstarted[index] = task
            else:
                yield lost_task(task, why)
        share.clear()


def _queued() -> set[str] | None:
    """Return the jobs that Slurm has not ended yet, for clusters without accounting."""
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    try:
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return set(answer.stdout.split())


def _shares(tasks: Mapping[int, CellTask], jobs: int) -> list[dict[int, CellTask]]:
    seconds = sum(task.seconds for task in tasks.values())
    number = min(len(tasks), LARGEST_ARRAY, max(jobs, math.ceil(seconds / SHORTEST_JOB)))
    pairs = list(tasks.items())
    return [dict(pairs[first::number]) for first in range(number)]


def _parameters(
    options: SlurmOptions, shares: Sequence[Mapping[int, CellTask]], jobs: int
) -> dict[str, Any]:
    """Return what submitit calls our options; None is left out by it."""
    threads = max(task.threads for share in shares for task in share.values())
    longest = max(sum(task.seconds for task in share.values()) for share in shares)
    return {
        "name": "inscape",
        "timeout_min": options.time or max(SHORTEST_LIMIT, math.ceil(3 * longest / 60)),
        "cpus_per_task": options.cpus or threads,
        "gpus_per_node": options.gpus,
        "mem_gb": options.mem,
        "slurm_partition": options.partition,
        "slurm_account": options.account,
        "slurm_qos": options.qos,
        "slurm_constraint": options.constraint,
        "slurm_array_parallelism": jobs,
        "slurm_setup": [*options.setup, *exports(surroundings(threads))],
    }


def _check(options: SlurmOptions, tasks: Sequence[CellTask], cluster: str) -> None:
    threads = max(task.threads for task in tasks)
    if options.cpus is not None and options.cpus < threads:
        raise ValueError(
            f"the Slurm option 'cpus' must be at least {threads}, the threads of a cell, found "
            f"{options.cpus}: raise it."
        )
    if cluster != "slurm":
        return
    if absent := [command for command in ("sbatch", "srun") if shutil.which(command) is None]:
        raise RuntimeError(
            f"the executor 'slurm' needs the command {absent[0]}, found none: run it on a login "
            "node of a Slurm cluster, or choose another executor."
        )


def _new_folder(root: Path) -> Path:
    """Make a folder for the files of a run, which git does not see."""
    ours = root / FOLDER
    ours.mkdir(parents=True, exist_ok=True)
    (ours / ".gitignore").write_text("*\n", encoding="utf-8")
    folder = ours / f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    return folder
