"""Kill a real experiment again and again, and see that its records are those of a calm run.

    python tests/kills.py sattelberg/figure-6.4 --scale laptop --kills 20

runs ``inscape reproduce`` in two worker processes, kills its whole process group with SIGKILL at
random moments, starts it again, and prints what each kill cost and what was left in the end.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from inscape.files import leftovers
from inscape.lab import plan, run
from inscape.lab.record import content_hash, parsed
from inscape.lab.store import Store


@dataclass
class Trial:
    """What became of an experiment that was killed.

    Attributes:
        kills: Records before and after each kill.
        left_by_kills: Names of temporary files and semaphores that the kills left, at any time.
        lost: Records that were there once and were gone, or changed, later.
        damaged: Sentences of the store about records that it set aside.
        left: Names of what was left after the last, undisturbed run.
        differing: Keys of records whose values are not those of the calm run.
        cells: Records in the end.
    """

    kills: list[tuple[int, int]] = field(default_factory=list)
    left_by_kills: set[str] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    cells: int = 0


def trial(
    experiment: str, scale: str, folder: Path, *, kills: int, seed: int = 0, longest: float = 2.0
) -> Trial:
    """Run an experiment calmly and with kills, and compare.

    Args:
        experiment: Its id.
        scale: Its scale.
        folder: For records and ledgers; a calm run, in this process, that is there already is only
            completed.
        kills: How often to kill, unless all is done before.
        seed: Seed of the moments.
        longest: Seconds to the latest kill, from up to two records after the workers' start.
    """
    found, moments = Trial(), random.Random(seed)
    calm, rough = folder / "calm", folder / "rough"
    run(plan(experiment, scale=scale, store=Store(calm)), store=Store(calm), quiet=True)
    seen: set[str] = set()
    known: dict[str, bytes] = {}
    for _ in range(kills):
        process = _start(experiment, scale, rough)
        _await_workers(process, folder, seen)
        _await_records(process, rough, len(known) + moments.randint(0, 2))
        time.sleep(moments.uniform(0, longest))
        if process.poll() is not None:  # all is done: nothing is left to kill
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = _records(rough)
        found.lost += [name for name, text in known.items() if now.get(name) != text]
        found.kills.append((len(known), len(now)))
        seen |= _ledgers(folder)
        found.left_by_kills |= _temporary(rough) | _semaphores(seen)
        known = now
    _finish(_start(experiment, scale, rough))
    found.lost += [name for name, text in known.items() if _records(rough).get(name) != text]
    found.left = sorted(_temporary(rough) | _semaphores(seen) | _ledgers(folder))
    _compare(found, experiment, scale, Store(calm), Store(rough))
    return found


def _start(experiment: str, scale: str, out: Path) -> subprocess.Popen[bytes]:
    words = ["reproduce", experiment, "--scale", scale, "--jobs", "2", "--executor", "joblib"]
    return subprocess.Popen(
        [sys.executable, "-m", "inscape", *words, "--out", str(out), "--quiet"],
        env={**os.environ, "XDG_CACHE_HOME": str(out.parent / "cache"), "INSCAPE_QUIET": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait() not in (0, 3):  # 3: a claim is not reproduced
        raise RuntimeError(f"the experiment ended with {process.returncode}")


def _await_workers(process: subprocess.Popen[bytes], folder: Path, seen: set[str]) -> None:
    """Wait until the pool of workers is there, or the run is over."""
    while process.poll() is None and not _semaphores(_ledgers(folder) - seen):
        time.sleep(0.05)


def _await_records(process: subprocess.Popen[bytes], root: Path, count: int) -> None:
    """Wait until there are so many records, or the run is over: a slow machine gets as far."""
    while process.poll() is None and len(list(root.glob("*/*/*/*.json"))) < count:
        time.sleep(0.05)


def _records(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob("*/*/*/*.json")}


def _temporary(root: Path) -> set[str]:
    return {path.name for path in root.rglob("*") if path.name.endswith((".tmp", "-journal"))}


def _semaphores(ledgers: set[str]) -> set[str]:
    """Return the semaphores of the processes of these ledgers, and of no other run beside."""
    prefixes = tuple(f"sem.{leftovers._prefix(name)}-" for name in ledgers)
    return {path.name for path in leftovers.SEMAPHORES.iterdir() if path.name.startswith(prefixes)}


def _ledgers(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("cache/inscape/running/*")}


def _compare(found: Trial, experiment: str, scale: str, calm: Store, rough: Store) -> None:
    for record in calm.records(experiment, scale):
        other = rough.read(experiment, scale, record.key)
        same = other is not None and _bytes(record.values) == _bytes(other.values)
        found.differing += [] if same else [record.key]
    for path in rough.root.glob("*/*/*/*.json"):
        content = parsed(path.read_bytes())
        found.differing += [] if content["sha256"] == content_hash(content) else [path.stem]
    named = {parsed(text).get("npz", {}).get("file") for text in _records(rough.root).values()}
    found.left += [p.name for p in rough.root.glob("*/*/*/*.npz") if p.name not in named]
    found.left += [path.name for path in rough.root.rglob("*.corrupt-*")]
    found.damaged += [*calm.take_notices(), *rough.take_notices()]
    found.cells = len(_records(rough.root))


def _bytes(value: object) -> object:
    """Return a value in a form that is equal where all bits are."""
    if isinstance(value, dict):
        return {name: _bytes(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_bytes(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)


def main() -> None:
    """Run a trial from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment")
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the calm run is; temporary if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=2.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = trial(
            given.experiment,
            given.scale,
            given.folder or Path(folder),
            kills=given.kills,
            seed=given.seed,
            longest=given.longest,
        )
    sys.stdout.write(summary(found))


def summary(found: Trial) -> str:
    """Return a line for each kill, and one for what was left in the end."""
    lines = [
        f"kill {number:2}: {before} records before, {after} after"
        for number, (before, after) in enumerate(found.kills, 1)
    ]
    lines += [
        f"left by kills, and tidied later: {len(found.left_by_kills)} files and semaphores",
        f"records: {found.cells}; lost: {len(found.lost)}; damaged: {len(found.damaged)}; "
        f"differing from the calm run: {len(found.differing)}; left in the end: {found.left}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
