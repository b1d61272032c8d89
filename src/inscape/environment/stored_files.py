"""Files on this machine: the cache, the data sets that were found, and records of experiments."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from inscape.data import catalogue, find
from inscape.lab.staleness import stale_records
from inscape.lab.store import Store

Fact = dict[str, object]

#: So many stale records are named; the rest is counted.
NAMED = 5

#: What is said of records that carry no hash.
UNHASHED = "without a hash: a changed number would not be noticed"


def folder(path: Path) -> Fact:
    """Return whether a folder is there, how much is in it and whether it can be written."""
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    return {
        "path": str(path),
        "exists": path.is_dir(),
        "bytes": size,
        "writable": nearest.is_dir() and os.access(nearest, os.W_OK),
    }


def datasets(data_dir: Path | None = None) -> Iterator[Fact]:
    """Yield each published data set: whether its files are here, whole, and where."""
    for name in sorted({entry.files for entry in catalogue.ENTRIES if entry.files}):
        files = find(name, data_dir)
        good = {file.part for file in files if file.state == "ok"}
        parts = {file.part for file in files}
        bad = any(file.state == "bad" for file in files)
        state = "bad" if bad else "ok" if good == parts else "partial" if good else "missing"
        yield {
            "dataset": name,
            "state": state,
            "files": f"{len(good)} of {len(parts)}",
            "where": sorted({str(file.path.parent) for file in files if file.path is not None}),
            "to_do": _TO_DO[state].format(name),
        }


def records(root: Path) -> tuple[list[Fact], list[str]]:
    """Return the records of each experiment and scale, and a sentence about each damaged one.

    Those made under other claims than today's are named: a claim is not changed after its run.
    Those without a hash are counted, and those whose content does not match it are damaged. The
    store is left as it is.
    """
    store = Store(root, mends=False)
    counts = Counter((experiment, scale) for experiment, scale, _ in store.places())
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    for record in stale_records(store):
        place = reasons.setdefault((record.experiment, record.scale), {})
        place.setdefault(f"stale: {record.reason}", []).append(record.key)
    for (experiment, scale, key), problem in store.damaged.items():
        place = reasons.setdefault((experiment, scale), {})
        place.setdefault(f"damaged: {problem}", []).append(key)
    for experiment, scale, key in sorted(store.unhashed):
        place = reasons.setdefault((experiment, scale), {})
        place.setdefault(UNHASHED, []).append(key)
    facts: list[Fact] = []
    for (experiment, scale), count in sorted(counts.items()):
        odd = reasons.get((experiment, scale), {})
        state = "; ".join(_odd(reason, keys) for reason, keys in odd.items()) or "ok"
        facts.append({"experiment": experiment, "scale": scale, "records": count, "state": state})
    return facts, list(store.take_notices())


def _odd(reason: str, keys: list[str]) -> str:
    """Say how many records have a fault, and which."""
    named = ", ".join(keys[:NAMED]) + (", ..." if len(keys) > NAMED else "")
    return f"{len(keys):,} {reason} ({named})"


_TO_DO = {
    "ok": "",
    "bad": "inscape data verify {}",
    "partial": "inscape data fetch {}",
    "missing": "inscape data fetch {}",
}
