"""The page of a comparison: one HTML file that needs no other, or the numbers as JSON or CSV."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

import inscape
from inscape import escaping
from inscape._core import instruments
from inscape.figures import draw
from inscape.report.comparison.compare import Compare, PairMeasurement
from inscape.report.comparison.figures import (
    dendrogram,
    layer_figure,
    over_steps,
    pair_matrix,
    steps,
)
from inscape.report.comparison.inputs import Answer, DisagreedInput
from inscape.report.comparison.pictures import heat, largest
from inscape.report.comparison.sentences import introduction, sentences
from inscape.report.html import rendered_page, stylesheet, write_by_suffix
from inscape.report.look.directions import direction
from inscape.report.pictures import drawn, thumbnail
from inscape.report.sources import citation
from inscape.report.sweeps.page import difference_row, encoded, panels, svg
from inscape.report.words import first_up, number, plain
from inscape.similarity import LayerMatrix, SliceDifference
from inscape.similarity.invariances import INVARIANT_TO


def save(compare: Compare, path: Path) -> Path:
    """Write a comparison as HTML, JSON or CSV, whole or not at all."""
    return write_by_suffix(
        path,
        {
            ".html": lambda: page(compare).encode(),
            ".json": lambda: _json(compare).encode(),
            ".csv": lambda: escaping.csv_text(list(compare.rows())).encode(),
        },
    )


def _json(compare: Compare) -> str:
    text = json.dumps(compare.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    return escaping.visible(text) + "\n"


def page(compare: Compare) -> str:
    """Return the whole page as HTML that needs nothing else."""
    several = len(compare.names) > 2
    differences = compare.sweep.differences(*compare.pair)
    return rendered_page(
        "compare.html.j2",
        compare=compare,
        sweep=compare.sweep,
        several=several,
        version=inscape.__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        style=stylesheet("style.css", "sweep.css", "compare.css"),
        introduction=introduction(compare),
        sentences=sentences(compare),
        cards=[_card(compare, model.name) for model in compare.sweep.models],
        measures=[_measure(pair) for pair in _of_pair(compare)],
        matrices=_matrices(compare) if several else [],
        tree=_tree(compare) if several else None,
        curves=_curves(compare) if several else [],
        layers=_layers(compare),
        inputs=[_input(shown) for shown in compare.inputs if not shown.moved],
        searched=[_input(shown) for shown in compare.inputs if shown.moved],
        cut=_slice(compare),
        panels=panels(compare.sweep) if several else [],
        differences=[difference_row(compare.sweep, difference) for difference in differences],
        without=_without(compare),
        csv=encoded(escaping.csv_text(list(compare.rows()))),
        csv_differences=encoded(
            escaping.csv_text([difference.row() for difference in differences])
        ),
    )


def _card(compare: Compare, name: str) -> dict[str, Any]:
    """Return what a network is, and how well it does."""
    model = next(model for model in compare.sweep.models if model.name == name)
    facts = []
    for instrument in ("accuracy", "loss"):
        measured = compare.sweep.measurement(name, instrument)
        if measured is not None and measured.summary is not None:
            summary = measured.summary
            known = summary.low is not None and summary.high is not None
            ends = [number(end, 3) for end in (summary.low, summary.high) if end is not None]
            facts.append((instrument, number(summary.value, 3), " to ".join(ends) if known else ""))
    return {"model": model, "facts": facts}


def _of_pair(compare: Compare) -> list[PairMeasurement]:
    """Return the measures of the pair that is shown, those without a number last."""
    shown = [pair for pair in compare.pairs if {pair.first, pair.second} == set(compare.pair)]
    return [pair for pair in shown if pair.summary is not None]


def _measure(pair: PairMeasurement) -> dict[str, Any]:
    """Return a row of the table of measures."""
    summary, result = pair.summary, pair.result
    assert summary is not None
    known = summary.low is not None and summary.high is not None
    ends = [number(end, 3) for end in (summary.low, summary.high) if end is not None]
    points = direction(pair.instrument)
    baseline = ""
    if isinstance(result, LayerMatrix):
        baseline = number(result.by_chance(), 2)
    entry = instruments()[pair.instrument]
    return {
        "name": pair.instrument,
        "title": first_up(plain(pair.instrument)),
        "order": f"{pair.first} → {pair.second}",
        "value": number(summary.value, 3),
        "interval": " to ".join(ends) if known else summary.kind,
        "baseline": baseline,
        "ignores": INVARIANT_TO.get(pair.instrument, ""),
        "direction": points.short if points else "",
        "basis": summary.basis,
        "citation": citation(entry.cites),
    }


def _matrices(compare: Compare) -> list[dict[str, Any]]:
    """Return a matrix of all pairs for each measure."""
    return [
        {
            "title": first_up(plain(name)),
            "ignores": INVARIANT_TO.get(name, ""),
            "figure": svg(
                pair_matrix(compare, name), f"pairs-{name}", f"{plain(name)} of all pairs"
            ),
        }
        for name in compare.measures
    ]


def _tree(compare: Compare) -> Markup | None:
    ax = dendrogram(compare)
    if ax is None:
        return None
    return svg(ax, "tree", "Which networks are near each other, by how often they disagree")


def _curves(compare: Compare) -> list[dict[str, Any]]:
    """Return curves over the steps of one training, where the networks are its checkpoints."""
    at = steps(compare.names)
    if at is None:
        return []
    return [
        {
            "title": first_up(plain(name)),
            "figure": svg(
                over_steps(compare, name, at), f"steps-{name}", f"{plain(name)} over the steps"
            ),
        }
        for name in compare.measures
    ]


def _layers(compare: Compare) -> list[dict[str, Any]]:
    """Return the matrices of layers of the pair that is shown."""
    return [
        {
            "title": first_up(plain(pair.instrument)),
            "ignores": INVARIANT_TO.get(pair.instrument, ""),
            "figure": svg(
                layer_figure(pair.result),
                f"layers-{pair.instrument}",
                f"{plain(pair.instrument)} of every layer with every other",
            ),
        }
        for pair in _of_pair(compare)
        if isinstance(pair.result, LayerMatrix) and pair.result.values.numel() > 1
    ]


def _input(shown: DisagreedInput) -> dict[str, Any]:
    return {
        "shown": shown,
        "picture": thumbnail(shown.x),
        "distance": number(shown.distance, 2),
        "moved": number(shown.moved, 2),
        "answers": [_answer(answer) for answer in shown.answers],
    }


def _answer(answer: Answer) -> dict[str, Any]:
    gradient = answer.saliency
    probability = "" if answer.probability is None else f"{100 * answer.probability:.0f}%"
    return {
        "answer": answer,
        "probability": probability,
        "heat": None if gradient is None else heat(gradient),
        "words": "" if gradient is None else largest(gradient),
    }


def _slice(compare: Compare) -> dict[str, Any] | None:
    """Return the slice of both networks, or why there is none."""
    measured = compare.measurement("slice_difference", *compare.pair)
    if measured is None:
        return None
    result = measured.result
    if not isinstance(result, SliceDifference):
        return {"figure": None, "reason": measured.status.removeprefix("not applicable: ")}
    label = f"Where {compare.pair[0]} and {compare.pair[1]} give different classes"
    return {
        "figure": Markup(drawn(draw(result), prefix="slice", label=label)),
        "cells": f"{result.cells:,}",
        "largest": number(result.largest, 3),
        "exact": result.exact,
        "covered": f"{result.covered:.1%}",
    }


def _without(compare: Compare) -> Sequence[tuple[str, str]]:
    """Return what has no number, with the reason."""
    reasons: dict[str, str] = {}
    rows = [(pair.instrument, pair.status) for pair in compare.pairs if pair.summary is None]
    rows += [
        (row.instrument, row.status) for row in compare.sweep.measurements if row.summary is None
    ]
    for name, status in rows:
        reasons.setdefault(plain(name), status.removeprefix("not applicable: "))
    for name, seconds in compare.left_out.items():
        after = f", about {number(seconds, 2)} s" if seconds else ""
        reasons.setdefault(plain(name), f"left out for time{after}: raise the budget")
    return [(first_up(name), reason) for name, reason in reasons.items()]
