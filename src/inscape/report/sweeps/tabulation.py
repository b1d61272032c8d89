"""From the records of a sweep to its table."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from inscape._core.result import Summary
from inscape.lab.experiment import CellValues
from inscape.lab.runner import RunReport
from inscape.lab.store import Record
from inscape.report.sweeps.cells import PERFORMANCE
from inscape.report.sweeps.columns import UserColumns
from inscape.report.sweeps.models import ListedModel
from inscape.report.sweeps.planning import SweepPlan
from inscape.report.sweeps.table import Measurement, Sweep, SweptModel

#: The instrument of the only row of a model of which nothing could be measured.
ALL = "all"


def tabulated(
    plan: SweepPlan,
    records: Mapping[str, Record],
    report: RunReport,
    *,
    columns: UserColumns,
    seconds: float,
    command: str | None,
) -> Sweep:
    """Return the table of a sweep that has run; cells that failed have a row that says why."""
    failures = {failure.key: failure.error for failure in report.failures}
    measurements = [
        measurement
        for entry in plan.entries
        for measurement in _rows_of(plan, entry, records, failures)
    ]
    return Sweep(
        models=tuple(_model(plan, entry, records) for entry in plan.entries),
        measurements=tuple(measurements),
        data=plan.data.name,
        rows_measured=len(plan.data.measured[0]),
        seed=plan.seed,
        columns=columns.values,
        left_out=plan.left_out,
        computed=report.computed,
        seconds=seconds,
        notes=tuple(dict.fromkeys((*columns.notes, *plan.data.notes, *report.notices))),
        command=command or "",
    )


def _rows_of(
    plan: SweepPlan, entry: ListedModel, records: Mapping[str, Record], failures: Mapping[str, str]
) -> list[Measurement]:
    """Return all instruments of a model; one row alone where it could not even be opened."""
    rows = [
        measurement
        for name in (PERFORMANCE, *plan.chosen)
        for measurement in _measurements(plan, entry, name, records, failures)
    ]
    reasons = {row.status for row in rows}
    if len(rows) > 1 and len(reasons) == 1 and rows[0].status.startswith("failed"):
        return [replace(rows[0], instrument=ALL, family="")]
    return rows


def _model(plan: SweepPlan, entry: ListedModel, records: Mapping[str, Record]) -> SweptModel:
    record = records.get(plan.keys[entry.name, PERFORMANCE])
    return swept_model(entry, {} if record is None else record.values["about"])


def swept_model(entry: ListedModel, about: Mapping[str, Any]) -> SweptModel:
    """Return a model with what its performance says about it."""
    return SweptModel(
        name=entry.name,
        source=entry.source,
        kind=about.get("class", ""),
        parameters=about.get("parameters"),
        notes=tuple(about.get("notes", ())),
    )


def _measurements(
    plan: SweepPlan,
    entry: ListedModel,
    name: str,
    records: Mapping[str, Record],
    failures: Mapping[str, str],
) -> Iterator[Measurement]:
    """Yield what one cell measured: mostly one number, of the performance two or none."""
    key = plan.keys[entry.name, name]
    family = plan.chosen[name].family if name in plan.chosen else PERFORMANCE
    record = records.get(key)
    if record is None:
        why = failures.get(key, "its record is missing")
        yield Measurement(model=entry.name, instrument=name, family=family, status=f"failed: {why}")
        return
    yield from measurements_of(
        record.values,
        model=entry.name,
        instrument=name,
        family=family,
        sampling=sampling(plan.seed, plan.data.hash, plan.limit),
        seconds=float(record.provenance["seconds"]),
    )


def sampling(seed: int, data: str, limit: int | None) -> str:
    """Return what two models must share to be compared sample by sample."""
    return f"seed {seed}, {data}, {limit}"


def measurements_of(
    values: CellValues, *, model: str, instrument: str, family: str, sampling: str, seconds: float
) -> Iterator[Measurement]:
    """Yield what the values of a cell say: mostly one number, of the performance two or none."""
    for part in values["measures"]:
        stated = part["summary"]
        yield Measurement(
            model=model,
            instrument=part["name"] or instrument,
            family=family,
            status=part["status"],
            summary=None if stated is None else Summary(**stated),
            samples=part.get("samples"),
            sampling=sampling,
            seconds=seconds,
        )
