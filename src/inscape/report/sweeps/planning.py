"""The plan of a sweep: its cells, which of them are missing, and what they will cost."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from inscape._core import Instrument
from inscape.files.atomic import write
from inscape.lab.encoding import canonical, cell_key
from inscape.lab.experiment import ScaleName
from inscape.lab.planning import RunPlan
from inscape.lab.store import Record, Store
from inscape.loaders import OpenedData
from inscape.report.look.subject import Subject
from inscape.report.sweeps.cells import EXPERIMENT, PERFORMANCE, open_cell, read_data
from inscape.report.sweeps.models import ListedModel

#: Under which a sweep is known to the lab, and its records to the store.
ID, NAME = "sweep", "sweep/cells"
SCALE: ScaleName = "laptop"
#: Examples of each split from which a time budget chooses, beside all.
ROWS = (5000, 2000, 1000, 500, 200, 100, 50)
#: What a time budget has chosen, beside the records: a sweep that is resumed chooses no more.
CHOICE = "choice.json"
#: Seconds that opening a model and rating its performance are taken to cost.
OPENING = 0.5
#: Bytes of a record, where there is none yet to go by.
BYTES = 20_000


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepPlan:
    """What a sweep will do.

    Attributes:
        entries: The models.
        chosen: The instruments, by name.
        left_out: Instruments that the time budget has no room for, with their seconds per model.
        data: The data as they were opened here.
        limit: Examples of each split that are kept; None keeps all.
        forecast: Seconds per model that each instrument is expected to take.
        notes: What there is to say beforehand.
        seed: Seed of every draw.
        plan: The cells for the runner of the lab.
    """

    entries: tuple[ListedModel, ...]
    chosen: Mapping[str, Instrument]
    left_out: Mapping[str, float]
    data: OpenedData
    limit: int | None
    forecast: Mapping[str, float]
    notes: tuple[str, ...]
    seed: int
    plan: RunPlan

    @cached_property
    def keys(self) -> dict[tuple[str, str], str]:
        """Return the key of each cell, by the name of its model and its instrument."""
        names = [entry.name for entry in self.entries for _ in (PERFORMANCE, *self.chosen)]
        cells = zip(names, self.plan.cells, self.plan.keys, strict=True)
        return {(name, cell["instrument"]): key for name, cell, key in cells}


def plan_sweep(
    entries: Sequence[ListedModel],
    chosen: Mapping[str, Instrument],
    data: Mapping[str, Any],
    *,
    seed: int,
    budget: float | None,
    store: Store,
    fresh: bool = False,
    keeps: bool = True,
) -> SweepPlan:
    """Open the data and the first model that can be, and lay out what is to be measured.

    Args:
        entries: The models.
        chosen: The instruments, by name.
        data: Settings that open the data.
        seed: Seed of every draw.
        budget: Seconds per model that measuring may take; it chooses the number of examples, the
            same for every model, and leaves out what does not fit at all.
        store: Where the records are.
        fresh: Whether to measure again what is there.
        keeps: Whether to write down what the budget chooses, for a sweep that is resumed.
    """
    opened = read_data(data)
    data = {**data, "hash": opened.hash} if "spec" in data else dict(data)
    subject, notes = _first(entries, data, seed)
    measured = _measured_seconds(store)
    limit, left_out = data["limit"], dict[str, float]()
    if budget is not None and subject is not None:
        choice = _choice(store, [data, list(chosen), seed, budget])
        if choice is None:
            choice = _fitting(subject, chosen, budget, limit)
            if keeps:
                _keep_choice(store, [data, list(chosen), seed, budget], choice)
        limit, left_out = choice
        chosen = {name: instrument for name, instrument in chosen.items() if name not in left_out}
        data = {**data, "limit": limit}
        opened = read_data(data)
    rows = len(opened.measured[0])
    seconds = {
        name: measured.get(name, predicted_seconds(subject, instrument, rows))
        for name, instrument in chosen.items()
    }
    cells = [
        {"model": dict(entry.settings), "data": data, "seed": seed, "instrument": name}
        for entry in entries
        for name in (PERFORMANCE, *chosen)
    ]
    return SweepPlan(
        entries=tuple(entries),
        chosen=chosen,
        left_out=left_out,
        data=opened,
        limit=limit,
        forecast=seconds,
        notes=notes,
        seed=seed,
        plan=_plan(cells, opened.hash, seconds, store, fresh=fresh),
    )


def _plan(
    cells: Sequence[Mapping[str, Any]],
    data: str,
    seconds: Mapping[str, float],
    store: Store,
    *,
    fresh: bool,
) -> RunPlan:
    keys = [cell_key(NAME, cell, EXPERIMENT.schema, data) for cell in cells]
    there = {} if fresh else {r.key: r for r in store.records(NAME, SCALE, keys)}
    missing = tuple(index for index, key in enumerate(keys) if key not in there)
    return RunPlan(
        id=ID,
        experiment=EXPERIMENT,
        source=ID,
        runs=EXPERIMENT,
        name=NAME,
        scale=SCALE,
        axes={},
        cells=tuple(cells),
        keys=tuple(keys),
        data=(data,) * len(cells),
        missing=missing,
        claims={},
        guesses=tuple(seconds.get(cell["instrument"], OPENING) for cell in cells),
        bytes=BYTES * len(missing),
    )


def _first(
    entries: Sequence[ListedModel], data: Mapping[str, Any], seed: int
) -> tuple[Subject | None, tuple[str, ...]]:
    """Return the first model that can be opened with the data, and what was said on the way."""
    for entry in entries:
        try:
            opened = open_cell({"model": entry.settings, "data": data, "seed": seed})
        except Exception:  # its row will say why
            continue
        return opened.subject, (*opened.model.notes, *opened.data.notes)
    return None, ()


def predicted_seconds(subject: Subject | None, instrument: Instrument, rows: int) -> float:
    """Return the seconds that an instrument is expected to take on so many examples."""
    if subject is None:
        return OPENING
    return instrument.setup + instrument.work(rows, subject.probe.outputs) * subject.pace


def _fitting(
    subject: Subject, chosen: Mapping[str, Instrument], budget: float, limit: int | None
) -> tuple[int | None, dict[str, float]]:
    """Return how many examples fit into a time budget, and the instruments that never fit."""
    have = len(subject.x)
    for rows in (None, *(rows for rows in ROWS if rows < have)):
        count = have if rows is None else rows
        times = {
            name: predicted_seconds(subject, instrument, count)
            for name, instrument in chosen.items()
        }
        if OPENING + sum(times.values()) <= budget:
            return limit if rows is None else rows, {}
    left_out: dict[str, float] = {}
    for name in sorted(times, key=lambda name: -times[name]):
        if OPENING + sum(times.values()) <= budget:
            break
        left_out[name] = times.pop(name)
    return limit if rows is None else rows, left_out


def _choice(store: Store, request: object) -> tuple[int | None, dict[str, float]] | None:
    """Return what the budget of the same sweep has chosen before, if it has."""
    try:
        kept = json.loads((store.root / CHOICE).read_text(encoding="utf-8"))[_name(request)]
        left_out = {str(name): float(seconds) for name, seconds in kept["left_out"].items()}
        return None if kept["rows"] is None else int(kept["rows"]), left_out
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _keep_choice(
    store: Store, request: object, choice: tuple[int | None, dict[str, float]]
) -> None:
    path: Path = store.root / CHOICE
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        kept = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        kept = {}
    kept[_name(request)] = {"rows": choice[0], "left_out": choice[1]}
    write(path, json.dumps(kept, indent=1).encode())


def _name(request: object) -> str:
    return hashlib.sha256(canonical({"request": request}).encode()).hexdigest()[:16]


def _measured_seconds(store: Store) -> dict[str, float]:
    """Return the mean seconds that each instrument has taken in the records that are there."""
    times: dict[str, list[float]] = {}
    for record in store.records(NAME, SCALE):
        times.setdefault(record.settings["instrument"], []).append(_seconds(record))
    return {name: sum(values) / len(values) for name, values in times.items()}


def _seconds(record: Record) -> float:
    return float(record.provenance["seconds"])
