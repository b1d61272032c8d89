"""Levels of a saved slice: exact windows with all that hovering shows, to be kept in a file."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from inscape.explorer.cells import cell_arrays, cut_in_time
from inscape.explorer.colours import cell_colours
from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredNetwork, ExploredSubject
from inscape.explorer.wire import Array
from inscape.regions import PlaneRegions

#: Outputs whose map is kept for every cell: the largest.
MAPS = 5
#: Units of an operation whose states are kept.
UNITS = 64
#: Cells whose activation patterns are kept, in bytes of all of them.
PATTERNS = 1_500_000
#: Cells of the wider window, which is seen when one zooms out.
WIDER_CELLS = 4000
#: How much wider it is.
WIDER = 4.0
#: Points that are computed at a time, in numbers of their inputs.
BLOCK = 4_000_000
#: Seconds that the errors of all maps may take.
ERRORS = 30.0

Facts = dict[str, Any]
Steps = Generator[None, None, tuple[Facts, dict[str, Array]]]


@dataclass(frozen=True, kw_only=True)
class SavedWindow:
    """A window of a plane that is to be saved: its centre, half its sides, and how many cells."""

    centre: tuple[float, float]
    half: tuple[float, float]
    cells: int
    seconds: float = 60.0


def saved_level(
    subject: ExploredSubject, network: ExploredNetwork, plane: ExploredPlane, window: SavedWindow
) -> Steps:
    """Return an exact window in double precision, with maps, patterns and errors of its cells."""
    regions = yield from cut_in_time(
        network, plane, centre=window.centre, half=window.half, regions=window.cells,
        seconds=window.seconds, on_layer=lambda layer, cells: None,
    )  # fmt: skip
    facts, arrays = cell_arrays(subject, regions, window.half, np.float64)
    for by in ("pattern", "map"):
        arrays[by] = cell_colours(regions, by)
        yield
    maps = cell_maps(regions)
    patterns, more = cell_patterns(regions)
    errors = yield from cell_errors(network, regions)
    facts |= {"centre": list(window.centre), "half": list(window.half), **more, **errors[0]}
    return facts, {**arrays, **maps, **patterns, **errors[1]}


def cell_maps(regions: PlaneRegions) -> dict[str, Array]:
    """Return the largest outputs in the middle of each cell: their numbers, values and slopes."""
    middle = regions.values(torch.arange(regions.cells), regions.centroids)
    count = min(MAPS, middle.shape[1])
    best = middle.topk(count, dim=1).indices
    slopes = regions.slopes.gather(1, best[..., None].expand(-1, -1, 2))
    return {
        "mapOutputs": best.numpy().astype(np.uint16).reshape(-1),
        "mapValues": middle.gather(1, best).numpy().astype(np.float32).reshape(-1),
        "mapSlopes": slopes.numpy().astype(np.float32).reshape(-1),
    }


def cell_patterns(regions: PlaneRegions) -> tuple[dict[str, Array], Facts]:
    """Return the states of the first units of every operation, and how many are on in all."""
    shown = [min(UNITS, units) for units in regions.units]
    facts = {"layerUnits": list(regions.units), "layerStates": list(regions.states)}
    if sum(shown) * regions.cells > PATTERNS:
        return {}, facts
    columns, counts = [], []
    for op, units in enumerate(shown):
        pattern = regions.pattern(op)
        columns.append(pattern[:, :units].numpy().astype(np.uint8))
        counts.append((pattern != 0).sum(1).numpy().astype(np.uint32))
    states = np.concatenate(columns, 1) if columns else np.zeros((regions.cells, 0), np.uint8)
    on = np.stack(counts, 1) if counts else np.zeros((regions.cells, 0), np.uint32)
    return {"states": states.reshape(-1), "on": on.reshape(-1)}, facts


def cell_errors(network: ExploredNetwork, regions: PlaneRegions) -> Steps:
    """Return the largest difference of map and network at places of every cell, in float64.

    These are the middle and the corners, drawn inwards; the middle alone where that takes long.
    """
    counts = regions.first.diff()
    cell = torch.repeat_interleave(torch.arange(regions.cells), counts)
    corner = regions.vertices[regions.corners.long()]
    at = regions.centroids[cell] + 0.999 * (corner - regions.centroids[cell])
    places = int(counts.max()) + 1
    if network.pace * (len(at) + regions.cells) > ERRORS:
        cell, at, places = torch.arange(regions.cells), regions.centroids, 1
    else:
        cell = torch.cat([cell, torch.arange(regions.cells)])
        at = torch.cat([at, regions.centroids])
    worst = torch.zeros(regions.cells, dtype=torch.float64)
    rows = max(1, BLOCK // regions.origin.numel())
    for part in torch.split(torch.arange(len(at)), rows):
        outputs = network.outputs(regions.frame.at(at[part]), double=True)
        off = (outputs - regions.values(cell[part], at[part])).abs().amax(1)
        worst.scatter_reduce_(0, cell[part], off, "amax")
        yield
    return {"errorPlaces": places}, {"errors": worst.numpy().astype(np.float32)}


def wider(plane: ExploredPlane, window: SavedWindow) -> SavedWindow:
    """Return the wider window around a window, and the first of the plane where that is wider."""
    half = max(max(window.half) * WIDER, max(plane.half))
    return SavedWindow(
        centre=window.centre, half=(half, half), cells=WIDER_CELLS, seconds=window.seconds
    )
