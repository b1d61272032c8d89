"""Prove that rewritten code moves no number: rerun a cell of every experiment, keep the outcome.

``python -m inscape.lab.rewrites`` writes ``results/rewrites.json``: for each experiment the hash of
the code that made its records, that of today's, and the cheapest of those cells beside its record.
What is proven already is left as it is, and so is a cell that takes too long. Older records do not
say what code made them: their row says ``not recorded``, and from then on they count as made by the
code that repeated them.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from inscape.files.atomic import write
from inscape.lab import catalogue
from inscape.lab.cell_code import cell_code_hash
from inscape.lab.experiment import Experiment
from inscape.lab.provenance import NOT_RECORDED, processor
from inscape.lab.staleness import REWRITES, made_by, other_code, rewrites
from inscape.lab.store import Record, Store
from inscape.lab.verification import TOLERANCE, rerun

Row = dict[str, Any]

#: Seconds that a cell may have taken to be rerun.
LONGEST = 60.0


def unproven(store: Store) -> Iterator[tuple[str, str, list[Record]]]:
    """Yield each experiment with a hash that made records of it and is not led to today's.

    Args:
        store: Where the records are.
    """
    known, proven = {listing.id for listing in catalogue.experiments()}, rewrites(store)
    records: dict[str, list[Record]] = {}
    for name, scale, key in store.places():
        if name in known and (record := store.read(name, scale, key)) is not None:
            records.setdefault(name, []).append(record)
    for name, own in records.items():
        today = cell_code_hash(catalogue.experiment(name))
        for code in sorted({made_by(record) for record in own}):
            group = [record for record in own if made_by(record) == code]
            first_proof = code == NOT_RECORDED and name not in proven
            if first_proof or other_code(group[0], today, proven):
                yield name, code, group


def proof(name: str, code: str, records: list[Record], longest: float = LONGEST) -> Row | None:
    """Rerun the cheapest of some records; None if that takes too long.

    Args:
        name: Their experiment.
        code: The hash of the code that made them.
        records: The records.
        longest: Seconds that the cell may have taken.
    """
    experiment = catalogue.experiment(name)
    cost, place = min((_cost(experiment, r), k) for k, r in enumerate(records))
    if cost > longest:
        return None
    cheapest = records[place]
    check = rerun(name, cheapest)
    cell = {
        "scale": cheapest.scale,
        "key": cheapest.key,
        "repetition": check.repetition,
        "difference": check.difference if check.difference < float("inf") else "inf",
        "where": check.where,
    }
    return {
        "experiment": name, "before": code, "after": cell_code_hash(experiment),
        "processor": processor(), "cells": [cell],
    }  # fmt: skip


def repeated(row: Mapping[str, Any]) -> bool:
    """Tell whether every cell of a row gave its record again, within the tolerance."""
    return all(
        cell["repetition"] != "failed" and float(cell["difference"]) <= TOLERANCE
        for cell in row["cells"]
    )


def write_proofs(store: Store, longest: float = LONGEST) -> tuple[list[Row], list[str]]:
    """Prove what is not yet, keep each proof as it is made, and return all others.

    Args:
        store: Where the records are, and the proofs beside them.
        longest: Seconds that a cell may have taken.

    Returns:
        The rows of cells that did not repeat their record, and experiments whose cells take too
        long.
    """
    path = store.root / REWRITES
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    failed: list[Row] = []
    skipped: list[str] = []
    for name, code, records in list(unproven(store)):
        row = proof(name, code, records, longest)
        if row is None:
            skipped.append(name)
        elif not repeated(row):
            failed.append(row)
        else:
            rows.append(row)
            rows.sort(key=lambda row: (row["experiment"], row["before"]))
            write(path, (json.dumps(rows, indent=1) + "\n").encode())
    return failed, skipped


def _cost(experiment: Experiment, record: Record) -> float:
    """Return the seconds of a cell by itself: of one that shared a call, as they are guessed."""
    spent = float(record.provenance.get("seconds", 0.0))
    return max(spent, experiment.seconds(record.settings)) if experiment.together else spent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=float, default=LONGEST, metavar="SECONDS")
    not_repeated, too_long = write_proofs(
        Store("results", mends=False), parser.parse_args().longest
    )
    if not_repeated or too_long:
        raise SystemExit(
            f"not repeated: {json.dumps(not_repeated)}; too long: {', '.join(too_long) or 'none'}"
        )
