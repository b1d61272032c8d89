"""Sections 5.1 and 5.2: worked examples of activation patterns, and of a network for XOR."""

from collections.abc import Sequence
from math import comb
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate

#: Weights and biases of the three layers.
LAYERS = (
    (((3, 0, 4), (5, 9, 1), (6, 1, 2)), (7, 2, 9)),
    (((2, 9, 5), (1, 3, 3), (8, 7, 0)), (7, 7, 8)),
    (((7, 9, 6), (4, 0, 9), (7, 3, 7)), (5, 5, 2)),
)
#: Which units of the two hidden layers are on.
PATTERN = ((1, 0, 1), (0, 1, 0))
PRINTED = ((42, 0, 120, 695), (20, 0, 27, 376), (336, 21, 0, 562))
#: Erratum S11: matrix, and the vector as the last column.
CORRECTED = ((189, 27, 90, 374), (0, 0, 0, 5), (63, 9, 30, 125))
COLUMNS = ("x1", "x2", "x3", "constant")
WORKED = grid(points=1000)


def worked_cell(points: int) -> dict[str, Any]:
    """Return the affine map of the pattern, and whether any input has that pattern."""
    import torch

    from inscape._core.sampling import generator
    from inscape.piecewise.graph.network import piecewise

    model = worked_network()
    corners = torch.cat([torch.zeros(1, 3), torch.eye(3)]).double()
    pieces = piecewise(model, corners)
    pattern = [torch.tensor([row] * len(corners), dtype=torch.uint8) for row in PATTERN]
    values = pieces.values(corners, pattern)
    matrix = (values[1:] - values[0]).T
    x = 10 * torch.randn(points, 3, generator=generator(0), dtype=torch.float64)
    second = pieces.functions(x, 1)
    return {
        "map": torch.cat([matrix, values[:1].T], 1).tolist(),
        "least": float(second.min()),
        "bound": min(LAYERS[1][1]),
    }


def worked_network() -> Any:
    """Return the printed network."""
    import torch
    from torch import nn

    from inscape.boolean.line_networks import linear

    first, second, third = (
        linear(torch.tensor(w, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))
        for w, b in LAYERS
    )
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third).eval()


