"""Figure 5.1: an activation pattern turns a network into one affine map (printed wrongly)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
AXES: Axes = {"points": [1000]}


def cell(points: int) -> dict[str, Any]:
    """Return the affine map of the pattern, and whether any input has that pattern."""
    import torch

    from inscape._core.sampling import generator
    from inscape.piecewise.graph.network import piecewise

    model = network()
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


def network() -> Any:
    """Return the printed network."""
    import torch
    from torch import nn

    from inscape.boolean.line_networks import linear

    first, second, third = (
        linear(torch.tensor(w, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))
        for w, b in LAYERS
    )
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third).eval()


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the entries of the map."""
    return {
        f"map/{i + 1}/{column}": exact_estimate(entry, 1, method="in float64")
        for i, row in enumerate(records[0].values["map"])
        for column, entry in zip(COLUMNS, row, strict=True)
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how often print and arithmetic agree, and that the pattern belongs to no input."""
    rows = zip(records[0].values["map"], PRINTED, strict=True)
    same = sum(a == b for row in rows for a, b in zip(*row, strict=True))
    return [
        f"Of the 12 printed entries, {12 - same} are wrong.",
        "No input has this pattern: all weights of the second layer are at least 0, its inputs are "
        f"outputs of ReLUs, so its units see at least {records[0].values['bound']} and are always "
        f"on; the least seen was {records[0].values['least']:.3g}.",
    ]


def draw(records: Sequence[Record]) -> "Figure":
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


EXPERIMENT = Experiment(
    shows="Figure 5.1",
    title="Worked example: the affine map that an activation pattern selects",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 2.0,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=tuple(
        Value(
            name=f"entry-{i + 1}-{column}",
            says=f"Output {i + 1} has {number} at {column} (printed: {PRINTED[i][j]}).",
            of=f"map/{i + 1}/{column}",
            published=number,
            tolerance=0,
            at=(f"output {i + 1}", column),
            source="figure 5.1 as corrected by erratum S11",
        )
        for i, row in enumerate(CORRECTED)
        for j, (column, number) in enumerate(zip(COLUMNS, row, strict=True))
    ),
    errata=("S11",),
    notes=("The pattern is continued as an affine map, wherever it holds.",),
)
