"""What finding regions on a grid misses: tolerance, 16-bit weights, neighbours (section 6.3)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Axes, Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate
from inscape.papers.sattelberg._images import OPTIMIZERS, hash_of, seconds

#: Tolerances, relative to the larger of two Jacobians; the first is far above rounding.
TOLERANCES = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
#: Tolerance of everything else.
BASE = 1e-3
NETS = ("dense", "simple")
#: Convolutional networks are looked at on a grid of half of the side, in a small window with at
#: least one exact cell for every so many of them.
FEWER, POINTS = 2, 4
NAMES = {"sgd": "SGD", "adamw": "AdamW"}
Variant = Mapping[str, Any]


def sizes(grid: int) -> list[int]:
    """Return the grids: one of so many points on each side, of half and of a quarter of them."""
    return sorted({max(2, grid // 4), max(2, grid // 2), grid})


def variants(grid: int) -> list[Variant]:
    """Return the ways to look for regions."""
    base = {"method": "jacobian", "grid": grid, "tolerance": BASE, "neighbours": "row"}
    base |= {"weights": None, "dtype": "float64"}
    return [
        *({**base, "method": "pattern", "grid": size} for size in sizes(grid)),
        *({**base, "grid": size} for size in sizes(grid)[:-1]),
        *({**base, "tolerance": tolerance} for tolerance in TOLERANCES),
        *({**base, "neighbours": neighbours} for neighbours in ("4", "8")),
        {**base, "weights": "float16"},
        {**base, "tolerance": 1e-6, "dtype": "float32"},
    ]


def cell(data: str, net: str, optimizer: str, copy: int, epochs: int, grid: int) -> dict[str, Any]:
    """Train a network, and count its regions in every way."""
    from inscape.papers.sattelberg import _images, _sections
    from inscape.papers.sattelberg._sections import by_rows
    from inscape.piecewise.planes.frame import through
    from inscape.regions.grid_regions import GridRegions, grid_regions

    images = _sections.anchors(data, None)
    model = _images.trained(net, optimizer, data, epochs, copy)
    side, domain = grid, None
    if net == "dense":
        exact = _sections.cut(model, images)
    else:
        side = max(4, grid // FEWER)
        share, exact = _sections.small_window(model, images, side**2 // POINTS)
        domain = _sections.window(images, share)
    rows, different = [], {}
    for variant in variants(side):
        seen = grid_regions(model, images, plane=through(images), domain=domain, **variant)
        assert isinstance(seen, GridRegions)
        rows.append({**variant, "found": by_rows(seen.labels.numpy())})
        if variant["method"] == "pattern":
            different[str(variant["grid"])] = seen.distinct
    counts = {"cells": exact.cells, "regions": exact.regions, "complete": exact.complete}
    return {"rows": rows, "seen": different, **counts}


def count(record: Record, **wanted: Any) -> int:
    """Return what one way found; what is not named is as in the base."""
    base = {"method": "jacobian", "tolerance": BASE, "neighbours": "row", "weights": None}
    base |= {"dtype": "float64", "grid": max(row["grid"] for row in record.values["rows"])}
    wanted = {**base, **wanted}
    for row in record.values["rows"]:
        if all(row[name] == value for name, value in wanted.items()):
            return int(row["found"])
    raise KeyError(f"the record has no row with {wanted}: run it again.")


def log_ratios(records: Sequence[Record], one: Variant, two: Variant) -> list[float]:
    """Return the logarithm of the count of one way over that of another, for each network."""
    return [float(np.log(count(r, **one) / count(r, **two))) for r in records]


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return mean log ratios, and what grids of two sizes miss of the exact cells."""
    pooled = [record for record in records if record.settings["net"] != "dense"]
    found = {
        "patterns over jacobians": log_ratios(pooled, {"method": "pattern"}, {}),
        "rounded over whole": log_ratios(pooled, {"weights": "float16"}, {}),
        "loose over tight": log_ratios(records, {"tolerance": 1e-1}, {"tolerance": 1e-6}),
        "left and up over row": log_ratios(records, {"neighbours": "4"}, {}),
    }
    whole = [record for record in records if record.values["complete"]]
    if whole:
        fine, coarse = ([missed(r, shrink) for r in whole] for shrink in (1, 2))
        found["missed"] = fine
        found["missed less"] = [a - b for a, b in zip(coarse, fine, strict=True)]
    return {name: mean_estimate(values) for name, values in found.items() if values}


def missed(record: Record, shrink: int = 1) -> float:
    """Return the share of the exact cells that no point of a grid lies in."""
    grid = max(row["grid"] for row in record.values["rows"]) // shrink
    seen = record.values["seen"][str(grid)]
    return 1 - int(seen) / int(record.values["cells"])


