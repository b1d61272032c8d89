"""Two networks on the page: the refinement of their regions, and examples they disagree on."""

from collections.abc import Generator
from typing import Any

import numpy as np
import torch

from inscape._core import NotApplicable
from inscape.explorer import requests as ask
from inscape.explorer.cells import corner_layers, cut_in_time
from inscape.explorer.jobs import Job
from inscape.explorer.raster import at_pixels, pixels_of
from inscape.explorer.session import Session
from inscape.explorer.subject import ExploredSubject
from inscape.explorer.views import View
from inscape.explorer.wire import Array
from inscape.similarity import disagreement
from inscape.similarity.slice_difference import SliceDifference, difference_of, winners

#: Examples that both networks see, at most.
ROWS = 5000
#: Seconds that they may take together.
SECONDS = 3.0
#: Examples that are named.
NAMED = 60

Facts = dict[str, Any]
Answer = Generator[None, None, tuple[Facts, dict[str, Array]]]


def pair_cells(session: Session, query: ask.CellsRequest, job: Job) -> Answer:
    """Answer with the common refinement of both networks in a window, as ``slice_difference``."""
    subject, plane = session.subject, session.plane_of(query)
    both = subject.network("both")
    regions = yield from cut_in_time(
        both, plane, centre=query.centre, half=query.half, regions=query.regions,
        seconds=query.seconds, side=query.side, on_layer=job.reached,
    )  # fmt: skip
    result = difference_of(regions, subject.subject.probe.outputs)
    yield
    scale = 1.0 / np.array(query.half)
    view = View(client=query.client, network=both, plane=plane, regions=regions)
    facts = {
        **_facts(result),
        "view": session.views.keep(view),
        "complete": regions.complete,
        "unresolved": regions.unresolved,
        "centre": list(query.centre),
        "half": list(query.half),
        "unitArea": regions.frame.area * query.half[0] * query.half[1],
        "farthest": _farthest(result, query.centre),
    }
    return facts, {
        "vertices": (result.vertices.numpy() * scale).astype(np.float32),
        "corners": result.corners.numpy().astype(np.uint32),
        "counts": np.diff(result.first.numpy()).astype(np.uint16),
        "layers": corner_layers(regions),
        "classes": result.classes.numpy().astype(np.uint16),
        "otherClasses": result.other_classes.numpy().astype(np.uint16),
        "differences": result.differences.numpy().astype(np.float32),
        "firstBoundary": _ends(result, "first"),
        "otherBoundary": _ends(result, "second"),
    }


def pair_raster(session: Session, query: ask.RasterRequest) -> Answer:
    """Answer with the classes of both networks at the pixels of a window, and their distance."""
    subject, plane = session.subject, session.plane_of(query)
    network, rival = subject.network(), subject.network("other")
    width, height = pixels_of(query.width, query.height, network.pace + rival.pace, query.seconds)
    window: Facts = {"width": width, "height": height, "centre": query.centre, "half": query.half}
    first = yield from at_pixels(network, plane, **window)
    other = yield from at_pixels(rival, plane, **window)
    return window, {
        "classes": winners(first).numpy().astype(np.uint16),
        "otherClasses": winners(other).numpy().astype(np.uint16),
        "differences": (first - other).norm(dim=1).numpy().astype(np.float32),
    }


def pair_figure(session: Session, query: ask.PairFigureRequest) -> Answer:
    """Answer with the figure of both networks in a window, drawn by the library."""
    from inscape.figures.drawing import draw, rendered

    yield
    view = session.views.get(query.view, query.client)
    if view.network is not session.subject.network("both"):
        raise ValueError("the view must be one of both networks, found one of a single network.")
    result = difference_of(view.regions, session.subject.subject.probe.outputs)
    data = rendered(draw(result), f".{query.format}")
    return {"bytes": len(data)}, {"file": np.frombuffer(data, np.uint8)}


def _facts(result: SliceDifference) -> Facts:
    summary = result.summary()
    return {
        "cells": result.cells,
        "area": result.area,
        "fraction": float(summary.value),
        "low": summary.low,
        "high": summary.high,
        "largest": result.largest,
        "exact": result.exact,
        "covered": result.covered,
    }


def _farthest(result: SliceDifference, centre: tuple[float, float]) -> list[float]:
    """Return the place of the plane at which the outputs are farthest apart in the window."""
    place = result.places[int(result.differences.argmax())].tolist()
    return [centre[0] + place[0], centre[1] + place[1]]


def _ends(result: SliceDifference, of: Any) -> Array:
    """Return the two vertices of every edge on the decision boundary of a network."""
    return result.edges[result.boundary(of)].numpy().astype(np.uint32).reshape(-1)


def pair_examples(subject: ExploredSubject) -> Answer:
    """Answer with the examples on which both networks disagree, the farthest apart first."""
    first, other = subject.network(), subject.network("other")
    pace = max(first.pace + other.pace, 1e-9)
    rows = min(len(subject.x), ROWS, max(32, int(SECONDS / pace)))
    yield
    halfway = 0.5 if subject.subject.probability else 0.0
    assert subject.other is not None
    x = subject.x[:rows]
    other_x = x.to(device=other.device, dtype=other.dtype)
    result = disagreement(
        subject.subject.model, x, other=subject.other, other_x=other_x, level=halfway
    )
    yield
    if isinstance(result, NotApplicable):
        raise ValueError(result.reason)
    differ = result.per_sample() > 0
    order = result.most(rows)
    chosen = order[differ[order]][:NAMED].tolist()
    summary = result.summary()
    named = [
        {
            "row": row,
            "label": subject.label(row),
            "first": subject.class_name(int(result.classes[row])),
            "other": subject.class_name(int(result.other_classes[row])),
            "distance": float(result.distances[row]),
        }
        for row in chosen
    ]
    facts: Facts = {
        "rows": rows, "differ": int(differ.sum()), "low": summary.low, "high": summary.high,
        "named": named, "right": _right(subject, result.classes[:rows], result.other_classes),
    }  # fmt: skip
    return facts, {}


def _right(subject: ExploredSubject, *answers: torch.Tensor) -> list[float] | None:
    """Return the accuracy of each network on these examples, if there are classes."""
    if subject.y is None or subject.task != "classes":
        return None
    y = subject.y.flatten()[: len(answers[0])].cpu()
    return [float((classes.cpu() == y).double().mean()) for classes in answers]