def analyse_worked(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the entries of the map."""
    return {
        f"map/{i + 1}/{column}": exact_estimate(entry, 1, method="in float64")
        for i, row in enumerate(records[0].values["map"])
        for column, entry in zip(COLUMNS, row, strict=True)
    }


def conclude_worked(records: Sequence[Record]) -> list[str]:
    """Say how often print and arithmetic agree, and that the pattern belongs to no input."""
    rows = zip(records[0].values["map"], PRINTED, strict=True)
    same = sum(a == b for row in rows for a, b in zip(*row, strict=True))
    return [
        f"Of the 12 printed entries, {12 - same} are wrong.",
        "No input has this pattern: all weights of the second layer are at least 0, its inputs are "
        f"outputs of ReLUs, so its units see at least {records[0].values['bound']} and are always "
        f"on; the least seen was {records[0].values['least']:.3g}.",
    ]


def draw_worked(records: Sequence[Record]) -> Figure:
    """Write the map as printed and as it is."""
    from inscape.figures.panels import panels
    from inscape.figures.style import INK, RULE, VERMILION

    ours = records[0].values["map"]
    figure, axes = panels(2, columns=2, size=(3.4, 1.9))
    for ax, table, title in zip(axes, (PRINTED, ours), ("printed", "corrected"), strict=True):
        ax.set(title=title, xlim=(-0.5, 3.5), ylim=(2.5, -0.5), yticks=[])
        ax.set_xticks(range(4), COLUMNS)
        for i, row in enumerate(table):
            for j, entry in enumerate(row):
                colour = INK if entry == ours[i][j] else VERMILION
                ax.text(j, i, f"{entry:g}", ha="center", va="center", color=colour)
        ax.plot([2.5, 2.5], [-0.5, 2.5], lw=0.7, color=RULE)
    return figure


FIGURE_5_1 = Experiment(
    shows="Figure 5.1",
    title="Worked example: the affine map that an activation pattern selects",
    settings=WORKED,
    cell=worked_cell,
    seconds=lambda settings: 2.0,
    analyse=analyse_worked,
    conclude=conclude_worked,
    draw=draw_worked,
    claims=claims(
        {
            f"entry-{i + 1}-{column}: map/{i + 1}/{column} = {number} ± 0": f"Output {i + 1} "
            f"has {number} at {column} (printed: {PRINTED[i][j]}). | output {i + 1} | "
            f"{column}"
            for i, row in enumerate(CORRECTED)
            for j, (column, number) in enumerate(zip(COLUMNS, row, strict=True))
        },
        source="figure 5.1 as corrected by erratum S11",
    ),
    errata=("S11",),
    notes=("The pattern is continued as an affine map, wherever it holds.",),
)
"""Figure 5.1: an activation pattern turns a network into one affine map (printed wrongly)."""


TABLE = {(-1, -1): -1, (-1, 1): 1, (1, -1): 1, (1, 1): -1}
#: Biases of the hidden units: as printed in (5.11), and as erratum S9 has them.
BIASES = {"printed": (1.0, 0.0), "corrected": (2.0, 0.0)}
#: Pieces by erratum S9: slope along x1 + x2, and constant.
PIECES = {"11": (-1, 1), "10": (1, 1), "01": (-2, -1), "00": (0, -1)}
XOR = grid(bias=["printed", "corrected"])


def xor_cell(bias: str) -> dict[str, Any]:
    """Return the values at the four points, all pieces, and which of them exist."""
    import torch

    from inscape.piecewise.graph.network import piecewise

    model = xor_network(BIASES[bias])
    x = torch.tensor(list(TABLE), dtype=torch.float64)
    pieces = piecewise(model, x)
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    maps = {}
    for name in PIECES:
        pattern = [torch.tensor([[int(bit) for bit in name]] * 3, dtype=torch.uint8)]
        values = pieces.values(corners, pattern)[:, 0]
        maps[name] = [float(values[1] - values[0]), float(values[2] - values[0]), float(values[0])]
    return {
        "values": pieces.values(x)[:, 0].tolist(),
        "maps": maps,
        "exists": {name: width(name, BIASES[bias]) > 0 for name in PIECES},
        "bound": sum(comb(3, i) for i in range(3)),
    }


def xor_network(bias: Sequence[float]) -> Any:
    """Return the network of (5.10) and (5.11) with these biases."""
    import torch
    from torch import nn

    from inscape.boolean.line_networks import linear

    first = linear(torch.ones(2, 2).double(), torch.tensor(bias).double())
    last = linear(torch.tensor([[1.0, -2.0]]).double(), torch.tensor([-1.0]).double())
    return nn.Sequential(first, nn.ReLU(), last).eval()


def width(pattern: str, bias: Sequence[float]) -> float:
    """Return how wide the band of a pattern is along x1 + x2: 0 where there is none.

    A unit is on where x1 + x2 lies above minus its bias.
    """
    on = [-b for bit, b in zip(pattern, bias, strict=True) if bit == "1"]
    off = [-b for bit, b in zip(pattern, bias, strict=True) if bit == "0"]
    return max(0.0, min(off, default=float("inf")) - max(on, default=-float("inf")))


def analyse_xor(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return values and pieces of the corrected network."""
    values = next(r.values for r in records if r.settings["bias"] == "corrected")
    found = {f"at {x}": y for x, y in zip(TABLE, values["values"], strict=True)}
    for name, (first, second, constant) in values["maps"].items():
        found |= {f"{name}/x1": first, f"{name}/x2": second, f"{name}/constant": constant}
    found["regions"] = float(sum(values["exists"].values()))
    found["regions of 01"] = float(values["exists"]["01"])
    found["most of three lines"] = float(values["bound"])
    return {name: exact_estimate(value) for name, value in found.items()}


def conclude_xor(records: Sequence[Record]) -> list[str]:
    """Say what the printed bias gives."""
    values = next(r.values for r in records if r.settings["bias"] == "printed")
    shown = ", ".join(f"{y:g}" for y in values["values"])
    return [f"With the printed bias (1, 0) the network gives {shown} at the four points."]


def draw_xor(records: Sequence[Record]) -> Figure:
    """Draw the problem and the network."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    figure, (left, right) = panels(2, columns=2, size=(2.8, 2.6))
    for (x1, x2), y in TABLE.items():
        colour = BLUE if y > 0 else VERMILION
        left.plot(x1, x2, "o", ms=11, color=colour)
        left.text(x1, x2 - 0.35, f"{y:+d}", ha="center", va="center", fontsize=8)
    left.set(title="(a) the problem", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), xlabel="x1", ylabel="x2")
    quiet_grid(left)
    _graph(right, BIASES["corrected"])
    right.set_title("(b) the network")
    return figure


def _graph(ax: Panel, bias: Sequence[float]) -> None:
    from inscape.figures.style import INK, RULE, VERMILION

    inputs, hidden, output = ((0.0, 1.0), (0.0, -1.0)), ((1.0, 1.0), (1.0, -1.0)), (2.0, 0.0)
    edges = [(a, b, "1") for a in inputs for b in hidden]
    edges += [(hidden[0], output, "1"), (hidden[1], output, "-2")]
    line = {"arrowstyle": "-", "color": RULE, "shrinkA": 10, "shrinkB": 10}
    for start, end, word in edges:
        ax.annotate("", xy=end, xytext=start, arrowprops=line)
        x, y = (0.7 * a + 0.3 * b for a, b in zip(start, end, strict=True))
        ax.text(x, y + 0.13, word, fontsize=7, ha="center")
    names = {inputs[0]: "x1", inputs[1]: "x2", output: "-1"}
    names |= {unit: f"{b:g}" for unit, b in zip(hidden, bias, strict=True)}
    for place, name in names.items():
        edge = VERMILION if place in hidden else INK
        ax.plot(*place, "o", ms=20, mfc="none", mec=edge)
        ax.text(*place, name, ha="center", va="center", fontsize=8)
    ax.set(xlim=(-0.4, 2.4), ylim=(-1.7, 1.7))
    ax.axis("off")


FIGURE_5_2 = Experiment(
    shows="Figure 5.2",
    title="A network with two hidden units for XOR, and its pieces",
    settings=XOR,
    cell=xor_cell,
    seconds=lambda settings: 2.0,
    analyse=analyse_xor,
    conclude=conclude_xor,
    draw=draw_xor,
    claims=claims(
        {
            **{
                f"at{x1:+d}{x2:+d}: at ({x1}, {x2}) = {y} ± 0": f"At ({x1}, {x2}) the network "
                f"gives {y}. | x = ({x1}, {x2}) | output"
                for (x1, x2), y in TABLE.items()
            },
            **{
                f"piece-{name}-{column}: {name}/{column} = {number} ± 0": "The affine map of "
                f"pattern {name} has {number} at {column}. | pattern {name} | {column}"
                for name, (slope, constant) in PIECES.items()
                for column, number in (("x1", slope), ("x2", slope), ("constant", constant))
            },
            "regions: regions = 3 ± 0": "The plane has three regions. | network | regions",
            "empty: regions of 01 = 0 ± 0": "The region of pattern 01 is empty. | pattern 01 | "
            "regions",
            "bound: most of three lines = 7 ± 0": "Three lines make at most 7 regions of the "
            "plane. | three lines | regions at most",
        },
        source="section 5.2 with erratum S9",
    ),
    errata=("S9",),
)
"""Figure 5.2: a network of two ReLU units that solves XOR (with another bias than printed)."""


PATTERNS = ("11", "10", "01", "00")
#: The square on which the plane is cut: all of the bands of either bias cross it.
HALF = 2.0
PLANE = grid(bias=["printed", "corrected"])


def plane_cell(bias: str) -> dict[str, Any]:
    """Cut the plane, and with it three lines in general position."""
    from inscape.papers.sattelberg._planes import packed

    found = _cut(xor_network(BIASES[bias]))
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


def analyse_plane(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the counts of the corrected network."""
    values = next(r.values for r in records if r.settings["bias"] == "corrected")
    return {
        "regions": exact_estimate(float(values["cells"])),
        "area of 01": exact_estimate(float(values["areas"]["01"])),
        "three lines": exact_estimate(float(values["three lines"])),
        "bound": exact_estimate(float(values["bound"])),
    }


def conclude_plane(records: Sequence[Record]) -> list[str]:
    """Say what part of the square each pattern has."""
    said = []
    for record in records:
        total = sum(record.values["areas"].values())
        shares = (f"{k} {v / total:.1%}" for k, v in record.values["areas"].items())
        bias = BIASES[record.settings["bias"]]
        said.append(f"With the {record.settings['bias']} bias {bias}: {', '.join(shares)}.")
    return said


def draw_plane(records: Sequence[Record]) -> Figure:
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


FIGURE_5_3 = Experiment(
    shows="Figure 5.3",
    title="Linear regions and surface of a network that solves XOR",
    settings=PLANE,
    cell=plane_cell,
    seconds=lambda settings: 3.0,
    analyse=analyse_plane,
    conclude=conclude_plane,
    draw=draw_plane,
    claims=claims(
        {
            "regions: regions = 3 ± 0": "There are three linear regions. | XOR | regions",
            "empty: area of 01 = 0 ± 0": "The region of pattern 01 is empty. | 01 | area",
            "bound: bound = 7 ± 0": "Three lines make at most 7 regions, by (5.15). | three lines "
            "| regions at most",
            "reached: three lines = 7 ± 0": "Three lines in the plane can make 7 regions. | three "
            "lines | regions",
        },
        source="section 5.2",
    ),
    errata=("S9",),
    notes=(
        "The network has the biases of erratum S9; with the printed ones it does not solve XOR.",
        "Cut exactly on [-2, 2]²; the size of the printed plane is not said.",
    ),
)
"""Figure 5.3: the three linear regions of a network that solves XOR, and its surface."""
