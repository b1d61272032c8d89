"""What ``inscape sweep`` says before, prints after and writes."""

import math
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from inscape.cli.console import echo
from inscape.cli.tables import print_json, print_table
from inscape.escaping import csv_text
from inscape.files.atomic import check_writable as check_writable
from inscape.files.atomic import write
from inscape.lab.experiment import Estimate
from inscape.report.page_paths import page_name
from inscape.report.sweeps.run import PreparedSweep
from inscape.report.sweeps.sentences import sentences
from inscape.report.sweeps.table import Comparison, Sweep
from inscape.report.words import listed, plain, seconds


def default_folder(data: str) -> Path:
    """Return the folder of a sweep on some data."""
    return Path("sweeps") / page_name(data, None, "")


def announcement(prepared: PreparedSweep) -> str:
    """Say how much there is to measure, how much of it is there, and how long it will take."""
    plan = prepared.plan
    cells, missing = len(plan.plan.cells), len(plan.plan.missing)
    rows = len(plan.data.measured[0])
    head = (
        f"{len(plan.entries)} models x {len(plan.chosen)} instruments on {rows:,} examples of "
        f"{plan.data.name}: {cells:,} cells, {missing:,} to measure"
    )
    if plan.left_out:
        head += f" (no time for {listed([plain(name) for name in plan.left_out])})"
    if not missing:
        return f"{head}: all records are there"
    return f"{head}, about {seconds(prepared.seconds)} with {prepared.executor.jobs} at a time"


def print_forecast(prepared: PreparedSweep, *, as_json: bool) -> None:
    """Print what each instrument would take per model, and all of them on all models."""
    plan = prepared.plan
    rows = [
        {"instrument": name, "seconds_per_model": took, "status": "to measure"}
        for name, took in plan.forecast.items()
    ]
    rows += [
        {"instrument": name, "seconds_per_model": took, "status": "left out for time"}
        for name, took in plan.left_out.items()
    ]
    total = {
        "models": [entry.name for entry in plan.entries],
        "rows": len(plan.data.measured[0]),
        "cells": len(plan.plan.cells),
        "to_measure": len(plan.plan.missing),
        "seconds": prepared.seconds,
        "jobs": prepared.executor.jobs,
    }
    if as_json:
        print_json({**total, "instruments": rows})
        return
    print_table(rows)


def print_sweep(sweep: Sweep, compare: tuple[str, str] | None, *, as_json: bool) -> None:
    """Print the numbers, what they show, the closest correlations, and a difference asked for."""
    differences = sweep.differences(*compare) if compare else ()
    if as_json:
        compared = {"compared": [difference.row() for difference in differences]} if compare else {}
        print_json({**sweep.to_dict(), **compared})
        return
    for sentence in sentences(sweep):
        echo(sentence.text)
    echo()
    print_table(list(_table(sweep)))
    if sweep.correlations:
        echo()
        print_table(_correlations(sweep), title="Kendall's tau with its 95% interval")
    if compare:
        echo()
        print_table(map(_difference, differences), title=f"{compare[0]} minus {compare[1]}")


def _table(sweep: Sweep) -> Iterator[dict[str, object]]:
    """Yield the table with its longer side downwards."""
    models = [model.name for model in sweep.models]
    if len(models) < len(sweep.instruments):
        for instrument in sweep.instruments:
            yield {
                "instrument": plain(instrument),
                **{m: sweep.value(m, instrument) for m in models},
            }
        return
    failed = {
        failure.model: failure.status for failure in sweep.failed if failure.instrument == "all"
    }
    for model in models:
        numbers = {
            plain(instrument): sweep.value(model, instrument) for instrument in sweep.instruments
        }
        yield {"model": model, **numbers, **({"": failed[model]} if model in failed else {})}


def _correlations(sweep: Sweep) -> Iterator[dict[str, object]]:
    """Yield a row for each instrument: its tau with every column."""
    for instrument in sweep.instruments:
        correlations = {
            f"with {correlation.column}": correlation.tau
            for correlation in sweep.correlations
            if correlation.instrument == instrument
        }
        yield {
            "instrument": plain(instrument),
            **{name: _tau(tau) for name, tau in correlations.items()},
        }


def _tau(tau: Estimate) -> str:
    if not math.isfinite(tau.value):
        return ""
    ends = f" [{tau.low:.2f}, {tau.high:.2f}]" if math.isfinite(tau.low) else ""
    return f"{tau.value:.2f}{ends}"


def _difference(comparison: Comparison) -> dict[str, object]:
    keys = ("instrument", "difference", "low", "high", "method")
    return {key: comparison.row()[key] for key in keys}


def write_all(sweep: Sweep, folder: Path) -> list[Path]:
    """Write page and tables, and return their paths; parquet where pyarrow is installed."""
    suffixes = ["html", "csv", "tex", "json"]
    if find_spec("pyarrow") is not None:
        suffixes.append("parquet")
    paths = [sweep.save(folder / f"sweep.{suffix}") for suffix in suffixes]
    extra = {
        "correlations.csv": [correlation.row() for correlation in sweep.correlations],
        "differences.csv": [difference.row() for difference in sweep.first_and_last],
    }
    for name, rows in extra.items():
        if rows:
            write(folder / name, csv_text(rows).encode())
            paths.append(folder / name)
    return paths
