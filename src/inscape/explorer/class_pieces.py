"""Class pieces: the cells that a decision boundary crosses, cut along it."""

from dataclasses import dataclass

import numpy as np
import torch

from inscape.explorer.subject import ExploredSubject
from inscape.explorer.wire import Array
from inscape.regions import PlaneRegions

#: Numbers that are held at a time.
BLOCK = 4_000_000

Polygon = list[tuple[float, float]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassPieces:
    """Convex polygons of one class each, that cover the cells with several classes.

    Polygon ``i`` has ``counts[i]`` of the ``vertices``, the class ``classes[i]`` and lies in the
    cell ``cells[i]``.
    """

    vertices: Array
    counts: Array
    classes: Array
    cells: Array


def class_pieces(subject: ExploredSubject, regions: PlaneRegions) -> ClassPieces:
    """Return the pieces of all cells on which more than one class is the largest; exact.

    On a convex cell with the same largest output at all corners no other is the largest anywhere.
    """
    points: list[tuple[float, float]] = []
    counts, classes, cells = [], [], []
    for cell in crossed_cells(subject, regions):
        for number, polygon in _pieces(subject, regions, cell):
            points += polygon
            counts.append(len(polygon))
            classes.append(number)
            cells.append(cell)
    return ClassPieces(
        vertices=np.array(points, np.float64).reshape(-1, 2),
        counts=np.array(counts, np.uint16),
        classes=np.array(classes, np.uint16),
        cells=np.array(cells, np.uint32),
    )


def crossed_cells(subject: ExploredSubject, regions: PlaneRegions) -> list[int]:
    """Return the cells whose corners have more than one class."""
    first = regions.first
    at_once = max(1, BLOCK // max(1, regions.intercepts.shape[1]) // 8)
    crossed: list[int] = []
    for begin in range(0, regions.cells, at_once):
        end = min(regions.cells, begin + at_once)
        cell = torch.repeat_interleave(torch.arange(begin, end), first[begin : end + 1].diff())
        corner = regions.corners[first[begin] : first[end]].long()
        outputs = regions.values(cell, regions.vertices[corner])
        winner = subject.scores(outputs).argmax(1).numpy()
        starts = (first[begin:end] - first[begin]).numpy()
        mixed = np.maximum.reduceat(winner, starts) != np.minimum.reduceat(winner, starts)
        crossed += (begin + np.flatnonzero(mixed)).tolist()
    return crossed


def _pieces(
    subject: ExploredSubject, regions: PlaneRegions, cell: int
) -> list[tuple[int, Polygon]]:
    """Return the classes that are largest somewhere on a cell, each with its polygon."""
    corners = regions.polygon(cell)
    at = torch.full((len(corners),), cell)
    scores = subject.scores(regions.values(at, corners))
    lower = float(scores.amax(1).min())
    rivals = (scores.amax(0) >= lower).nonzero().flatten().tolist()
    values = {number: scores[:, number].tolist() for number in rivals}
    places = [(u, v) for u, v in corners.tolist()]
    pieces = []
    for number in rivals:
        polygon, names = places, list(values)
        own_leads = [
            [values[number][k] - values[rival][k] for rival in names] for k in range(len(at))
        ]
        for rival in range(len(names)):
            polygon, own_leads = clipped(polygon, own_leads, rival)
        if len(polygon) > 2:
            pieces.append((number, polygon))
    return pieces


def clipped(
    polygon: Polygon, leads: list[list[float]], rival: int
) -> tuple[Polygon, list[list[float]]]:
    """Return the part of a convex polygon where an affine function is not negative.

    ``leads`` are the values of several affine functions at each corner, kept along.

    >>> square = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    >>> clipped(square, [[-1.0], [1.0], [1.0], [-1.0]], 0)[0]
    [(0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 1.0)]
    """
    clipped_polygon: Polygon = []
    clipped_leads: list[list[float]] = []
    for k, place in enumerate(polygon):
        before = k - 1
        a, b = leads[before][rival], leads[k][rival]
        if (a < 0) != (b < 0):
            t = a / (a - b)
            p = polygon[before]
            clipped_polygon.append((p[0] + t * (place[0] - p[0]), p[1] + t * (place[1] - p[1])))
            pairs = zip(leads[before], leads[k], strict=True)
            clipped_leads.append([x + t * (y - x) for x, y in pairs])
            clipped_leads[-1][rival] = 0.0
        if b >= 0:
            clipped_polygon.append(place)
            clipped_leads.append(leads[k])
    return clipped_polygon, clipped_leads
