"""Segments: a network along a straight line between two points of a plane, with all breakpoints."""

from collections.abc import Generator
from typing import Any

import numpy as np
import torch

from inscape._core import NotApplicable
from inscape.explorer.jobs import last_of
from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredNetwork, ExploredSubject
from inscape.explorer.wire import Array
from inscape.regions import line_regions

#: Outputs that are drawn: those that are largest somewhere, then the next.
DRAWN = 6
#: Points at which a network that is not piecewise linear is evaluated.
POINTS = 513

Place = tuple[float, float]


def segment(
    subject: ExploredSubject,
    network: ExploredNetwork,
    plane: ExploredPlane,
    begin: Place,
    end: Place,
    *,
    seconds: float,
) -> Generator[None, None, tuple[dict[str, Any], dict[str, Array]]]:
    """Return the outputs along a segment at every breakpoint: exact, and linear between them."""
    if begin == end:
        raise ValueError("the segment must join two different points, found one: choose another.")
    ends = plane.frame.at(torch.tensor([begin, end], dtype=torch.float64))
    facts: dict[str, Any] = {"exact": network.net is not None, "covered": 1.0}
    if network.windows is None:
        t = torch.linspace(0, 1, POINTS, dtype=torch.float64)
        values = network.outputs(torch.lerp(ends[:1], ends[1:], _column(t, ends)))
        yield
    else:
        result = yield from last_of(line_regions.refine(network.f, ends, seconds=seconds))
        if isinstance(result, NotApplicable):
            raise ValueError(result.reason)
        t, values = result.t, result.values
        facts |= {"covered": result.covered, "cells": int(result.cells[0]),
                  "merged": int(result.merged[0])}  # fmt: skip
    chosen = _chosen(subject, values)
    facts |= {
        "breakpoints": max(0, len(t) - 2) if facts["exact"] else None,
        "length": float((ends[1] - ends[0]).norm()),
        "names": [subject.class_name(k) for k in chosen],
        "outputs": chosen,
    }
    columns = values[:, chosen].T.reshape(-1)
    return facts, {"t": t.numpy().astype(np.float64), "values": columns.numpy().astype(np.float64)}


def _column(t: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return t.reshape(-1, *[1] * (ends.ndim - 1))


def _chosen(subject: ExploredSubject, values: torch.Tensor) -> list[int]:
    """Return the outputs that are largest somewhere, and further ones that come near."""
    count = values.shape[1]
    if count <= DRAWN:
        return list(range(count))
    wins = values.argmax(1).bincount(minlength=count).double() * 1e9
    order = (wins + values.amax(0).argsort().argsort()).argsort(descending=True)
    return sorted(order[:DRAWN].tolist())
