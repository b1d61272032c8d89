"""The two-dimensional problems of chapters 6 and 7, and how lines bend in deep networks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate

if TYPE_CHECKING:
    from inscape.papers.sattelberg._planes import Cells


PROBLEMS_TITLES = {"circle": "circle versus annulus", "xor": "with XOR"}
PROBLEMS = grid(problem=list(PROBLEMS_TITLES), n=1000, seed=0)


def problems_cell(problem: str, n: int, seed: int) -> dict[str, Any]:
    """Draw the points of one problem."""
    from inscape.papers.sattelberg._toy import points

    x, y = points(problem, n, seed)
    return {"x": x.numpy(), "y": y[:, 0].numpy(), "share": float(y.mean())}


def draw_problems(records: Sequence[Record]) -> Figure:
    """Draw both problems."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._toy import scatter

    figure, axes = panels(len(records), size=(2.7, 2.7))
    for ax, record in zip(axes, records, strict=True):
        scatter(ax, record.values["x"], record.values["y"])
        ax.set(title=PROBLEMS_TITLES[record.settings["problem"]], xlabel="x1", ylabel="x2")
    return figure


FIGURE_6_1 = Experiment(
    shows="Figure 6.1",
    title="Circle versus annulus, alone and combined with XOR",
    smoke=grid(PROBLEMS, n=100),
    settings=PROBLEMS,
    departures={"smoke": ("100 points.",)},
    cell=problems_cell,
    draw=draw_problems,
    errata=("S15",),
    notes=(
        "The radii are those of section 4.2.1. How XOR is combined with the circles is not said in "
        "the text: here the classes are swapped where x1 x2 < 0.",
    ),
)
"""Figure 6.1: circle versus annulus, and the same with classes swapped in two quadrants."""


PAIR_TITLES = {"four points": "XOR", "circle": "circle versus annulus"}
PAIR = grid(problem=list(PAIR_TITLES), n=1000, seed=0)


def pair_cell(problem: str, n: int, seed: int) -> dict[str, Any]:
    """Return the points of one problem."""
    import numpy as np

    from inscape.papers.sattelberg._toy import points
    from inscape.papers.sattelberg.xor_by_hand import TABLE

    if problem == "four points":
        return {"x": np.array(list(TABLE), float), "y": np.array(list(TABLE.values())) > 0}
    x, y = points(problem, n, seed)
    return {"x": x.numpy(), "y": y[:, 0].numpy()}


