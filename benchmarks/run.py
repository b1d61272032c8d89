"""Run all benchmarks and write the bars that they report to ``benchmarks/RESULTS.md``.

    make bench                                       # on a quiet machine, under 15 minutes
    python benchmarks/run.py ensemble startup        # only these; RESULTS.md is left alone
    python benchmarks/run.py --look                  # inscape look on real networks as well
    python benchmarks/run.py --through "nice -n -5"  # each benchmark by that command

Each benchmark runs in a process of its own, one after the other, and may take ten minutes. The exit
code is 1 if a bar was missed or a benchmark failed.
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from threading import Timer

from bars import PREFIX

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
#: The benchmark that takes longer than all others.
LONG = "look"
LIMIT = 600.0


@dataclass(frozen=True)
class Report:
    """The bars that a benchmark reported, as cells, and whether it came to its end."""

    name: str
    bars: tuple[tuple[str, ...], ...]
    seconds: float
    failure: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [name for name in benchmarks() if name != LONG]
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all, if none is given")
    parser.add_argument("--look", action="store_true", help="inscape look on real networks, too")
    parser.add_argument("--through", default="", help="command that runs each benchmark")
    options = parser.parse_args()
    names = options.names or known + [LONG] * options.look
    before = os.getloadavg()[0]
    reports = [measured(name, shlex.split(options.through)) for name in names]
    if not options.names:
        RESULTS.write_text(page(reports, conditions(before, options.through)), encoding="utf-8")
    print("\n".join(table(reports)))
    missed = [cells[0] for report in reports for cells in report.bars if cells[3] == "MISSED"]
    failed = [f"{report.name}: {report.failure}" for report in reports if report.failure]
    return 1 if missed or failed else 0


def benchmarks() -> list[str]:
    """Return the files beside this one that can be run; the others help them."""
    files = sorted(FOLDER.glob("[a-z]*.py"))
    return [path.stem for path in files if path.stem != "run" and "__main__" in path.read_text()]


def measured(name: str, through: list[str]) -> Report:
    """Run a benchmark, passing on what it prints, and collect its bars."""
    print(f"== {name}", flush=True)
    begin = time.perf_counter()
    command = [*through, sys.executable, "-u", str(FOLDER / f"{name}.py")]
    bars, failure = [], ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        limit = Timer(LIMIT if name != LONG else 6 * LIMIT, process.kill)
        limit.start()
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith(PREFIX):
                bars.append(cells(line))
        limit.cancel()
    seconds = time.perf_counter() - begin
    if process.returncode:
        failure = f"ended with exit code {process.returncode} after {seconds:.0f} s"
    elif not bars:
        failure = "reported no bar"
    return Report(name, tuple(bars), seconds, failure)


def cells(line: str) -> tuple[str, ...]:
    """Return the parts of a line that ``bars.bar`` printed: name, value, bar, verdict."""
    return tuple(part.strip() for part in line.removeprefix(PREFIX).split("|"))


def conditions(before: float, through: str) -> dict[str, str]:
    """Return what the figures were taken on."""
    import torch

    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=FOLDER, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit.stdout.strip() or "unknown",
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": f"{platform.python_version()}, PyTorch {torch.__version__}, "
        f"NumPy {version('numpy')}",
        "command": f"each benchmark {f'by `{through}`' if through else 'as it is'}, one at a time",
        "load": f"{before:.1f} before, {os.getloadavg()[0]:.1f} after (mean of a minute; the "
        "benchmarks themselves make about 1)",
    }


def processor() -> str:
    """Return the name of the processor as Linux tells it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def page(reports: list[Report], told: dict[str, str]) -> str:
    """Return the text of RESULTS.md."""
    bars = [cells for report in reports for cells in report.bars]
    verdicts = [cells[3] for cells in bars]
    opening = (
        "# Benchmarks\n\nWritten by `make bench`. A ratio is the time of the peer divided by ours "
        "(above 1: ours is faster) unless its name says otherwise; both run in turn in one "
        "process, on as many threads, and medians are compared.\n"
    )
    facts = [f"- {key}: {value}" for key, value in told.items()]
    facts.append(f"- time: {sum(report.seconds for report in reports) / 60:.1f} minutes in all")
    facts.append(f"- bars: {verdicts.count('met')} met, {verdicts.count('MISSED')} missed")
    return "\n".join([opening, *facts, "", *table(reports), ""])


def table(reports: list[Report]) -> list[str]:
    """Return the lines of a table in Markdown, one row for each bar."""
    rows = ["| benchmark | what | value | bar | |", "| --- | --- | --- | --- | --- |"]
    for report in reports:
        rows += [f"| {report.name} | {' | '.join(cells)} |" for cells in report.bars]
        if report.failure:
            rows.append(f"| {report.name} | {report.failure} | - | - | FAILED |")
    return rows


if __name__ == "__main__":
    sys.exit(main())
