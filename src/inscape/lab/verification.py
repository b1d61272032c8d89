"""Rerun random cells of records and say how far the numbers are from those that were kept.

A record counts as repeated where every number is within ``TOLERANCE`` of the kept one, relative to
the largest of its array. Other processors and libraries add in another order: of 26 cells on
another machine 4 came out bit for bit and 22 within rounding or 1e-3.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from inscape.lab import catalogue
from inscape.lab.executors import CellTask
from inscape.lab.experiment import SCALES
from inscape.lab.planning import recorded
from inscape.lab.store import Record, Store

#: Relative difference within which a number counts as repeated, and as rounding.
TOLERANCE, ROUNDING = 1e-3, 1e-9

Repetition = Literal["bit for bit", "to rounding", "within 1e-3", "not repeated", "failed"]


@dataclass(frozen=True, kw_only=True)
class CellCheck:
    """A record beside what its cell gives today.

    Attributes:
        record: The record.
        repetition: How near today's numbers are.
        difference: The largest relative difference of a number.
        where: The value that differs most.
        problem: Why the cell failed, if it did.
    """

    record: Record
    repetition: Repetition
    difference: float = 0.0
    where: str = ""
    problem: str = ""


def verify(ids: Sequence[str], store: Store, count: int, *, seed: int = 0) -> Iterator[CellCheck]:
    """Rerun so many random cells of experiments and yield how near they come.

    Args:
        ids: Experiments whose records are looked at.
        store: Where the records are; nothing is written there.
        count: How many cells are rerun.
        seed: Seed of the choice.
    """
    sources = dict.fromkeys(catalogue.source(id) for id in ids)
    records = [
        (source, record)
        for source in sources
        for scale in SCALES
        for record in recorded(source, scale=scale, store=store)
    ]
    order = np.random.default_rng(seed).permutation(len(records))[:count]
    for index in order.tolist():
        yield rerun(*records[index])


def rerun(source: str, record: Record) -> CellCheck:
    """Run the cell of a record again, in a folder of its own, and compare the numbers."""
    from inscape.lab.worker import work

    runs = catalogue.experiment(source)
    with tempfile.TemporaryDirectory() as folder:
        task = CellTask(
            experiment=source, name=record.experiment, scale=record.scale,
            cells=(dict(record.settings),), keys=(record.key,), data=(record.data,),
            claims=record.claims, root=folder, threads=runs.threads, seconds=0.0,
            executor="serial",
        )  # fmt: skip
        done = work(task)
        again = Store(folder).read(record.experiment, record.scale, record.key)
    if again is None:
        problem = "; ".join(failure.error for failure in done.failures)
        return CellCheck(record=record, repetition="failed", problem=problem)
    return compared(record, again.values)


def compared(record: Record, values: Mapping[str, Any]) -> CellCheck:
    """Return how near values are to those of a record."""
    check = CellCheck(record=record, repetition="bit for bit")
    for name, before, now in _pairs("", dict(record.values), dict(values)):
        off = relative_difference(before, now)
        if off > check.difference or (off > 0 and not check.where):
            check = replace(check, difference=off, where=name)
    return replace(check, repetition=repetition(check.difference))


def repetition(difference: float) -> Repetition:
    """Return what a relative difference counts as."""
    if difference == 0:
        return "bit for bit"
    if difference <= ROUNDING:
        return "to rounding"
    return "within 1e-3" if difference <= TOLERANCE else "not repeated"


def relative_difference(before: Any, now: Any) -> float:
    """Return the largest difference of two numbers or arrays, over the largest of the first.

    Infinite where shapes, words or places of NaN differ.
    """
    try:
        first, second = (np.asarray(part, dtype=float) for part in (before, now))
    except (TypeError, ValueError):
        return 0.0 if before == now else np.inf
    if first.shape != second.shape or (np.isfinite(first) != np.isfinite(second)).any():
        return np.inf
    finite = np.isfinite(first)
    off = np.abs(first - second)[finite].max(initial=0.0)
    return float(off / max(np.abs(first)[finite].max(initial=0.0), np.finfo(float).tiny))


def _pairs(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield every leaf of two nested values with its name; what one lacks is None."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}, key=str):
            yield from _pairs(f"{name}/{key}".lstrip("/"), before.get(key), now.get(key))
    else:
        yield name, before, now
