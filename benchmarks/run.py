"""Run benchmarks and write the bars that they report to ``benchmarks/RESULTS.md``.

    make bench                                       # on a quiet machine, under 15 minutes
    python benchmarks/run.py ensemble startup        # only these; others keep their rows
    python benchmarks/run.py --look                  # inscape look on real networks as well
    python benchmarks/run.py --through "nice -n -5"  # each benchmark by that command

Each benchmark runs in a process of its own, one after the other, and may take ten minutes of
processor time. The table keeps the rows of benchmarks that were not run, and says when and on what
each was run last.
The exit code is 1 if a bar was missed or a benchmark failed.
"""

import argparse
import os
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bars import PREFIX
from machine import conditions

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
#: The benchmark that takes longer than all others.
LONG = "look"
LIMIT = 600.0
#: Heads of the two tables of RESULTS.md: the bars, and the run of each benchmark.
BARS = ("benchmark", "quantity", "value", "bar", "verdict")
RUNS = ("benchmark", "date", "commit", "processor", "seconds", "load", "machine")
OPENING = """# Benchmarks

Written by `make bench`. A ratio is the time of the peer divided by ours (above 1: ours is faster)
unless its name says otherwise; both run in turn in one process, on as many threads, and medians are
compared. Each run is listed with its seconds of processor time and by the clock, and with the load,
the mean of a minute before and after; a benchmark by itself makes about 1.
"""

Row = tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The bars that a benchmark reported, as rows of a table, and the conditions of its run."""

    name: str
    bars: tuple[Row, ...]
    run: Row
    failed: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [name for name in benchmarks() if name != LONG]
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all, if none is given")
    parser.add_argument("--look", action="store_true", help="inscape look on real networks, too")
    parser.add_argument("--through", default="", help="command that runs each benchmark")
    options = parser.parse_args()
    names = options.names or known + [LONG] * options.look
    if unknown := sorted(set(names) - {*known, LONG}):
        parser.error(f"names must be of {', '.join(known)}, found {', '.join(unknown)}")
    missed = False
    for name in names:
        report = measured(name, shlex.split(options.through))
        before = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
        RESULTS.write_text(merged(before, report, known), encoding="utf-8")
        missed |= report.failed or any(row[-1] == "MISSED" for row in report.bars)
    return int(missed)


def benchmarks() -> list[str]:
    """Return the files beside this one that can be run; the others help them."""
    files = sorted(FOLDER.glob("[a-z]*.py"))
    return [path.stem for path in files if path.stem != "run" and "__main__" in path.read_text()]


def measured(name: str, through: list[str]) -> Report:
    """Run a benchmark, passing on what it prints, and collect its bars."""
    print(f"== {name}", flush=True)
    begin, load, before = time.perf_counter(), os.getloadavg()[0], processor_seconds()
    command = [*through, sys.executable, "-u", str(FOLDER / f"{name}.py")]
    bars: list[Row] = []
    limit = partial(limit_processor, LIMIT if name != LONG else 6 * LIMIT)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=limit
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith(PREFIX):
                bars.append((name, *cells(line)))
    seconds = time.perf_counter() - begin
    failure = "" if bars else "reported no bar"
    if process.returncode:
        failure = f"ended with exit code {process.returncode} after {seconds:.0f} s"
    if failure:
        bars.append((name, failure, "-", "-", "FAILED"))
    facts = conditions(load)
    spent = f"{processor_seconds() - before:.0f}"
    times = (spent, f"{seconds:.0f}", facts["load"])
    run = (name, facts["date"], facts["commit"], *times, facts["machine"])
    return Report(name, tuple(bars), run, bool(failure))


def processor_seconds() -> float:
    """Return the processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def limit_processor(seconds: float) -> None:
    """Let this process end after so much processor time; on a busy machine clocks say little."""
    resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds) + 5))


def cells(line: str) -> Row:
    """Return the parts of a line that ``bars.bar`` printed: name, value, bar, verdict."""
    return tuple(part.strip() for part in line.removeprefix(PREFIX).split("|"))


def merged(text: str, report: Report, known: list[str]) -> str:
    """Return the text of RESULTS.md with the rows of one benchmark in place of its earlier ones."""
    bars = [*(row for row in rows(text, BARS) if row[0] != report.name), *report.bars]
    runs = [*(row for row in rows(text, RUNS) if row[0] != report.name), report.run]
    bars = sorted((row for row in bars if row[0] in (*known, LONG)), key=lambda row: row[0])
    runs = sorted((row for row in runs if row[0] in (*known, LONG)), key=lambda row: row[0])
    verdicts = [row[-1] for row in bars]
    minutes = sum(float(row[3]) for row in runs if row[0] != LONG) / 60
    unrun = sorted({*known} - {row[0] for row in runs})
    facts = [
        f"- bars: {verdicts.count('met')} met, {verdicts.count('MISSED')} missed",
        f"- time: {minutes:.1f} minutes of processor time, the benchmarks below added up",
        f"- not run yet: {', '.join(unrun) or 'none'}",
    ]
    parts = [OPENING, *facts, "", *table(BARS, bars), "", *table(RUNS, runs), ""]
    return "\n".join(parts)


def rows(text: str, heads: Row) -> list[Row]:
    """Return the rows of the table in a text that has these heads."""
    body: list[Row] = []
    inside = False
    for line in text.splitlines():
        row = tuple(part.strip() for part in line.strip().strip("|").split("|"))
        if row == heads:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("| ---"):
            body.append(row)
    return body


def table(heads: Row, body: list[Row]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (heads, ("---",) * len(heads), *body)]


if __name__ == "__main__":
    sys.exit(main())
