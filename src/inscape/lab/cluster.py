"""The environment variables that workers on other machines need."""

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

#: Every library that would otherwise start one thread for each core it sees.
THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

DATA = "INSCAPE_DATA_DIR"
SLURM = "INSCAPE_SLURM_"


def surroundings(threads: int) -> dict[str, str]:
    """Return the environment variables of a worker: where the data are, and how many threads.

    Our own variables go along, except those that say how to submit; progress is shown here, so
    that a worker keeps quiet.
    """
    ours = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("INSCAPE_") and not name.startswith(SLURM)
    }
    if DATA in ours:
        ours[DATA] = str(Path(ours[DATA]).absolute())
    return {**ours, "INSCAPE_QUIET": "1", **dict.fromkeys(THREAD_LIMITS, str(threads))}


def exports(variables: Mapping[str, str]) -> list[str]:
    """Return the lines of a shell script that set these variables."""
    return [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]


@contextmanager
def environment(variables: Mapping[str, str], *also: str) -> Iterator[None]:
    """Set environment variables within the block, and restore them and those named after it."""
    before = {name: os.environ.get(name) for name in (*variables, *also)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
