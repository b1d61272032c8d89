"""Bars of ``inscape.look``: the budget holds on the networks that people have, for the whole page.

Each network is looked at in a process of its own: from the moment that model and data are open to
the written page, at most the budget, 10% of it and 5 s; nothing that applies is left out; memory
stays under a quarter of the machine's. Networks whose files are not there are named and skipped.

    python benchmarks/look.py [--budget 60] [--only resnet9] [--busy 2] [--pages FOLDER]
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


def looked(name: str, budget: float, pages: Path) -> dict[str, object]:
    """Look at one network and return what the bars and a note need to know."""
    import inscape
    from inscape._core import sizes

    model, x, y = SUBJECTS[name]()
    data = x if y is None else (x, y)
    start = time.monotonic()
    look = inscape.look(model, data, budget=budget, quiet=True)
    measured = time.monotonic() - start
    look.save(pages / f"{name.replace(' ', '-')}.html")
    whole = time.monotonic() - start
    widths = {
        m.name: (m.summary.high - m.summary.low) / 2 / abs(m.summary.value)
        for m in look.measures
        if m.summary is not None and m.summary.low is not None and m.summary.value
    }
    return {
        "measured": measured,
        "whole": whole,
        "peak": look.peak,
        "allowed": sizes.memory() // 4,
        "measures": {m.name: [str(m.summary), m.work] for m in look.measures},
        "missing": [f"{late.name} ({late.what})" for late in look.left_out],
        "not_applicable": {one.name: one.reason for one in look.not_applicable},
        "failed": {one.name: one.reason for one in look.failed},
        "widths": widths,
        "findings": [finding.text for finding in look.findings],
    }


def report(name: str, told: dict, budget: float) -> bool:  # type: ignore[type-arg]
    allowed = 1.1 * budget + 5
    print(f"{name}: {len(told['measures'])} measures, {told['measured']:.1f} s measured")
    for measure, (summary, work) in told["measures"].items():
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
                at_most=told["allowed"] / 1e6,
                unit="MB",
            ),
        )
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--budget", type=float, default=60.0)
    options.add_argument("--only", action="append")
    options.add_argument("--busy", type=int, default=0, help="processes that keep cores busy")
    options.add_argument("--pages", type=Path, default=Path(tempfile.gettempdir()) / "look-pages")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    given.pages.mkdir(parents=True, exist_ok=True)
    if given.child:
        print(json.dumps(looked(given.only[0], given.budget, given.pages)))
        return
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.busy)]
    try:
        for name in given.only or SUBJECTS:
            command = [sys.executable, __file__, "--child", "--only", name]
            command += ["--budget", str(given.budget), "--pages", str(given.pages)]
            child = subprocess.run(command, capture_output=True, text=True, check=False)
            if child.returncode:
                print(f"{name}: skipped: {child.stderr.strip().splitlines()[-1:]}")
                continue
            report(name, json.loads(child.stdout.splitlines()[-1]), given.budget)
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    main()