def conclude(records: Sequence[Record]) -> list[str]:
    """Say counts by patterns and tolerances for each network."""
    said = []
    for record in records:
        own = record.settings
        name = f"{own['net']} {own['copy']} by {NAMES[own['optimizer']]}"
        exact = f"{'' if record.values['complete'] else 'at least '}{record.values['cells']} cells"
        exact += f" with {record.values['regions']} maps"
        by = ", ".join(f"{count(record, tolerance=t)} within {t:g}" for t in TOLERANCES)
        patterns = count(record, method="pattern")
        said.append(f"{name}: {exact}; {patterns} by patterns, by Jacobians {by}.")
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw what is found against the tolerance, and against the size of the grid."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    figure, (left, right) = panels(2, size=(3.3, 2.7))
    for record in records:
        colour = BLUE if record.settings["optimizer"] == "sgd" else VERMILION
        dash = "-" if record.settings["net"] == "dense" else "--"
        patterns = count(record, method="pattern")
        by = [count(record, tolerance=t) / patterns for t in TOLERANCES]
        left.plot(TOLERANCES, by, dash, color=colour, alpha=0.7, marker=".")
        top = max(row["grid"] for row in record.values["rows"])
        cells = record.values["cells"]
        seen = [record.values["seen"][str(p)] / cells for p in sizes(top)]
        right.plot(sizes(top), seen, dash, color=colour, alpha=0.7, marker=".")
    left.set(xscale="log", xlabel="tolerance", ylabel="by Jacobians over by patterns")
    right.set(xscale="log", xlabel="points on each side", ylabel="by patterns over exact cells")
    left.plot([], [], color=BLUE, label="SGD")
    left.plot([], [], color=VERMILION, label="AdamW")
    left.legend()
    for ax in (left, right):
        quiet_grid(ax)
    return figure


def _axes(data: str, copies: int, epochs: int, points: int) -> Axes:
    own = grid(data=data, net=list(NETS), optimizer=list(OPTIMIZERS))
    return grid(own, copy=list(range(1, copies + 1)), epochs=epochs, grid=points)


def guess(settings: Settings) -> float:
    """Guess the time of a cell: training, and all Jacobians."""
    dense = settings["net"] == "dense"
    points = 12 * (settings["grid"] / (1 if dense else FEWER)) ** 2
    own = points * (2e-3 if dense else 0.02) + (3 if dense else 40)
    return float(seconds(settings) + own)


EXPERIMENT = Experiment(
    shows="Section 6.3, finding regions on a grid",
    title="What tolerance, 16-bit weights and neighbours cost when regions are found on a grid",
    smoke=_axes("digits:n=64", 1, 1, 8),
    laptop=_axes("cifar10:n=20000", 3, 5, 32),
    paper=_axes("cifar10:n=50000", 5, 15, 256),
    departures={
        "smoke": ("64 of scikit-learn's digits, one epoch, a grid of 8 x 8 or less.",),
        "laptop": (
            "5 epochs instead of 15, and the first 20,000 of the 50,000 training images.",
            "A grid of 32 x 32, and 16 x 16 for convolutional networks.",
        ),
        "paper": ("The size of the dissertation's grid is not given.",),
    },
    cell=cell,
    data=hash_of,
    seconds=guess,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "patterns-more: patterns over jacobians > 0": "In convolutional networks activation "
            "patterns identify more regions than distances of Jacobians.",
            "sixteen-bits: rounded over whole < 0": "Weights of 16 bits make Jacobians miss "
            "regions of convolutional networks. | mean log ratio of the counts with rounded and "
            "with whole weights, t interval over networks",
            "tolerance: loose over tight < 0": "A tolerance leaves out boundaries at which the "
            "Jacobian changes little. | mean log ratio of the counts at tolerances 0.1 and "
            "0.000001, t interval over networks",
            "thin: missed > 0": "Regions that are thin enough pass through the gaps between "
            "points. | mean share of the exact cells without a point of the grid, t interval over "
            "networks",
            "tighter: missed less > 0": "A tighter grid makes this less likely. | mean share "
            "missed with half of the points on each side, minus that with all, t interval over "
            "networks",
            "neighbours: left and up over row > 0": "Comparing with more points of the row above "
            "joins parts of one region that fewer leave apart. | mean log ratio of the counts "
            "with two neighbours and with the row above, t interval over networks",
        },
        source="section 6.3",
        test="mean log ratio of the counts, t interval over networks",
    ),
    errata=("S17",),
    notes=(
        "Dense networks are looked at in the whole cross-section of figure 6.10, convolutional "
        "ones in a window around image A, as in figure 6.13. Unless said otherwise Jacobians are "
        "compared as in figure 6.12, in float64, within 0.001 of the larger one.",
        "Points with equal patterns or Jacobians are joined by the rule of figure 6.12 in both "
        "methods, which so differ only in what is compared; how many of the exact cells are missed "
        "is counted by different patterns.",
        "Weights of 16 bits are those of the trained network, rounded.",
    ),
)
