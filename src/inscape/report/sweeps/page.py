"""The page of a sweep: small multiples over the models, correlations, differences, all numbers."""

import base64
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes

import inscape
from inscape._core.result import Summary
from inscape.escaping import csv_text
from inscape.report.html import rendered_page, stylesheet
from inscape.report.look.directions import direction, question
from inscape.report.pictures import inline
from inscape.report.sweeps.cells import PERFORMANCE
from inscape.report.sweeps.figures import forest, panel, scatter
from inscape.report.sweeps.latex import latex_table
from inscape.report.sweeps.sentences import introduction, sentences
from inscape.report.sweeps.table import Comparison, Correlation, Sweep
from inscape.report.words import first_up, number, plain

#: Scatter plots of one column, those of the closest correlations.
SCATTERS = 6
#: Correlations that stand below a panel: those with the first columns.
CHIPS = 1
#: Signs before a number that say how far it can be trusted.
SIGNS = {"exact": "", "estimate": "", "lower bound": "≥ ", "upper bound": "≤ "}


def page(sweep: Sweep) -> str:
    """Return the whole page as HTML that needs nothing else."""
    return rendered_page(
        "sweep.html.j2",
        sweep=sweep,
        version=inscape.__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        style=stylesheet("style.css", "sweep.css"),
        introduction=introduction(sweep),
        sentences=sentences(sweep),
        panels=panels(sweep),
        columns=_columns(sweep),
        differences=[difference_row(sweep, pair) for pair in sweep.first_and_last],
        pair=sweep.first_and_last[0] if sweep.first_and_last else None,
        table=_table(sweep),
        not_applicable=_not_applicable(sweep),
        csv=encoded(csv_text(list(sweep.rows()))),
        csv_differences=encoded(csv_text([each.row() for each in sweep.first_and_last])),
        csv_correlations=encoded(
            csv_text([correlation.row() for correlation in sweep.correlations])
        ),
        latex=latex_table(sweep),
        latex_file=encoded(latex_table(sweep)),
    )


def encoded(text: str) -> str:
    """Return a text as the address of a download holds it."""
    return base64.b64encode(text.encode()).decode()


def svg(ax: Axes, name: str, label: str) -> Markup:
    """Return a figure as it stands in the page."""
    from inscape.figures import rendered

    return Markup(inline(rendered(ax).decode(), prefix=name, label=label))


def panels(sweep: Sweep) -> list[dict[str, Any]]:
    """Return a panel for each instrument, with the question that its family answers."""
    families = {
        measurement.instrument: measurement.family
        for measurement in sweep.measurements
        if measurement.summary is not None
    }
    return [_panel(sweep, instrument, families[instrument]) for instrument in sweep.instruments]


def _panel(sweep: Sweep, instrument: str, family: str) -> dict[str, Any]:
    summaries = [
        measurement.summary
        for model in sweep.models
        if (measurement := sweep.measurement(model.name, instrument)) is not None
        and measurement.summary is not None
    ]
    ends = [summaries[0], summaries[-1]]
    label = f"{plain(instrument)} over {len(summaries)} models, from {ends[0]} to {ends[1]}"
    points = direction(instrument)
    taus = [
        correlation for correlation in sweep.correlations if correlation.instrument == instrument
    ]
    return {
        "name": instrument,
        "question": "How well does it do?" if family == PERFORMANCE else question(family),
        "title": first_up(plain(instrument)),
        "first": _written(ends[0]),
        "last": _written(ends[1]) if len(summaries) > 1 else "",
        "direction": points.short if points else _PERFORMANCE.get(instrument, ""),
        "figure": svg(panel(sweep, instrument), f"over-{instrument}", label),
        "taus": [(measurement.column, number(measurement.tau.value, 2)) for measurement in taus
                 if math.isfinite(measurement.tau.value)][:CHIPS],
    }  # fmt: skip


_PERFORMANCE = {"accuracy": "larger is better", "loss": "smaller is better"}


def _written(summary: Summary) -> str:
    return SIGNS[summary.kind] + number(summary.value, 3)


