"""Bars of ``inscape.look``: the budget holds on the networks that people have, for the whole page.

Each network is looked at in a process of its own: from the moment that model and data are open to
the written page, at most the budget, 10% of it and 5 s; nothing that applies is left out; memory
stays under a quarter of the machine's. The digits are looked at as by bare ``inscape look``, their
training included, for which 75 s are allowed with a budget of 60. Networks whose files are not
there are named and skipped.

    python benchmarks/look.py [--budget 60] [--only resnet9] [--busy 2] [--pages FOLDER]
    python benchmarks/look.py --only digits --keep runs.jsonl    # a line of JSON for each run
    python benchmarks/look.py --table runs.jsonl                 # these lines as a table
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bars import bar
from networks import SUBJECTS

#: The built-in example, and seconds that are allowed beside 1.1 budgets: for the page, and for the
#: example its training too.
DIGITS, WRITTEN, TRAINED = "digits", 5.0, 9.0


def looked(name: str, budget: float, pages: Path) -> dict[str, object]:
    """Look at one network and return what the bars and a note need to know."""
    import inscape

    if name == DIGITS:
        return digits(budget, pages)
    model, x, y = SUBJECTS[name]()
    data = x if y is None else (x, y)
    start = time.monotonic()
    look = inscape.look(model, data, budget=budget, quiet=True)
    measured = time.monotonic() - start
    look.save(pages / f"{name.replace(' ', '-')}.html")
    whole = time.monotonic() - start
    widths = {
        m.name: (m.summary.high - m.summary.low) / 2 / abs(m.summary.value)
        for m in look.measurements
        if m.summary is not None and m.summary.low is not None and m.summary.value
    }
    return {
        "measured": measured,
        "whole": whole,
        "peak": look.peak,
        "measurements": {m.name: [str(m.summary), m.work] for m in look.measurements},
        "missing": [f"{late.name} ({late.what})" for late in look.left_out],
        "not_applicable": {one.name: one.reason for one in look.not_applicable},
        "failed": {one.name: one.reason for one in look.failed},
        "widths": widths,
        "findings": [finding.text for finding in look.findings],
    }


def digits(budget: float, pages: Path) -> dict[str, object]:
    """Look at the built-in example by the command line, its training and the page included."""
    command = [sys.executable, "-m", "inscape", "look", "--json", "--budget", f"{budget:g}"]
    start = time.monotonic()
    done = subprocess.run(
        [*command, "--out", str(pages / "digits.html")], capture_output=True, text=True, check=True
    )
    whole = time.monotonic() - start
    told = json.loads(done.stdout)
    summaries = {one["name"]: one["summary"] for one in told["measurements"]}
    return {
        "measured": told["provenance"]["seconds"],
        "whole": whole,
        "peak": told["peak_memory"],
        "measurements": {
            one["name"]: [_words(one["summary"]), one["work"]] for one in told["measurements"]
        },
        "missing": [f"{late['name']} ({late['what']})" for late in told["left_out"]],
        "not_applicable": {one["name"]: one["reason"] for one in told["not_applicable"]},
        "failed": {one["name"]: one["reason"] for one in told["failed"]},
        "widths": {name: _width(**one) for name, one in summaries.items() if one and _bounded(one)},
        "findings": [finding["text"] for finding in told["findings"]],
    }


def _bounded(summary: dict[str, float | None]) -> bool:
    return summary["low"] is not None and bool(summary["value"])


def _words(summary: dict[str, object] | None) -> str:
    return "-" if summary is None else f"{summary['value']} ({summary['basis']})"


def _width(value: float, low: float, high: float, **_: object) -> float:
    return (high - low) / 2 / abs(value)


def report(name: str, told: dict, budget: float) -> bool:  # type: ignore[type-arg]
    from inscape.files import size_limits

    allowed = 1.1 * budget + (TRAINED if name == DIGITS else WRITTEN)
    print(f"{name}: {len(told['measurements'])} measures, {told['measured']:.1f} s measured")
    for measure, (summary, work) in told["measurements"].items():
        print(f"    {measure:24} {summary}; {work}")
    for kind in ("not_applicable", "failed"):
        for measure, reason in told[kind].items():
            print(f"    {measure:24} {kind}: {reason}")
    for late in told["missing"]:
        print(f"    {late} left out for time")
    for finding in told["findings"]:
        print(f"    * {finding}")
    lost = [late for late in told["missing"] if "(measure)" in late]
    return all(
        (
            bar(f"look, {name}, page written", told["whole"], at_most=allowed, unit="s"),
            bar(f"look, {name}, measures left out", len(lost), at_most=0, unit=""),
            bar(
                f"look, {name}, peak memory",
                told["peak"] / 1e6,
                at_most=size_limits.memory() / 4e6,
                unit="MB",
            ),
        )
    )


def table(path: Path) -> str:
    """Return kept runs as a Markdown table."""
    lines = [
        "| network | budget | beside | seconds, page written | peak MB | measures | left out |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for line in path.read_text().splitlines():
        run = json.loads(line)
        measures = [late for late in run["missing"] if "(measure)" in late]
        answered = len(run["measurements"])
        beside = f"{run['busy']} busy" if run["busy"] else "-"
        lines.append(
            f"| {run['network']} | {run['budget']:g} | {beside} | {run['whole']:.1f} | "
            f"{run['peak'] / 1e6:.0f} | {answered} of {answered + len(measures)} | "
            f"{', '.join(run['missing']) or 'nothing'} |"
        )
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--budget", type=float, default=60.0)
    options.add_argument("--only", action="append")
    options.add_argument("--busy", type=int, default=0, help="processes that keep cores busy")
    options.add_argument("--pages", type=Path, default=Path(tempfile.gettempdir()) / "look-pages")
    options.add_argument("--keep", type=Path, help="file that gets a line of JSON for each run")
    options.add_argument("--table", type=Path, help="kept runs to print as a table, and no more")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.table is not None:
        print(table(given.table))
        return
    given.pages.mkdir(parents=True, exist_ok=True)
    if given.child:
        print(json.dumps(looked(given.only[0], given.budget, given.pages)))
        return
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.busy)]
    try:
        for name in given.only or (DIGITS, *SUBJECTS):
            command = [sys.executable, __file__, "--child", "--only", name]
            command += ["--budget", str(given.budget), "--pages", str(given.pages)]
            child = subprocess.run(command, capture_output=True, text=True, check=False)
            if child.returncode:
                print(f"{name}: skipped: {child.stderr.strip().splitlines()[-1:]}")
                continue
            told = json.loads(child.stdout.splitlines()[-1])
            report(name, told, given.budget)
            if given.keep is not None:
                kept = {"network": name, "budget": given.budget, "busy": given.busy, **told}
                with given.keep.open("a") as file:
                    print(json.dumps(kept), file=file)
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    main()
