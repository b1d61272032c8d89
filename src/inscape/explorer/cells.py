"""Cells: the exact linear regions of a window, as arrays that a page can draw."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import NotApplicable
from inscape.explorer.class_pieces import class_pieces
from inscape.explorer.jobs import TimeSpentError, last_of
from inscape.explorer.planes import ExploredPlane
from inscape.explorer.raster import painted
from inscape.explorer.subject import ExploredNetwork, ExploredSubject
from inscape.explorer.wire import Array
from inscape.regions import PlaneRegions, decision_boundary, plane_regions
from inscape.runtime.deadline import Deadline

#: Corners of the window, in the coordinates of a plane whose origin is the window's centre.
CORNERS = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))
#: Bytes that a cut may take.
MEMORY = 2**31
#: Windows that are tried until one has few enough cells.
TRIES = 5
#: The side of the window is no kink of any operation.
SIDE = 255


def cut(
    network: ExploredNetwork,
    plane: ExploredPlane,
    *,
    centre: tuple[float, float],
    half: tuple[float, float],
    regions: int,
    on_layer: Callable[[str, int], None],
) -> Generator[None, None, PlaneRegions]:
    """Return the regions of a window, in a plane with its origin at the window's centre."""
    if network.windows is None:
        raise ValueError(network.refusal)
    result = yield from network.windows.cut(
        plane.rebased(*centre), corners_of(half), regions=regions, memory=MEMORY, on_layer=on_layer
    )
    return result


def cell_arrays(
    subject: ExploredSubject,
    regions: PlaneRegions,
    half: tuple[float, float],
    precision: type[np.floating[Any]] = np.float32,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return facts and arrays of cells: geometry in units of the window, and what colours them."""
    scale = 1.0 / np.array(half)
    first = regions.first.numpy()
    arrays: dict[str, Array] = {
        "vertices": (regions.vertices.numpy() * scale).astype(precision),
        "corners": regions.corners.numpy().astype(np.uint32),
        "counts": np.diff(first).astype(np.uint16),
        "layers": corner_layers(regions),
        **painted(subject, at_centroids(regions)),
    }
    facts: dict[str, Any] = {
        "cells": regions.cells,
        "merged": regions.regions,
        "complete": regions.complete,
        "covered": regions.covered,
        "unresolved": regions.unresolved,
        "unresolvedArea": regions.unresolved_area,
        "operations": list(regions.ops),
        "unitArea": regions.frame.area * half[0] * half[1],
    }
    if subject.is_competing:
        pieces = class_pieces(subject, regions)
        arrays |= {
            "pieceVertices": (pieces.vertices * scale).astype(precision),
            "pieceCounts": pieces.counts,
            "pieceClasses": pieces.classes,
            "pieceCells": pieces.cells,
        }
        facts |= _boundary(regions, arrays, scale, precision)
    return facts, arrays


def _boundary(
    regions: PlaneRegions,
    arrays: dict[str, Array],
    scale: Array,
    precision: type[np.floating[Any]],
) -> dict[str, Any]:
    """Add the decision boundary to the arrays; return its length, or why there is none."""
    try:
        line = decision_boundary(regions)
    except ValueError as error:  # regions too narrow for float64
        return {"boundary": None, "boundaryReason": str(error)}
    arrays["boundary"] = (line.points.numpy() * scale).astype(precision)
    arrays["boundaryFirst"] = line.first.numpy().astype(np.uint32)
    return {"boundary": line.length}


def at_centroids(regions: PlaneRegions) -> torch.Tensor:
    """Return the outputs at the centre of mass of every cell."""
    return regions.values(torch.arange(regions.cells), regions.centroids)


def corner_layers(regions: PlaneRegions) -> Array:
    """Return which operation switches on the edge from each corner to the next of its cell."""
    corners, first = regions.corners.numpy().astype(np.int64), regions.first.numpy()
    following = np.arange(1, len(corners) + 1)
    following[first[1:] - 1] = first[:-1]
    count = len(regions.vertices)
    ends = np.sort(regions.edges.numpy().astype(np.int64), axis=1)
    sides = np.sort(np.stack([corners, corners[following]], 1), axis=1)
    keys, wanted = ends[:, 0] * count + ends[:, 1], sides[:, 0] * count + sides[:, 1]
    order = np.argsort(keys)
    edge = order[np.searchsorted(keys[order], wanted)]
    layer = regions.switching_units.numpy()[edge, 0]
    return np.where(layer < 0, SIDE, np.minimum(layer, SIDE - 1)).astype(np.uint8)


def cut_in_time(
    network: ExploredNetwork,
    plane: ExploredPlane,
    *,
    centre: tuple[float, float],
    half: tuple[float, float],
    regions: int,
    seconds: float,
    on_layer: Callable[[str, int], None],
    side: float = 1.0,
) -> Generator[None, None, PlaneRegions]:
    """Return the regions of a window; where these are too many, of a smaller one in its middle.

    Args:
        network: The network.
        plane: The plane.
        centre: The middle of the window.
        half: Half its sides.
        regions: Cells, at most.
        seconds: Time, about.
        on_layer: Called with an operation and the number of cells once it has cut.
        side: The side of the smaller window that is tried first, relative to the window's.
    """
    clock = Deadline.after(seconds * 0.6)
    work = cut_middle(
        network, plane, centre=centre, half=half, regions=regions, on_layer=on_layer, side=side
    )
    try:
        while not clock.passed():
            next(work)
            yield
    except StopIteration as end:
        result: PlaneRegions = end.value
        return result
    finally:
        work.close()
    frame = plane.rebased(*centre)
    x = frame.origin[None].to(network.dtype).expand(3, *frame.origin.shape)
    steps = plane_regions.refine(
        network.f, x, plane=frame, domain=corners_of(half), regions=regions,
        seconds=seconds * 0.4, memory=MEMORY,
    )  # fmt: skip
    middle = yield from last_of(steps)
    if isinstance(middle, NotApplicable):
        raise ValueError(f"this window cannot be cut: {middle.reason}.")
    if middle is None:  # nothing was covered in time
        raise TimeSpentError
    assert isinstance(middle, PlaneRegions)
    return middle


def cut_middle(
    network: ExploredNetwork,
    plane: ExploredPlane,
    *,
    centre: tuple[float, float],
    half: tuple[float, float],
    regions: int,
    on_layer: Callable[[str, int], None],
    side: float = 1.0,
) -> Generator[None, None, PlaneRegions]:
    """Return the regions of a window, or of a smaller one in its middle that has few enough."""
    best: PlaneRegions | None = None
    reached = side
    for _ in range(TRIES):
        smaller = (half[0] * side, half[1] * side)
        part = yield from cut(
            network, plane, centre=centre, half=smaller, regions=regions, on_layer=on_layer
        )
        if not part.complete:
            if best is not None:
                break
            side *= 0.8 * max(part.covered, 0.01) ** 0.5
            continue
        best, reached = part, side
        if side == 1.0 or part.cells > regions / 3:
            break
        side = min(1.0, side * (0.6 * regions / part.cells) ** 0.5)
    if best is None or reached == 1.0:
        return part if best is None else best
    return replace(
        best, complete=False, covered=reached**2, ended_by="regions", asked=corners_of(half)
    )


def corners_of(half: tuple[float, float]) -> Float64[Tensor, "4 2"]:
    """Return the corners of a window around the origin."""
    return torch.tensor(CORNERS, dtype=torch.float64) * torch.tensor(half, dtype=torch.float64)
