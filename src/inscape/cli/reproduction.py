"""Planning, running and judging what ``inscape reproduce`` was asked for."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from inscape.cli.errors import typed
from inscape.cli.output import Speech
from inscape.cli.requests import Request
from inscape.cli.verdicts import about
from inscape.lab.catalogue import OWN, experiment, name_of, source
from inscape.lab.encoding import canonical
from inscape.lab.executors import Executor, executor
from inscape.lab.findings import Finding, found_in
from inscape.lab.planning import Plan, plan
from inscape.lab.runner import Report, RunError
from inscape.lab.runner import run as run_plan
from inscape.lab.staleness import difference
from inscape.lab.store import Record, Store
from inscape.report.words import listed, seconds

Forecast = list[dict[str, object]]


@dataclass(frozen=True)
class Done:
    """What became of a request: reports of runs, findings, and sentences about what failed."""

    store: Store
    reports: tuple[Report, ...]
    found: tuple[Finding, ...]
    errors: tuple[str, ...]


def plans(request: Request, say: Speech) -> list[Plan]:
    """Return the plan of each experiment; refuses what cannot be run before anything is.

    Where several are asked for, those that lack a changed setting are left as they are.
    """
    check_writable(request.out)
    store = Store(request.out)
    lacking = _lacking(request)
    made = []
    for id in request.ids:
        own = request.without([axis for axis, ids in lacking.items() if id in ids])
        made.append(
            plan(
                id,
                scale=own.scale,
                overrides=own.overrides,
                seeds=own.seeds,
                measures=own.measures or None,
                store=store,
                fresh=own.fresh,
            )
        )
    for axis, ids in lacking.items():
        have = "has" if len(ids) == 1 else "have"
        say(f"{listed([name_of(id) for id in ids])} {have} no setting {axis!r}: left unchanged")
    say(*store.told())
    return made


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, before any work; leave nothing behind."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise OSError(
            f"cannot write into the folder {nearest}: {why}: choose another with --out."
        ) from error


def _lacking(request: Request) -> dict[str, list[str]]:
    """Return, for each changed setting that some experiments have, those that lack it."""
    runs = {id: experiment(source(id)) for id in request.ids} if request.changes else {}
    found: dict[str, list[str]] = {}
    for axis in request.changes:
        lack = [id for id, one in runs.items() if axis not in one.axes(request.scale)]
        if 0 < len(lack) < len(runs):
            found[axis] = lack
    return found


def announcement(request: Request, plans: Sequence[Plan]) -> str:
    """Say how many cells there are, how many are missing, and how long they will take."""
    total = forecast(request, plans)[-1]
    many = f"{len(plans)} experiment{'s' * (len(plans) != 1)} at scale {request.scale}"
    cells = f"{total['cells']:,} cell{'s' * (total['cells'] != 1)}"
    said = f"{many}: {cells}, {total['to compute']:,} to compute"
    if not total["to compute"]:
        return f"{said}: all records are there"
    return f"{said}, {about(str(total['time']))} with {_chosen(request).jobs} at a time"


def forecast(request: Request, plans: Sequence[Plan]) -> Forecast:
    """Return cells, time and disk of each experiment, and of all; shared cells count once."""
    jobs = _chosen(request).jobs
    runs = _to_run(plans)
    times = {id(one): one.wall(jobs) for one in runs}
    rows: Forecast = []
    for one in plans:
        shared = id(one) not in times
        rows.append(
            {
                "experiment": name_of(one.id),
                "cells": 0 if shared else len(one.cells),
                "to compute": 0 if shared else len(one.missing),
                "time": _time(times.get(id(one), 0.0)),
                "disk": _size(0 if shared else one.bytes),
                "note": f"shows records of {one.name}" if one.name != name_of(one.id) else "",
            }
        )
    return [
        *rows,
        {
            "experiment": "all",
            "cells": sum(len(one.cells) for one in runs),
            "to compute": sum(len(one.missing) for one in runs),
            "time": _time(sum(times.values())),
            "disk": _size(sum(one.bytes for one in runs)),
            "note": "",
        },
    ]


def run(request: Request, plans: Sequence[Plan], say: Speech, *, quiet: bool) -> Done:
    """Run every plan, the same cells once; one that fails does not stop the others."""
    store, chosen = Store(request.out), _chosen(request)
    reports: list[Report] = []
    errors: dict[str, str] = {}
    for one in _to_run(plans):
        try:
            report = run_plan(one, store=store, executor=chosen, quiet=quiet or None)
        except RunError as error:
            report = error.report
            errors[one.name] = str(error)
        reports.append(report)
        say(*report.notices)
    whole = [one for one in plans if one.name not in errors]
    records = {one.name: one.records(store) for one in whole}
    found = [
        replace(
            found_in(one.id, one.experiment, one.scale, records[one.name], changed(one)),
            command=typed() if request.changes else "",
        )
        for one in whole
    ]
    say(*(line for one in _to_run(whole) for line in _other_claims(one, records[one.name])))
    say(*store.told())
    done = (tuple(reports), tuple(found), tuple(errors.values()))
    return Done(store, *done)


def _other_claims(plan: Plan, records: Sequence[Record]) -> Iterator[str]:
    """Say how many records were made under another wording of the claims, and of which."""
    counts = Counter(difference(record, plan.claims) for record in records)
    for reason, count in counts.items():
        if reason:
            yield (
                f"{plan.name}: {count:,} of {len(records):,} records were made under another "
                f"wording of the claims: {reason}."
            )


def changed(plan: Plan) -> list[str]:
    """Return the settings whose values are not those of the scale; measures do not count."""
    own = plan.runs.axes(plan.scale)
    return [
        axis
        for axis, values in plan.axes.items()
        if axis != "measures"
        and canonical({axis: list(values)}) != canonical({axis: list(own[axis])})
    ]


def pages(request: Request, done: Done) -> dict[Path, Callable[[], str]]:
    """Return the pages to be written: where each goes, and what makes it.

    A run at the scale of the paper or a laptop makes the paper's own page anew. A page about other
    settings, other measures or the smoke scale has another name, and only what was run.
    """
    from inscape.report.paper.page import page_of, paper_page

    made: dict[Path, Callable[[], str]] = {}
    for paper in dict.fromkeys(name_of(one.id).partition("/")[0] for one in done.found):
        found = [one for one in done.found if name_of(one.id).startswith(f"{paper}/")]
        kind = "-smoke" if request.scale == "smoke" else ""
        if request.measures or any(one.changed for one in found):
            kind = "-own-settings"
        whole = not kind and not paper.startswith(OWN)
        made[request.out / f"{paper}{kind}.html"] = (
            partial(paper_page, paper, done.store)
            if whole
            else partial(page_of, paper, found, command=typed())
        )
    return made


def _to_run(plans: Sequence[Plan]) -> list[Plan]:
    """Return one plan for the same cells: that of the experiment that they belong to, if asked."""
    chosen: dict[str, Plan] = {}
    for one in sorted(plans, key=lambda one: one.name != name_of(one.id)):
        chosen.setdefault(one.name, one)
    return [one for one in plans if chosen[one.name] is one]


def _chosen(request: Request) -> Executor:
    jobs = request.cores
    return executor(request.executor or ("joblib" if jobs > 1 else "serial"), jobs)


def _time(value: float) -> str:
    return seconds(value) if value else "none"


def _size(size: int) -> str:
    """Return a size in words; the guess is no better than that."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
