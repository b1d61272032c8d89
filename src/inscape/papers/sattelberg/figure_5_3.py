"""Figure 5.3: the three linear regions of a network that solves XOR, and its surface."""

from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg.figure_5_2 import BIASES, TABLE, network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATTERNS = ("11", "10", "01", "00")
#: The square on which the plane is cut: all of the bands of either bias cross it.
HALF = 2.0
AXES: Axes = {"bias": ["printed", "corrected"]}


def cell(bias: str) -> dict[str, Any]:
    """Cut the plane, and with it three lines in general position."""
    from inscape.papers.sattelberg._planes import packed

    found = _cut(network(BIASES[bias]))
    on = ["".join(map(str, row)) for row in found.pattern(0).tolist()]
    areas = dict.fromkeys(PATTERNS, 0.0)
    for name, area in zip(on, found.areas.tolist(), strict=True):
        areas[name] += area
    return {
        "cells": found.cells,
        "regions": found.regions,
        "areas": areas,
        "three lines": _cut(three_lines()).cells,
        "bound": sum(comb(3, k) for k in range(3)),
        **packed(found),
    }


def three_lines() -> Any:
    """Return a network whose three units have lines that cross each other in three places."""
    import torch
    from torch import nn

    from inscape.boolean.line_networks import linear

    directions = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]).double()
    first = linear(directions, torch.tensor([0.0, 0.0, 1.0]).double())
    last = linear(torch.tensor([[1.0, 2.0, 4.0]]).double(), torch.zeros(1).double())
    return nn.Sequential(first, nn.ReLU(), last).eval()


def _cut(model: Any) -> Any:
    import torch

    from inscape.regions.plane_regions import plane_regions

    corners = HALF * torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()
    return plane_regions(model, corners, domain=corners)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the counts of the corrected network."""
    values = next(r.values for r in records if r.settings["bias"] == "corrected")
    return {
        "regions": exact_estimate(float(values["cells"])),
        "area of 01": exact_estimate(float(values["areas"]["01"])),
        "three lines": exact_estimate(float(values["three lines"])),
        "bound": exact_estimate(float(values["bound"])),
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what part of the square each pattern has."""
    said = []
    for record in records:
        total = sum(record.values["areas"].values())
        shares = (f"{k} {v / total:.1%}" for k, v in record.values["areas"].items())
        bias = BIASES[record.settings["bias"]]
        said.append(f"With the {record.settings['bias']} bias {bias}: {', '.join(shares)}.")
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the regions and the surface of the corrected network."""
    from matplotlib.figure import Figure

    from inscape.figures.style import BLUE, INK, VERMILION
    from inscape.papers.sattelberg._planes import Cells, bends, class_lines, signs, surface

    cells = Cells.of(next(r.values for r in records if r.settings["bias"] == "corrected"))
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    left = figure.add_subplot(1, 2, 1)
    right: Any = figure.add_subplot(1, 2, 2, projection="3d")
    signs(left, cells)
    bends(left, cells)
    class_lines(left, cells, INK, 0.6)
    surface(right, cells)
    for (x1, x2), y in TABLE.items():
        colour = BLUE if y > 0 else VERMILION
        left.plot(x1, x2, "o", color=colour)
        right.scatter(x1, x2, y, color=colour, depthshade=False)
    left.set_title("bands of the plane")
    right.set_title("surface")
    return figure


def _claim(name: str, says: str, of: str, published: float, at: tuple[str, str]) -> Value:
    return Value(
        name=name, says=says, of=of, published=published, tolerance=0, at=at, source="section 5.2"
    )


EXPERIMENT = Experiment(
    shows="Figure 5.3",
    title="Linear regions and surface of a network that solves XOR",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 3.0,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        _claim("regions", "There are three linear regions.", "regions", 3, ("XOR", "regions")),
        _claim("empty", "The region of pattern 01 is empty.", "area of 01", 0, ("01", "area")),
        _claim(
            "bound",
            "Three lines make at most 7 regions, by (5.15).",
            "bound",
            7,
            ("three lines", "regions at most"),
        ),
        _claim(
            "reached",
            "Three lines in the plane can make 7 regions.",
            "three lines",
            7,
            ("three lines", "regions"),
        ),
    ),
    errata=("S9",),
    notes=(
        "The network has the biases of erratum S9; with the printed ones it does not solve XOR.",
        "Cut exactly on [-2, 2]²; the size of the printed plane is not said.",
    ),
)