def _columns(sweep: Sweep) -> list[dict[str, Any]]:
    """Return, for each column, the forest of its correlations and the closest ones as scatters."""
    columns: list[dict[str, Any]] = []
    for place, name in enumerate(
        dict.fromkeys(correlation.column for correlation in sweep.correlations)
    ):
        correlations = [
            correlation
            for correlation in sweep.correlations
            if correlation.column == name and math.isfinite(correlation.tau.value)
        ]
        if not correlations:
            continue
        closest = sorted(correlations, key=lambda correlation: -abs(correlation.tau.value))[
            :SCATTERS
        ]
        label = f"Kendall's tau of {len(correlations)} instruments with {name}"
        columns.append(
            {
                "name": name,
                "models": max(correlation.tau.n for correlation in correlations),
                "figure": svg(forest(correlations), f"forest-{place}", label),
                "scatters": []
                if columns
                else [_scatter(sweep, correlation, place) for correlation in closest],
                "methods": sorted({correlation.tau.method for correlation in correlations}),
            }
        )
    return columns


def _scatter(sweep: Sweep, correlation: Correlation, place: int) -> dict[str, Any]:
    tau = correlation.tau
    interval = f" [{number(tau.low, 2)}, {number(tau.high, 2)}]" if math.isfinite(tau.low) else ""
    label = (
        f"{plain(correlation.instrument)} against {correlation.column}, tau {number(tau.value, 2)}"
    )
    return {
        "title": first_up(plain(correlation.instrument)),
        "tau": f"{number(tau.value, 2)}{interval}",
        "p": number(correlation.p, 2) if math.isfinite(correlation.p) else "",
        "figure": svg(
            scatter(sweep, correlation), f"scatter-{place}-{correlation.instrument}", label
        ),
    }


def difference_row(sweep: Sweep, comparison: Comparison) -> dict[str, Any]:
    """Return a row of the table of differences."""
    estimate = comparison.difference
    known = math.isfinite(estimate.low) and not estimate.exact
    before = sweep.value(comparison.second, comparison.instrument)
    relative = "" if not before else f"{100 * estimate.value / abs(before):+.0f}%"
    return {
        "title": first_up(plain(comparison.instrument)),
        "before": number(before or 0.0, 3),
        "after": number(sweep.value(comparison.first, comparison.instrument) or 0.0, 3),
        "difference": _signed(estimate.value),
        "interval": f"{_signed(estimate.low)} to {_signed(estimate.high)}" if known else "",
        "relative": relative.replace("-", "\N{MINUS SIGN}"),
        "method": estimate.method,
        "distinct": comparison.distinct and not estimate.exact,
    }


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value, 3)


def _table(sweep: Sweep) -> list[dict[str, Any]]:
    """Return one row for each model: what it is, and its numbers with their intervals."""
    rows = []
    for model in sweep.models:
        cells = [sweep.measurement(model.name, instrument) for instrument in sweep.instruments]
        reasons = [
            measurement.status for measurement in sweep.failed if measurement.model == model.name
        ]
        rows.append(
            {
                "model": model,
                "cells": [
                    _cell(None if measurement is None else measurement.summary)
                    for measurement in cells
                ],
                "failed": reasons[0] if reasons and not any(c and c.summary for c in cells) else "",
                "partly": reasons,
            }
        )
    return rows


def _cell(summary: Summary | None) -> dict[str, str]:
    if summary is None:
        return {"value": "", "interval": ""}
    known = summary.low is not None and summary.high is not None
    ends = [number(end, 3) for end in (summary.low, summary.high) if end is not None]
    return {"value": _written(summary), "interval": " to ".join(ends) if known else ""}


def _not_applicable(sweep: Sweep) -> Sequence[tuple[str, str]]:
    """Return what applies to no model at all, with the reason."""
    reasons = {
        measurement.instrument: measurement.status.removeprefix("not applicable: ")
        for measurement in sweep.measurements
        if measurement.status.startswith("not applicable")
        and measurement.instrument not in sweep.instruments
    }
    return [(plain(instrument), reason) for instrument, reason in reasons.items()]
