"""Cross-sections of image networks: the plane through the three closest images (section 6.3)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape.lab.experiment import Estimate, Figure, Panel, Settings
from inscape.lab.statistics import mean_estimate, paired_difference
from inscape.lab.store import Record
from inscape.papers.sattelberg import _images
from inscape.papers.sattelberg import closest_images as _triple

if TYPE_CHECKING:
    from inscape.regions.plane_regions import PlaneRegions

NAMES = {"sgd": "SGD", "adamw": "AdamW"}
#: What the searches of figures 6.8 and 6.9 found, by the hash of the data and the class that is
#: searched: cells need not search again.
FOUND: dict[tuple[str, int | None], list[int]] = {
    ("aaffa62b9d417a18ad2668165e77278feb3a492f6881a159fb6feb278304468f", None): [3418, 7089, 13955],
    ("c2d61341d8c5e5c46ed2c348ad5eba2e125c18b726997dc9b8a5148b2c0bab64", 0): [2066, 30926, 51002],
}
#: The smallest window around image A, as a share of the way to B; how many times the cells that it
#: must have are too many.
SMALLEST, TOO_MANY = 1e-4, 20
#: Copies whose cells are kept for the drawing, as the dissertation shows two of each.
SHOWN = (1, 2)


@lru_cache(maxsize=2)
def anchors(data: str, only: int | None) -> Float[Tensor, "3 3 32 32"]:
    """Return the three images nearest to each other, as the networks see them."""
    known = FOUND.get((_images.data_hash(data), only))
    chosen = _triple.triple(data, only)["indices"] if known is None else known
    return _images.prepared(data).x[chosen].contiguous()


def window(images: Float[Tensor, "3 3 32 32"], share: float) -> Float64[Tensor, "4 2"]:
    """Return a square around image A, of a half side that is this share of the way to B."""
    from inscape.piecewise.planes.frame import through

    half = share * float(through(images).of(images)[1].norm())
    corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return half * corners.double()


def cut(
    model: torch.nn.Module,
    images: Float[Tensor, "3 3 32 32"],
    domain: Float64[Tensor, "4 2"] | None = None,
    **budget: Any,
) -> "PlaneRegions":
    """Return the cells of a network in the plane of three images, by default all around them."""
    from inscape.piecewise.planes.frame import through
    from inscape.regions.plane_regions import PlaneRegions, plane_regions

    found = plane_regions(model, images, plane=through(images), domain=domain, **budget)
    assert isinstance(found, PlaneRegions)  # networks of section 6.1 are piecewise linear
    return found


def small_window(
    model: torch.nn.Module, images: Float[Tensor, "3 3 32 32"], least: int
) -> tuple[float, "PlaneRegions"]:
    """Return a window around image A with at least so many cells, and the cells.

    Windows double from ``SMALLEST`` of the way to B on, up to the whole way.
    """
    share = SMALLEST
    while True:
        found = cut(model, images, window(images, share), regions=TOO_MANY * least)
        if found.cells >= least or share >= 1:
            return share, found
        share *= 2


def through_a(found: "PlaneRegions") -> float:
    """Return the share of the edges whose lines pass through image A, the origin of the plane."""
    ends = found.vertices[found.edges[found.switching_units[:, 0] >= 0].long()]
    if not len(ends):
        return 0.0
    step = ends[:, 1] - ends[:, 0]
    apart = (ends[:, 0, 0] * step[:, 1] - ends[:, 0, 1] * step[:, 0]).abs() / step.norm(dim=1)
    return float((apart < 1e-6 * found.domain.abs().max()).double().mean())


def by_rows(labels: npt.NDArray[Any]) -> int:
    """Return the number of regions on a grid if equal labels are joined by figure 6.12's rule.

    A point is compared with its left neighbour, and with the row before from the diagonal on the
    left to the end.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = np.arange(labels.size).reshape(labels.shape)
    same = labels[:, 1:] == labels[:, :-1]
    pairs = [np.stack([place[:, 1:][same], place[:, :-1][same]])]
    for row in range(1, len(labels)):
        alike = np.triu(labels[row][:, None] == labels[row - 1], -1)
        here, before = np.nonzero(alike)
        pairs.append(np.stack([place[row][here], place[row - 1][before]]))
    ends = np.concatenate(pairs, 1)
    graph = coo_array((np.ones(ends.shape[1], bool), (ends[0], ends[1])), (labels.size,) * 2)
    return int(connected_components(graph, directed=False)[0])


def dense_cell(
    data: str, only: int | None, optimizer: str, copy: int, epochs: int
) -> dict[str, Any]:
    """Train a dense network and cut the whole cross-section by it."""
    from inscape.papers.sattelberg._planes import Cells, boundary, packed

    given, images = _images.prepared(data), anchors(data, only)
    model = _images.trained("dense", optimizer, data, epochs, copy)
    found = cut(model, images)
    arrays = packed(found)
    return {
        "accuracy": 100 * _images.accuracy(model, given.x_test, given.y_test),
        "cells": found.cells,
        "regions": found.regions,
        "class lines": len(boundary(Cells.of(arrays))),
        "places": found.frame.of(images).tolist(),
        **(arrays if copy in SHOWN else {}),
    }


def dense_analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the number of regions by each optimizer, and the ratio of both for each copy."""
    by = {name: _of(records, name) for name in NAMES}
    results = {
        f"regions/{name}": mean_estimate([float(np.log10(n)) for n in own.values()])
        for name, own in by.items()
        if own
    }
    both = sorted(set(by["sgd"]) & set(by["adamw"]))
    if both:
        results["sgd over adamw"] = paired_difference(
            *([float(np.log(by[name][copy])) for copy in both] for name in NAMES)
        )
    return results


def _of(records: Sequence[Record], optimizer: str) -> dict[int, int]:
    own = (record for record in records if record.settings["optimizer"] == optimizer)
    return {record.settings["copy"]: record.values["regions"] for record in own}


def dense_conclude(records: Sequence[Record]) -> list[str]:
    """Say the numbers of regions."""
    said = []
    for name, word in NAMES.items():
        counts = list(_of(records, name).values())
        if counts:
            said.append(f"{word}: {', '.join(f'{n:,}' for n in counts)}")
    return [f"Regions in the cross-section, one number for each network. {'; '.join(said)}."]


def dense_draw(records: Sequence[Record]) -> Figure:
    """Draw the regions of the first two copies by both optimizers."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._planes import Cells, class_lines, tiles

    shown = [record for record in records if "vertices" in record.values]
    shown.sort(key=lambda r: (r.settings["optimizer"] != "sgd", r.settings["copy"]))
    figure, axes = panels(len(shown), columns=2, size=(3.0, 3.1))
    for ax, record in zip(axes, shown, strict=True):
        cells = Cells.of(record.values)
        tiles(ax, cells)
        class_lines(ax, cells)
        letters(ax, record.values["places"])
        word = NAMES[record.settings["optimizer"]]
        ax.set_title(f"dense {record.settings['copy']}, {word}: {record.values['regions']} regions")
    return figure


def letters(ax: Panel, places: Sequence[Sequence[float]]) -> None:
    """Mark where the three images are."""
    for letter, (u, v) in zip("ABC", places, strict=True):
        ax.plot(u, v, "o", color="white", mec="black", ms=4)
        ax.annotate(letter, (u, v), xytext=(4, 4), textcoords="offset points", fontsize=8)


def dense_seconds(settings: Settings) -> float:
    """Guess the time of a cell: reading the data, training, cutting."""
    return _images.seconds({**settings, "net": "dense"}) + 3
