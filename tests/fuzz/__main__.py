"""Many calls from the command line: ``python -m fuzz --calls 50000``; ends in a table.

One call again: ``python -m fuzz --call NUMBER --instrument NAME``. Failures are written to
``--log`` as they come, one JSON line each; calls that are in the log of a run that was stopped are
not made again, or with ``--afresh`` only if other code was judged: each line holds its commit.
``--even`` calls all instruments equally often; otherwise those that take long are called less.
"""

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch

from fuzz.calls import NAMES, call
from fuzz.verdicts import Verdict, judge
from inscape.piecewise.graph import cache as graphs

OUTCOMES = ("answered", "unchecked", "not applicable", "refused", "wrong", "foreign")
BAD = ("wrong", "foreign")


def main() -> int:
    """Run the fuzzer; the exit code is 1 if anything was wrong or foreign."""
    options = _options()
    torch.set_num_threads(1)
    graphs.KEPT = 1000  # some 300 networks come again and again; each use compares them anyway
    if options.call is not None:
        made = call(options.call, options.instrument)
        verdict = judge(made)
        sys.stdout.write(f"{made}\n{verdict.outcome}: {verdict.text}\n")
        return int(verdict.outcome in BAD)
    table, kinds = _run(options)
    sys.stdout.write(report(table, kinds) + "\n")
    return int(any(counts[outcome] for counts in table.values() for outcome in BAD))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="other seeds, other calls")
    parser.add_argument("--instrument", choices=NAMES, help="only this one")
    parser.add_argument("--call", type=int, help="one call, by its number")
    parser.add_argument("--kind", action="append", default=[], help="only calls of this kind")
    parser.add_argument("--even", action="store_true", help="all instruments equally often")
    parser.add_argument("--afresh", action="store_true", help="repeat what older code answered")
    parser.add_argument("--log", type=Path, help="file of all outcomes; a run goes on from it")
    return parser.parse_args()


def _run(options: argparse.Namespace) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Make all calls, and count outcomes for each instrument and failures for each kind."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: Counter[str] = Counter()
    done, wanted = _done(options.log, afresh=options.afresh), set(options.kind)
    cut = "\n" if options.log and _is_cut(options.log) else ""
    with options.log.open("a") if options.log else Path("/dev/null").open("w") as log:
        for number in range(options.seed * 10**7, options.seed * 10**7 + options.calls):
            name = NAMES[number % len(NAMES)] if options.even else options.instrument
            if wanted and not wanted <= set(call(number, name).kinds):
                continue
            row = done.get(number) or _row(number, name)
            if number not in done:
                log.write(cut + json.dumps(row) + "\n")
                cut = ""
                log.flush()
                _show(row)
            table[row["instrument"]][row["outcome"]] += 1
            if row["outcome"] in BAD:
                kinds.update(row["kinds"] or ["plain"])
    return table, kinds


def _done(log: Path | None, *, afresh: bool) -> dict[int, dict]:
    """Return the last outcome of each call in a log; a line that was cut off is passed over."""
    if log is None or not log.exists():
        return {}
    lines = log.read_text().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines if line.endswith("}\n")]
    return {row["number"]: row for row in rows if not afresh or row.get("commit") == commit()}


def _is_cut(log: Path) -> bool:
    return log.exists() and log.read_text()[-1:] not in ("", "\n")


@cache
def commit() -> str:
    """Return the commit that is judged, with a plus if its sources were changed; else nothing."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _row(number: int, instrument: str | None) -> dict:
    begin = time.process_time()
    made = call(number, instrument)
    try:
        verdict = judge(made)
    except Exception:  # the fuzzer itself
        verdict = Verdict(
            "wrong", "oracle failed: " + traceback.format_exc(limit=-3).replace("\n", " | ")
        )
    return {
        "number": number,
        "instrument": made.instrument,
        "kinds": list(made.kinds),
        "outcome": verdict.outcome,
        "text": verdict.text,
        "commit": commit(),
        "seconds": round(time.process_time() - begin, 4),
    }


def _show(row: dict) -> None:
    if row["outcome"] in BAD:
        sys.stdout.write(
            f"{row['outcome']}: {row['instrument']} {row['number']} {row['kinds']}: {row['text']}\n"
        )
        sys.stdout.flush()


def report(table: dict[str, Counter[str]], kinds: Counter[str]) -> str:
    """Return the table of outcomes, and that of kinds of failures."""
    return "\n".join(_lines(table, kinds))


def _lines(table: dict[str, Counter[str]], kinds: Counter[str]) -> Iterator[str]:
    yield f"{'instrument':24}{'calls':>8}" + "".join(f"{name:>16}" for name in OUTCOMES)
    total: Counter[str] = Counter()
    for name in sorted(table):
        counts = table[name]
        total += counts
        yield f"{name:24}{sum(counts.values()):8}" + "".join(f"{counts[o]:16}" for o in OUTCOMES)
    yield f"{'all':24}{sum(total.values()):8}" + "".join(f"{total[o]:16}" for o in OUTCOMES)
    share = (total["answered"] + total["unchecked"]) / max(1, sum(total.values()))
    yield f"answered: {share:.1%} of all calls"
    for kind, count in kinds.most_common():
        yield f"failures with {kind}: {count}"


if __name__ == "__main__":
    sys.exit(main())