def draw_pair(records: Sequence[Record]) -> Figure:
    """Draw both problems."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._toy import scatter

    figure, axes = panels(len(records), size=(2.7, 2.7))
    for ax, record in zip(axes, records, strict=True):
        scatter(
            ax, record.values["x"], record.values["y"], 40 if len(record.values["y"]) < 9 else 5
        )
        ax.set(title=PAIR_TITLES[record.settings["problem"]], xlabel="x1", ylabel="x2")
    return figure


FIGURE_7_1 = Experiment(
    shows="Figure 7.1",
    title="Two problems of two classes: XOR, and circle versus annulus",
    smoke=grid(PAIR, n=100),
    settings=PAIR,
    departures={"smoke": ("100 points.",)},
    cell=pair_cell,
    draw=draw_pair,
)
"""Figure 7.1: the XOR problem, and circle versus annulus."""


LAYERS, WIDTH = 3, 2
#: Half of the side of the square that is cut.
HALF = 3.0
#: Sine of the angle from which on a line counts as bent; rounding to float32 stays far below.
BENT = 1e-3
BENDS = grid(seed=list(range(10)))


def bends_cell(seed: int) -> dict[str, Any]:
    """Cut the plane by a random network, and look for bends at places without an earlier line."""
    import torch

    from inscape.models import mlp
    from inscape.papers.sattelberg._planes import Cells, packed
    from inscape.regions.plane_regions import plane_regions

    model = mlp(2, *[WIDTH] * LAYERS, 1, init="he_normal", seed=seed, dtype=torch.float64)
    draw = torch.Generator().manual_seed(seed)
    for module in model:
        if isinstance(module, torch.nn.Linear):  # biases of zero would cut at the origin only
            module.bias.data = torch.randn(len(module.bias), generator=draw, dtype=torch.float64)
    square = HALF * torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()
    found: Any = plane_regions(model, square, domain=square)
    arrays = packed(found)
    counts = [bent(Cells.of(arrays), layer) for layer in range(LAYERS)]
    return {
        "cells": found.cells,
        "bends": [both for both, _ in counts],
        "stray": [stray for _, stray in counts],
        **arrays,
    }


def bent(cells: "Cells", layer: int) -> tuple[int, int]:
    """Return at how many vertices lines of a layer bend, and at how many of them for no reason.

    The reason is an edge of an earlier layer at the same vertex.
    """
    bends = stray = 0
    for unit in range(WIDTH):
        own = np.nonzero((cells.makers == (layer, unit)).all(1))[0]
        ends = cells.edges[own]
        for vertex in np.unique(ends).tolist():
            steps = [_away(cells, edge, vertex) for edge in ends[(ends == vertex).any(1)]]
            if len(steps) != 2 or not _turns(*steps):
                continue
            meets = cells.makers[(cells.edges == vertex).any(1), 0]
            bends += 1
            stray += not bool(((meets >= 0) & (meets < layer)).any())
    return bends, stray


def _away(cells: "Cells", edge: Any, vertex: int) -> Any:
    """Return the direction of an edge away from one of its ends."""
    other = edge[0] if edge[1] == vertex else edge[1]
    step = cells.vertices[other].astype(float) - cells.vertices[vertex]
    return step / np.linalg.norm(step)


def _turns(one: Any, two: Any) -> bool:
    """Tell whether two directions do not lie on one line."""
    return bool(abs(one[0] * two[1] - one[1] * two[0]) > BENT)


def analyse_bends(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the bends over all networks."""
    bends, stray = (
        np.array([record.values[name] for record in records]).sum(0) for name in ("bends", "stray")
    )
    return {
        "bends of the first layer": exact_estimate(float(bends[0])),
        "bends for no reason": exact_estimate(float(stray.sum())),
    }


def conclude_bends(records: Sequence[Record]) -> list[str]:
    """Count the bends of every layer."""
    bends = np.array([record.values["bends"] for record in records]).sum(0)
    return [f"Lines bend at {', '.join(map(str, bends))} places in layers 1 to {LAYERS}."]


def draw_bends(records: Sequence[Record]) -> Figure:
    """Draw one layer in each column, one unit in each row, of the network with most bends."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, RULE
    from inscape.papers.sattelberg._planes import Cells, bends, tiles

    most = max(records, key=lambda record: sum(record.values["bends"]))
    cells = Cells.of(most.values)
    figure, axes = panels(LAYERS * WIDTH, columns=LAYERS, size=(2.1, 2.2))
    for k, ax in enumerate(axes):
        unit, layer = divmod(k, LAYERS)
        tiles(ax, cells, np.full((len(cells), 3), 0.97))
        for before in range(layer):
            bends(ax, cells, before, colors=RULE)
        own = (cells.makers == (layer, unit)).all(1)
        ends = cells.vertices[cells.edges[own]]
        ax.plot(ends[..., 0].T, ends[..., 1].T, color=BLUE, lw=1.4)
        ax.set_title(f"layer {layer + 1}, unit {unit + 1}")
    return figure


FIGURE_6_7 = Experiment(
    shows="Figure 6.7",
    title="Lines of later layers bend at those of earlier layers",
    smoke=grid(seed=[0, 1]),
    settings=BENDS,
    departures={"smoke": ("Two networks.",)},
    cell=bends_cell,
    seconds=lambda settings: 3.0,
    analyse=analyse_bends,
    conclude=conclude_bends,
    draw=draw_bends,
    claims=claims(
        {
            "straight: bends of the first layer = 0 ± 0": "A first hidden layer can only make "
            "lines in its input space. | layer 1 | bends",
            "bends: bends for no reason = 0 ± 0": "Lines of later layers bend where they meet "
            "lines of earlier layers, and nowhere else. | all layers | bends elsewhere",
        },
        source="section 6.2",
    ),
    notes=(
        "The weights behind the printed figure are not given: here ten random networks of three "
        "layers of two units, He's weights and normal biases, are cut on [-3, 3]², and the one "
        "with most bends is drawn.",
    ),
)
"""Figure 6.7: the lines of later layers bend where they meet those of earlier ones."""
