"""Run the tests marked ``rounding`` as other processors would: ``make test-elsewhere``.

    python tests/elsewhere.py                # every setting, two at a time
    python tests/elsewhere.py --only MKL     # those whose name holds a word
    python tests/elsewhere.py --combined     # those of several libraries at once: five runs
    python tests/elsewhere.py tests/spectra  # these tests alone

Libraries choose their kernels by the processor, and environment variables make them choose those of
another. Each setting has one process of its own, since a library reads them once. A setting that
this processor cannot run is named and skipped. Ends in a table, and with 1 if any test failed.

Beside two busy processes, and behind all others, run the tests that a slow machine may decide
(``LOADED``) instead of those that rounding may decide: with a third of a core those would take as
long as all other settings together.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import ChainMap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

#: Folders and files of tests/ whose tests compare bits, orders or tight tolerances: conftest.py
#: marks them. A single test elsewhere is marked by hand.
ROUNDING = (
    "ensembles",
    "extrapolation",
    "functional/test_jacobians.py",
    "kernels",
    "piecewise/lines",
    "regions",
    "smoothness",
    "spectra",
    "training",
)

#: Tests of time budgets, of threads and processes that wait for each other, and of what a kill at
#: any moment leaves: those that a machine under load may decide.
LOADED = (
    "_core/test_anytime.py",
    "data/test_download.py",
    "ensembles/test_lanes_bits.py",
    "files/test_leftovers.py",
    "lab/test_faults.py",
    "lab/test_runner.py",
    "piecewise/planes/test_threads.py",
    "piecewise/planes/test_two_phase.py",
    "regions/test_line_budget.py",
    "regions/test_plane_budget.py",
    "report/look/test_reserve.py",
    "report/look/test_schedule.py",
    "report/look/test_watch.py",
    "runtime",
)

#: Seconds after which a setting is stopped and has failed: behind the work of others, tests of the
#: lowest priority may get no time at all.
LIMIT = 1800.0

#: A process that is busy, and as nice as the tests beside it: one of higher priority would leave
#: them a hundredth of a core.
BUSY = ("nice", "-n", "19", sys.executable, "-c", "while True: pass")


#: One thread, and no core kept busy by threads that wait for each other.
THREADS = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What imitates another machine.

    Attributes:
        name: What it is called.
        variables: Environment variables.
        needs: Flags that the processor must have (as Linux names them).
        prefix: Command that starts the tests: on one core, or after all others.
        beside: Busy processes that run all the while.
        tests: Folders and files that run under it; none takes the tests marked ``rounding``.
    """

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    beside: int = 0
    tests: tuple[str, ...] = ()


def variable(name: str, value: str, *needs: str) -> Setting:
    """Return the setting of one environment variable."""
    return Setting(name=f"{name}={value}", variables={name: value}, needs=needs)


AVX512 = ("avx512f", "avx512dq", "avx512bw", "avx512vl")
SETTINGS = (
    variable("MKL_CBWR", "COMPATIBLE"),
    variable("MKL_CBWR", "AVX2", "avx2"),
    variable("MKL_CBWR", "AVX512", *AVX512),
    variable("ATEN_CPU_CAPABILITY", "default"),
    variable("ATEN_CPU_CAPABILITY", "avx2", "avx2"),
    variable("OPENBLAS_CORETYPE", "Haswell", "avx2"),
    variable("OPENBLAS_CORETYPE", "Zen", "avx2"),
    variable("OPENBLAS_CORETYPE", "SkylakeX", *AVX512),
    variable("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_ICL AVX512_SPR", "avx2"),
    variable("ONEDNN_MAX_CPU_ISA", "AVX2", "avx2"),
    Setting(name="one core", prefix=("taskset", "--cpu-list", "{core}")),
    Setting(
        name="nice 19 beside two busy processes",
        prefix=("nice", "-n", "19"),
        beside=2,
        tests=LOADED,
    ),
)


def combined(settings: Sequence[Setting]) -> list[Setting]:
    """Return few settings that hold each of the given ones: the first of each variable, and so on.

    >>> two = variable("A", "1"), variable("A", "2"), variable("B", "1")
    >>> [setting.name for setting in combined(two)]
    ['A=1 B=1', 'A=2']
    """
    rounds: list[list[Setting]] = []
    for setting in settings:
        name = next(iter(setting.variables), None)
        at = sum(name in other.variables for taken in rounds for other in taken)
        if name is None or at == len(rounds):
            rounds.append([])
        rounds[-1 if name is None else at].append(setting)
    return [_merged(taken) for taken in rounds]


def _merged(settings: Sequence[Setting]) -> Setting:
    first, *others = settings
    if not others:
        return first
    name = " ".join(setting.name for setting in settings)
    variables = dict(ChainMap(*(setting.variables for setting in settings)))
    needs = tuple(dict.fromkeys(flag for setting in settings for flag in setting.needs))
    return Setting(name=name, variables=variables, needs=needs)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the tests under a setting."""

    setting: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    note: str = ""

    @property
    def is_good(self) -> bool:
        """Tell whether nothing failed, and something ran unless the setting was skipped."""
        return not self.failed and (self.passed > 0 or self.note.startswith("skipped"))


def marked() -> list[str]:
    """Return the folders and files that hold the tests marked ``rounding``."""
    tests = ROOT / "tests"
    by_hand = [path for path in tests.rglob("test_*.py") if "mark.rounding" in path.read_text()]
    return [str(tests / place) for place in ROUNDING] + sorted(map(str, by_hand))


def processor_flags(info: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Return the instructions that the processor has; none where they cannot be read."""
    found = re.search(r"^flags\s*:(.*)$", info.read_text(), re.M) if info.exists() else None
    return frozenset(found[1].split()) if found else frozenset()


