"""Figure 4.2: circle versus annulus, a problem that cannot be solved along a line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADII = (0.5, 0.5**0.5, 1.0)
AXES: Axes = {"points": [1000]}


def cell(points: int) -> dict[str, Any]:
    """Draw points of the problem."""
    from inscape.data import circle_versus_annulus

    data = circle_versus_annulus(n=points, n_test=0, seed=42)
    radius = data.x.norm(dim=1)
    inner, outer = radius[data.y == 1], radius[data.y == 0]
    return {
        "x": np.round(data.x.numpy().astype(float), 4).tolist(),
        "y": data.y.tolist(),
        "inner": [float(inner.min()), float(inner.max())],
        "outer": [float(outer.min()), float(outer.max())],
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return areas in units of the circle's, and how many points lie where they should."""
    first, second, third = (radius**2 for radius in RADII)
    values = records[0].values
    kept = values["inner"][1] <= RADII[0] and RADII[1] - 1e-6 <= values["outer"][0]
    return {
        "gap": exact_estimate(round((second - first) / first, 12)),
        "annulus": exact_estimate(round((third - second) / first, 12)),
        "parts": exact_estimate(float(kept and values["outer"][1] <= RADII[2] + 1e-6)),
        "balance": exact_estimate(float(np.mean(values["y"]))),
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what the radii mean."""
    return [
        "With r3 = sqrt(2) r2 the annulus is twice as large as the circle; equal areas need r3 = "
        "sqrt(3) r1 (S15). All experiments here keep the printed radii."
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the two classes as areas, and as points."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._polygons import problem
    from inscape.papers.sattelberg._toy import scatter

    figure, axes = panels(2, columns=2, size=(2.6, 2.6))
    values = records[0].values
    for ax in axes:
        problem(ax, RADII)
    scatter(axes[1], np.array(values["x"]), np.array(values["y"]), size=4)
    axes[0].set_title("circle and annulus")
    axes[1].set_title(f"{len(values['y'])} points, half in each")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 4.2",
    title="The circle versus annulus problem",
    smoke={"points": [100]},
    laptop=AXES,
    paper=AXES,
    departures={"smoke": ("100 points.",)},
    cell=cell,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="parts",
            says="Points lie within r1 or between r2 and r3.",
            of="parts",
            published=1,
            tolerance=0,
            at=("points", "all in their part"),
            source="section 4.2.1",
        ),
        Value(
            name="balance",
            says="Half of the points are in the circle.",
            of="balance",
            published=0.5,
            tolerance=0,
            at=("points", "share in the circle"),
            source="section 4.2.1",
        ),
        Value(
            name="gap",
            says="The space between circle and annulus has the area of the circle.",
            of="gap",
            published=1,
            tolerance=1e-9,
            at=("gap", "area, in circles"),
            source="section 4.2.1",
        ),
        Value(
            name="annulus",
            says="The annulus has the area of the circle.",
            of="annulus",
            published=1,
            tolerance=1e-9,
            at=("annulus", "area, in circles"),
            source="section 4.2.1",
        ),
    ),
    errata=("S15",),
    notes=("The figure is a drawing; radii and points are those of section 4.2.1.",),
)
