"""What ``reproduce`` will run: the plan of each experiment, its cost, and where it runs."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inscape._core import checks
from inscape.files.atomic import check_writable
from inscape.lab.catalogue import experiment, later_claims, name_of, resolved, source
from inscape.lab.cluster import DATA, environment
from inscape.lab.encoding import canonical
from inscape.lab.executors import Executor
from inscape.lab.executors import executor as executor_named
from inscape.lab.experiment import ScaleName
from inscape.lab.experiment_outcome import ExperimentOutcome, outcome_of_records
from inscape.lab.planning import RunPlan, plan
from inscape.lab.reproduction import Reproduction
from inscape.lab.runner import RunError, RunReport
from inscape.lab.runner import run as run_plan
from inscape.lab.staleness import difference
from inscape.lab.store import Record, Store
from inscape.selection import selected

Notify = Callable[[str], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReproductionPlan:
    """What there is to run, and the executor that will.

    Attributes:
        plans: The plan of each experiment that was asked for.
        scale: The scale of all of them.
        changes: Settings that the user has changed, ``measures`` among them.
        only: Instruments that are measured instead of the experiments' own.
        executor: Where cells are run.
        store: Where records are kept.
        notices: A sentence about everything that was repaired or left out while planning.
        command: What to type to repeat it.
    """

    plans: tuple[RunPlan, ...]
    scale: ScaleName
    changes: tuple[str, ...]
    only: tuple[str, ...]
    executor: Executor
    store: Store
    notices: tuple[str, ...]
    command: str

    @property
    def runs(self) -> list[RunPlan]:
        """Return one plan for the same cells: that of the experiment they belong to, if asked."""
        owners: dict[str, RunPlan] = {}
        for planned in sorted(self.plans, key=lambda p: p.name != name_of(p.id)):
            owners.setdefault(planned.name, planned)
        return [planned for planned in self.plans if owners[planned.name] is planned]

    def forecast(self) -> list[dict[str, Any]]:
        """Return cells, seconds and bytes of each experiment, and of all; shared cells once."""
        runs = self.runs
        rows = [self._row(planned, any(planned is run for run in runs)) for planned in self.plans]
        total = {key: sum(row[key] for row in rows) for key in COSTS}
        return [*rows, {"experiment": "all", **total, "shows": ""}]

    def _row(self, planned: RunPlan, runs: bool) -> dict[str, Any]:
        own = name_of(planned.id)
        return {
            "experiment": own,
            "cells": len(planned.cells) if runs else 0,
            "missing": len(planned.missing) if runs else 0,
            "seconds": planned.wall(self.executor.jobs) if runs else 0.0,
            "bytes": planned.bytes if runs else 0,
            "shows": planned.name if planned.name != own else "",
        }

    def run(self, *, quiet: bool | None = None, notify: Notify | None = None) -> Reproduction:
        """Run every plan, the same cells once; one that fails does not stop the others.

        Args:
            quiet: True shows no progress, None asks the environment.
            notify: Called with each notice as soon as there is one.
        """
        notices: list[str] = []

        def tell(*lines: str) -> None:
            notices.extend(lines)
            for line in lines:
                if notify is not None:
                    notify(line)

        reports, errors = self._computed(quiet, tell)
        complete = [planned for planned in self.plans if planned.name not in errors]
        records = {planned.name: planned.records(self.store) for planned in complete}
        outcomes = [self._outcome(planned, records[planned.name]) for planned in complete]
        for planned in self.runs:
            tell(*_other_claims(planned, records.get(planned.name, ())))
        tell(*self.store.take_notices())
        return Reproduction(
            scale=self.scale,
            outcomes=tuple(outcomes),
            reports=tuple(reports),
            errors=tuple(errors.values()),
            notices=(*self.notices, *notices),
            only=self.only,
            store=self.store,
            command=self.command,
        )

    def _computed(
        self, quiet: bool | None, tell: Callable[..., None]
    ) -> tuple[list[RunReport], dict[str, str]]:
        reports: list[RunReport] = []
        errors: dict[str, str] = {}
        for planned in self.runs:
            try:
                report = run_plan(planned, store=self.store, executor=self.executor, quiet=quiet)
            except RunError as error:
                report = error.report
                errors[planned.name] = str(error)
            reports.append(report)
            tell(*report.notices)
        return reports, errors

    def _outcome(self, planned: RunPlan, records: Sequence[Record]) -> ExperimentOutcome:
        changed = changed_settings(planned)
        outcome = outcome_of_records(
            planned.id, planned.experiment, planned.scale, records, changed
        )
        return replace(outcome, command=self.command if self.changes else "")


#: Columns of a forecast that add up.
COSTS = ("cells", "missing", "seconds", "bytes")


def plan_reproduction(
    ids: str | Sequence[str],
    *,
    scale: ScaleName = "laptop",
    seeds: int | None = None,
    overrides: Mapping[str, Sequence[Any]] | None = None,
    only: str | Sequence[str] | None = None,
    executor: str | Executor | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    out: str | Path = "results",
    command: str | None = None,
) -> ReproductionPlan:
    """Plan what ``reproduce`` runs; what cannot be run is refused before anything is.

    Where there are several experiments, those that lack a changed setting are left as they are.
    Arguments are those of :func:`inscape.lab.reproduce`.
    """
    known = resolved([ids] if isinstance(ids, str) else ids)
    names = None if only is None else selected(only)
    check_writable(Path(out), advice="choose another with --out.")
    changes: dict[str, Any] = dict(overrides or {})
    changes |= {} if seeds is None else {"seed": seeds}
    changes |= {} if names is None else {"measures": names}
    store = Store(out)
    lacking = _lacking(known, changes, scale)
    plans = []
    for id in known:
        own = {axis: value for axis, value in changes.items() if id not in lacking.get(axis, ())}
        plans.append(
            plan(
                id,
                scale=scale,
                overrides={k: v for k, v in (overrides or {}).items() if k in own},
                seeds=own.get("seed") if seeds is not None else None,
                only=own.get("measures") if names is not None else None,
                store=store,
                fresh=fresh,
            )
        )
    notices = [_left_unchanged(axis, without) for axis, without in lacking.items()]
    return ReproductionPlan(
        plans=tuple(plans),
        scale=scale,
        changes=tuple(changes),
        only=names or (),
        executor=_executor(executor, jobs),
        store=store,
        notices=(*notices, *store.take_notices()),
        command=command or f"inscape.lab.reproduce({list(known)!r}, scale={scale!r})",
    )


def changed_settings(planned: RunPlan) -> list[str]:
    """Return the settings whose values are not those of the scale; measures do not count."""
    own = planned.runs.axes(planned.scale)
    return [
        axis
        for axis, values in planned.axes.items()
        if axis != "measures"
        and canonical({axis: list(values)}) != canonical({axis: list(own[axis])})
    ]


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


@contextmanager
def data_from(folder: str | Path | None) -> Iterator[None]:
    """Look for data in a folder first, within the block; workers inherit it."""
    if folder is None:
        yield
        return
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ValueError(
            f"--data-dir must name a folder, found {folder}, which is none: create it, or "
            "leave it out to use the cache."
        )
    with environment({DATA: str(path.absolute())}):
        yield


def _executor(wanted: str | Executor | None, jobs: int | None) -> Executor:
    if isinstance(wanted, Executor):
        return wanted
    count = available_cores() if jobs is None else jobs
    checks.at_least(1, jobs=count)
    return executor_named(wanted or ("joblib" if count > 1 else "serial"), count)


def _lacking(
    ids: Sequence[str], changes: Mapping[str, Any], scale: ScaleName
) -> dict[str, list[str]]:
    """Return, for each changed setting that some experiments have, those that lack it."""
    runs = {id: experiment(source(id)) for id in ids} if changes else {}
    lacking: dict[str, list[str]] = {}
    for axis in changes:
        without = [id for id, run in runs.items() if axis not in run.axes(scale)]
        if 0 < len(without) < len(runs):
            lacking[axis] = without
    return lacking


def _left_unchanged(axis: str, ids: Sequence[str]) -> str:
    names = ", ".join(map(name_of, ids))
    return f"{names} {'has' if len(ids) == 1 else 'have'} no setting {axis!r}: left unchanged"


def _other_claims(planned: RunPlan, records: Sequence[Record]) -> Iterator[str]:
    """Say how many records were made under another wording of the claims, and of which."""
    later = later_claims(planned.source)
    counts = Counter(difference(record, planned.claims, later) for record in records)
    for reason, count in counts.items():
        if reason:
            yield (
                f"{planned.name}: {count:,} of {len(records):,} records were made under another "
                f"wording of the claims: {reason}."
            )
