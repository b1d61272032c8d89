"""Tasks on a Ray cluster: one that runs already, or one of this machine that ends with the run."""

import os
import secrets
import shutil
import socket
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inscape.lab.cluster import environment, surroundings
from inscape.lab.executors import CellTask, TaskFunction, TaskOutcome, lost_task
from inscape.runtime.extras import need

ADDRESS = "RAY_ADDRESS"
OBJECT_STORE = 80 * 2**20  # bytes; Ray's least, since records travel as files
PATIENCE = 10.0  # seconds for a cluster to answer
LONGEST_FOLDER = 40  # characters; Ray puts sockets below it, whose names are limited to 107

# Ray reports to its makers and prints on stdout unless told otherwise, the latter before import.
_SILENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
_CHANGED = ("RAY_AUTH_MODE", "PYTHONBREAKPOINT")  # by Ray itself, when it starts
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


@dataclass(frozen=True)
class RayExecutor:
    """Runs tasks on the workers of a Ray cluster, spread over its nodes.

    Attributes:
        jobs: Tasks at a time.
        name: Its name among the executors.
        address: The cluster, as Ray writes it; empty for the variable ``RAY_ADDRESS``, and where
            that is empty too, for a cluster of this machine alone.
    """

    jobs: int = 1
    name: str = "ray"
    address: str = ""

    def run(self, tasks: Sequence[CellTask], work: TaskFunction) -> Iterator[TaskOutcome]:
        """Yield the outcome of each task as it comes; one whose worker died is lost."""
        if not tasks:
            return
        threads = max(task.threads for task in tasks)
        address = self.address or os.environ.get(ADDRESS, "")
        with _connection(address, cpus=self.jobs * threads) as ray:
            _check_room(ray, threads)
            yield from _follow(ray, tasks, work, jobs=self.jobs)


def _follow(
    ray: Any, tasks: Sequence[CellTask], work: TaskFunction, *, jobs: int
) -> Iterator[TaskOutcome]:
    call = ray.remote(max_retries=0, scheduling_strategy="SPREAD")(_call)
    waiting, running = deque(tasks), dict[Any, CellTask]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.popleft()
                needs = {"env_vars": surroundings(task.threads)}
                remote = call.options(num_cpus=task.threads, runtime_env=needs)
                running[remote.remote(work, task)] = task
            ready, _ = ray.wait(list(running))
            for reference in ready:
                yield _outcome(ray, reference, running.pop(reference))
    finally:
        for unfinished in running:
            ray.cancel(unfinished, force=True)


def _call(work: TaskFunction, task: CellTask) -> TaskOutcome:
    return work(task)


def _outcome(ray: Any, reference: Any, task: CellTask) -> TaskOutcome:
    try:
        done: TaskOutcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # what work raised, in Ray's wrapping
        raise (error.cause if isinstance(error.cause, BaseException) else error) from None
    except ray.exceptions.RayError as error:
        text = " ".join(str(error).split())
        return lost_task(task, f"{type(error).__name__}: {text.split('. ')[0].rstrip('.')}")
    return done


@contextmanager
def _connection(address: str, *, cpus: int) -> Iterator[Any]:
    """Yield Ray, connected; a connection that the caller has made is used and left alone."""
    with environment(_SILENT):
        ray = need("ray", extra="ray", why="the executor 'ray'")
    if ray.is_initialized():
        yield ray
    elif address in ("", "local"):
        with _own_cluster(ray, cpus):
            yield ray
    else:
        _join(ray, address)
        try:
            yield ray
        finally:
            ray.shutdown()


def _join(ray: Any, address: str) -> None:
    try:
        _knock(address)
        with environment(_SILENT, *_CHANGED):
            ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise RuntimeError(
            f"the executor 'ray' found no Ray cluster at {address!r} "
            f"({' '.join(str(error).split())[:200]}): start one there with ray start --head, set "
            f"RAY_AUTH_MODE=token if it asks for a token, or unset {ADDRESS} to use this machine."
        ) from error


def _knock(address: str) -> None:
    """Raise at once where nobody listens; Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


@contextmanager
def _own_cluster(ray: Any, cpus: int) -> Iterator[None]:
    folder = tempfile.mkdtemp(prefix="inscape-ray-", dir=_temporary())
    # Without a token of ours Ray would keep one in the home folder.
    token = {} if any(map(os.environ.get, _TOKENS)) else {"RAY_AUTH_TOKEN": _token()}
    try:
        with environment({**_SILENT, **token}, *_CHANGED):
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                logging_level="ERROR",
                log_to_driver=False,
                _temp_dir=folder,
            )
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _token() -> str:
    """Return the secret of this process's clusters; Ray reads it once and keeps it."""
    return secrets.token_hex(32)


def _temporary() -> str | None:
    """Return the system's folder for temporary files, or ``/tmp`` where its name is too long."""
    usual = tempfile.gettempdir()
    return "/tmp" if len(usual) > LONGEST_FOLDER and Path("/tmp").is_dir() else usual


def _check_room(ray: Any, threads: int) -> None:
    """Refuse a cluster on which a task would wait for ever; one without CPUs may yet grow."""
    largest = max(
        (node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0
    )
    if 0 < largest < threads:
        raise RuntimeError(
            f"a task needs {threads} CPUs on one node, the largest node of the Ray cluster has "
            f"{largest:g}: add a node with ray start --num-cpus {threads} --address ..."
        )