def reason_to_skip(setting: Setting, flags: frozenset[str]) -> str | None:
    """Say why this machine cannot run a setting, or return None if it can."""
    missing = [flag for flag in setting.needs if flag not in flags]
    if missing:
        return f"skipped: this processor has no {', '.join(missing)}"
    if setting.prefix and not any(
        (Path(folder) / setting.prefix[0]).exists() for folder in os.get_exec_path()
    ):
        return f"skipped: there is no {setting.prefix[0]} here"
    return None


def command(setting: Setting, tests: Sequence[str]) -> list[str]:
    """Return the command that runs given tests, or its own, under a setting, in one process."""
    core = str(min(os.sched_getaffinity(0))) if "{core}" in setting.prefix else ""
    start = [core if word == "{core}" else word for word in setting.prefix]
    marker = [] if setting.tests else ["-m", "rounding"]
    options = ["-q", *marker, "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    chosen = tests or [str(ROOT / "tests" / place) for place in setting.tests] or marked()
    return [*start, sys.executable, "-m", "pytest", *options, "--show-capture=no", *chosen]


def counts(output: str) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped, by the last line of pytest.

    >>> counts("==== 2 failed, 30 passed, 1 skipped, 4 errors in 3.21s ====")
    {'failed': 6, 'passed': 30, 'skipped': 1}
    """
    last = output.strip().splitlines()[-1] if output.strip() else ""
    found = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    errors = found.get("errors", 0) + found.get("error", 0)
    return {
        "failed": found.get("failed", 0) + errors,
        "passed": found.get("passed", 0),
        "skipped": found.get("skipped", 0),
    }


def run(setting: Setting, tests: Sequence[str], logs: Path) -> Outcome:
    """Run the tests under a setting; what they print goes to a file of its own."""
    reason = reason_to_skip(setting, processor_flags())
    if reason is not None:
        return Outcome(setting=setting.name, note=reason)
    environment = os.environ | THREADS | setting.variables
    log = logs / (re.sub(r"\W+", "-", setting.name) + ".log")
    busy = [subprocess.Popen(BUSY) for _ in range(setting.beside)]
    begin = time.monotonic()
    try:
        with log.open("w") as file:
            code = _ended(command(setting, tests), env=environment, stdout=file, stderr=file)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    found = counts(log.read_text(errors="replace"))
    if code != 0 and not found["failed"]:
        found["failed"] = 1  # pytest itself has ended badly, or not at all
    note = "" if code == 0 else f"see {log}"
    if code is None:
        note = (
            f"no end in {LIMIT / 60:.0f} minutes, which other work on this machine may do; {note}"
        )
    seconds = time.monotonic() - begin
    return Outcome(setting=setting.name, seconds=seconds, note=note, **found)


def _ended(words: Sequence[str], **options: Any) -> int | None:
    """Run a command to its end and return its exit code; None if it was stopped at the limit."""
    process = subprocess.Popen(words, cwd=ROOT, start_new_session=True, **options)
    try:
        return process.wait(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:  # with the processes that its tests have started
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def line(outcome: Outcome) -> str:
    """Return one line of the table."""
    numbers = f"{outcome.passed:7} {outcome.failed:7} {outcome.skipped:8} {outcome.seconds:8.0f} s"
    return f"{outcome.setting:62} {numbers}  {outcome.note}".rstrip()


def main() -> int:
    """Run what the command line asks for; return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", help="tests to choose from; none takes all")
    parser.add_argument("--only", default="", help="settings whose name holds this")
    parser.add_argument("--combined", action="store_true", help="several libraries at once")
    parser.add_argument("--jobs", type=int, default=2, help="settings that run at once")
    options = parser.parse_args()
    settings = combined(SETTINGS) if options.combined else SETTINGS
    chosen = [setting for setting in settings if options.only in setting.name]
    logs = Path(tempfile.mkdtemp(prefix="elsewhere-"))
    head = f"{'setting':62} {'passed':>7} {'failed':>7} {'skipped':>8} {'time':>10}"
    outcomes = []
    # what has two busy processes of its own goes last and alone: beside a setting of usual priority
    # it would get next to nothing
    for jobs, part in (
        (options.jobs, [setting for setting in chosen if not setting.beside]),
        (1, [setting for setting in chosen if setting.beside]),
    ):
        with ThreadPoolExecutor(jobs) as pool:
            for outcome in pool.map(lambda setting: run(setting, options.tests, logs), part):
                print(line(outcome), flush=True)  # noqa: T201
                outcomes.append(outcome)
    print("\n".join(["", head, *map(line, outcomes)]))  # noqa: T201
    return int(not outcomes or not all(outcome.is_good for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
