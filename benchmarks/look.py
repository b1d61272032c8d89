"""Bars of ``inscape.look``: the budget holds on the networks that people have, for the whole page.

Each network is looked at in a process of its own: from the moment that model and data are open to
the written page, at most the budget, 10% of it and 5 s; nothing that applies is left out; memory
stays under a quarter of the machine's. The digits are looked at as by bare ``inscape look``, their
training included, for which 75 s are allowed with a budget of 60. Kernels that are not on disk yet
are compiled before: that is done once on a machine. Networks whose files are not there are named
and skipped.

    python benchmarks/look.py [--budget 60] [--only resnet9] [--busy 2] [--pages FOLDER]
    python benchmarks/look.py --only digits --keep runs.jsonl    # a line of JSON for each run
    python benchmarks/look.py --write runs.jsonl                 # these lines as RESULTS-look.md
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from bars import bar
from look_results import page
from machine import conditions
from networks import SUBJECTS

#: The built-in example, and seconds that are allowed beside 1.1 budgets: for the page, and for the
#: example its training too.
DIGITS, WRITTEN, TRAINED = "digits", 5.0, 9.0
RESULTS = Path(__file__).parent / "RESULTS-look.md"

Run = dict[str, Any]


def network_run(name: str, budget: float, pages: Path, *, processor: bool = False) -> Run:
    """Look at one network and return what the bars and RESULTS-look.md need to know."""
    import inscape
    from inscape.report.look.warmup import compile_ahead
    from inscape.runtime.deadline import clock

    compile_ahead(["plane_regions"])
    if name == DIGITS:
        return digits_on_processor(budget, pages) if processor else digits_run(budget, pages)
    model, x, y = SUBJECTS[name]()
    data = x if y is None else (x, y)
    now = time.process_time if processor else time.monotonic
    with clock(now):
        start = now()
        look = inscape.look(
            model, data, budget=budget, quiet=True, threads=1 if processor else None
        )
        look.save(pages / f"{name.replace(' ', '-')}-{budget:g}.html")
        return run_of(look.to_dict(), now() - start)


def digits_run(budget: float, pages: Path) -> Run:
    """Look at the built-in example by the command line, its training and the page included."""
    command = [sys.executable, "-m", "inscape", "look", "--json", "--budget", f"{budget:g}"]
    start = time.monotonic()
    done = subprocess.run(
        [*command, "--out", str(pages / f"digits-{budget:g}.html")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run_of(json.loads(done.stdout), time.monotonic() - start)


def digits_on_processor(budget: float, pages: Path) -> Run:
    """Look at the built-in example as above, by the processor time of this process since it began.

    What it has imported for other networks counts as well.
    """
    from inscape.cli import app
    from inscape.runtime.deadline import clock

    words = ["look", "--json", "--quiet", "--threads", "1", "--budget", f"{budget:g}"]
    with clock(time.process_time), redirect_stdout(StringIO()) as printed:
        app([*words, "--out", str(pages / f"digits-{budget:g}.html")], standalone_mode=False)
    return run_of(json.loads(printed.getvalue()), time.process_time())


def run_of(look: Run, whole: float) -> Run:
    """Return the facts of a look, given as its JSON, that took so many seconds with its page."""
    late = look["left_out"]
    return {
        "measured": look["provenance"]["seconds"],
        "whole": whole,
        "peak": look["peak_memory"],
        "measurements": {m["name"]: [m["summary"], m["work"]] for m in look["measurements"]},
        "left_out": [entry["name"] for entry in late if entry["part"] == "instrument"],
        "no_baselines": [entry["name"] for entry in late if entry["part"] == "references"],
        "not_applicable": _reasons(look["not_applicable"]),
        "failed": _reasons(look["failed"]),
        "findings": [finding["text"] for finding in look["findings"]],
    }


def _reasons(skipped: Iterable[dict[str, str]]) -> dict[str, str]:
    return {entry["name"]: entry["reason"] for entry in skipped}


def report(name: str, run: Run, budget: float) -> bool:
    """Print a run and its bars; return whether all bars are met."""
    from inscape.files import size_limits

    allowed = 1.1 * budget + (TRAINED if name == DIGITS else WRITTEN)
    answered = len(run["measurements"])
    print(f"{name}: {answered} instruments answered, {run['measured']:.1f} s measured")
    for instrument, (summary, work) in run["measurements"].items():
        print(f"    {instrument:24} {summary and summary['value']}; {work}")
    for kind in ("not_applicable", "failed"):
        for instrument, reason in run[kind].items():
            print(f"    {instrument:24} {kind}: {reason}")
    for instrument in run["no_baselines"]:
        print(f"    {instrument:24} has no baselines, for time")
    for finding in run["findings"]:
        print(f"    * {finding}")
    memory = size_limits.memory() / 4e6
    met = [
        bar(f"look, {name}, page written", run["whole"], at_most=allowed, unit="s"),
        bar(f"look, {name}, left out for time", len(run["left_out"]), at_most=0, unit=""),
        bar(f"look, {name}, peak memory", run["peak"] / 1e6, at_most=memory, unit="MB"),
    ]
    return all(met)


def runs_of(names: Iterable[str], options: argparse.Namespace) -> None:
    """Look at networks, one after the other, and report and keep each run."""
    for name in names:
        before = os.getloadavg()[0]
        command = [sys.executable, __file__, "--child", "--only", name]
        command += ["--budget", str(options.budget), "--pages", str(options.pages)]
        command += ["--processor"] * options.processor
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        if child.returncode:
            print(f"{name}: skipped: {child.stderr.strip().splitlines()[-1:]}")
            continue
        run = json.loads(child.stdout.splitlines()[-1])
        report(name, run, options.budget)
        if options.keep is not None:
            facts = {"network": name, "budget": options.budget, "busy": options.busy}
            facts["clock"] = "processor" if options.processor else "wall"
            with options.keep.open("a") as file:
                print(json.dumps({**facts, **conditions(before), **run}), file=file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--only", action="append", help=f"of {DIGITS}, {', '.join(SUBJECTS)}")
    parser.add_argument("--busy", type=int, default=0, help="processes that keep cores busy")
    parser.add_argument(
        "--processor",
        action="store_true",
        help="count processor time, on one thread: what a look does on a core of its own",
    )
    parser.add_argument("--pages", type=Path, default=Path(tempfile.gettempdir()) / "look-pages")
    parser.add_argument("--keep", type=Path, help="file that gets a line of JSON for each run")
    parser.add_argument("--write", type=Path, help="kept runs to write as RESULTS-look.md")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        runs = [json.loads(line) for line in options.write.read_text().splitlines()]
        RESULTS.write_text(page(runs), encoding="utf-8")
        return
    options.pages.mkdir(parents=True, exist_ok=True)
    if options.child:
        name, processor = options.only[0], options.processor
        run = network_run(name, options.budget, options.pages, processor=processor)
        print(json.dumps(run))
        return
    loop = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(loop) for _ in range(options.busy)]
    try:
        runs_of(options.only or (DIGITS, *SUBJECTS), options)
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    main()
