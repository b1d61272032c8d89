"""Figure 4.4: a hexagon is a triangle whose sides were moved apart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Distance of the three lines from the centre, for a hexagon whose sides are one apart from it.
SIZES = (1.0, 0.5, 0.1, 0.0)
AXES: Axes = {"size": list(SIZES)}


def cell(size: float) -> dict[str, Any]:
    """Return the triangle of three units at angles of 120 degrees, and the hexagon around it."""
    from inscape.regions.closed_regions import from_weights

    angles = np.pi / 2 + 2 * np.pi / 3 * np.arange(3)
    weight = np.column_stack([np.cos(angles), np.sin(angles)])
    bias = np.full(3, -size)
    found = from_weights(weight, bias, -np.ones(3), 1.0)
    ring = found.region().numpy()
    pairs = [(0, 1), (1, 2), (2, 0)]
    triangle = [np.linalg.solve(weight[list(pair)], -bias[list(pair)]) for pair in pairs]
    sides = np.roll(ring, -1, 0) - ring
    lengths = np.linalg.norm(sides, axis=1)
    turned = sides / lengths[:, None]
    parallel = [abs(turned[k, 0] * turned[k + 3, 1] - turned[k, 1] * turned[k + 3, 0]) < 1e-9
                for k in range(3)]  # fmt: skip
    return {
        "weight": weight.tolist(),
        "bias": bias.tolist(),
        "triangle": [corner.tolist() for corner in triangle],
        "ring": ring.tolist(),
        "corners": len(ring),
        "parallel": int(sum(parallel)),
        "uneven": float(lengths.max() / lengths.min()),
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the fewest corners and parallel sides of all sizes, and how uneven the last is."""
    found = {
        "corners": min(record.values["corners"] for record in records),
        "parallel": min(record.values["parallel"] for record in records),
    }
    last = min(records, key=lambda record: record.settings["size"])
    if last.settings["size"] == 0:
        found["uneven"] = round(last.values["uneven"], 9)
    return {key: exact_estimate(float(number)) for key, number in found.items()}


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how the sides come closer."""
    ordered = sorted(records, key=lambda record: -record.settings["size"])
    words = ", ".join(f"{r.values['uneven']:.2f} at {r.settings['size']:g}" for r in ordered)
    return [
        "Long sides are so many times as long as short ones, by the distance of the lines from the "
        f"centre: {words}."
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw triangles and the hexagons around them, down to three lines through one point."""
    from inscape.figures.panels import panels
    from inscape.figures.style import FAINT
    from inscape.papers.sattelberg._polygons import kinks, outline

    records = sorted(records, key=lambda record: -record.settings["size"])
    figure, axes = panels(len(records), columns=4, size=(2.1, 2.3))
    for ax, record in zip(axes, records, strict=True):
        values = record.values
        kinks(ax, values["weight"], values["bias"], 2.4 + 1.6 * record.settings["size"])
        outline(ax, values["ring"])
        if record.settings["size"]:
            outline(ax, values["triangle"], color=FAINT, lw=1.0, ls=":")
        ax.set_title(f"lines {record.settings['size']:g} from the centre")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 4.4",
    title="The expansion of a triangle is a hexagon",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="hexagon",
            says="Expanding the triangle of the three units results in a hexagon.",
            of="corners",
            published=6,
            tolerance=0,
            at=("all sizes", "corners"),
            source="section 4.1.1",
        ),
        Value(
            name="parallel",
            says="If the triangle is equilateral, opposite sides of the hexagon are parallel.",
            of="parallel",
            published=3,
            tolerance=0,
            at=("all sizes", "pairs of opposite sides that are parallel"),
            source="section 4.1.1",
        ),
        Value(
            name="regular",
            says="When the lines meet in one point at 120 degrees, the hexagon is regular.",
            of="uneven",
            published=1,
            tolerance=1e-9,
            at=("lines through one point", "longest side / shortest side"),
            source="section 4.1.1",
        ),
    ),
    notes=("All output weights are -1 and the output is 1 within the triangle.",),
)
