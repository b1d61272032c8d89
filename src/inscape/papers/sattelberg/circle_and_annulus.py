"""Section 4.2.1: circle versus annulus, and what trained networks enclose."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate
from inscape.papers.sattelberg._disc import seconds
from inscape.papers.sattelberg.enclosing_rates import wilson

PROBLEM_RADII = (0.5, 0.5**0.5, 1.0)
PROBLEM = grid(points=1000)


def problem_cell(points: int) -> dict[str, Any]:
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


def analyse_problem(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return areas in units of the circle's, and how many points lie where they should."""
    first, second, third = (radius**2 for radius in PROBLEM_RADII)
    values = records[0].values
    kept = values["inner"][1] <= PROBLEM_RADII[0] and PROBLEM_RADII[1] - 1e-6 <= values["outer"][0]
    return {
        "gap": exact_estimate(round((second - first) / first, 12)),
        "annulus": exact_estimate(round((third - second) / first, 12)),
        "parts": exact_estimate(float(kept and values["outer"][1] <= PROBLEM_RADII[2] + 1e-6)),
        "balance": exact_estimate(float(np.mean(values["y"]))),
    }


def conclude_problem(records: Sequence[Record]) -> list[str]:
    """Say what the radii mean."""
    return [
        "With r3 = sqrt(2) r2 the annulus is twice as large as the circle; equal areas need r3 = "
        "sqrt(3) r1 (S15). All experiments here keep the printed radii."
    ]


def draw_problem(records: Sequence[Record]) -> Figure:
    """Draw the two classes as areas, and as points."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._polygons import problem
    from inscape.papers.sattelberg._toy import scatter

    figure, axes = panels(2, columns=2, size=(2.6, 2.6))
    values = records[0].values
    for ax in axes:
        problem(ax, PROBLEM_RADII)
    scatter(axes[1], np.array(values["x"]), np.array(values["y"]), size=4)
    axes[0].set_title("circle and annulus")
    axes[1].set_title(f"{len(values['y'])} points, half in each")
    return figure


FIGURE_4_2 = Experiment(
    shows="Figure 4.2",
    title="The circle versus annulus problem",
    smoke=grid(points=100),
    settings=PROBLEM,
    departures={"smoke": ("100 points.",)},
    cell=problem_cell,
    analyse=analyse_problem,
    conclude=conclude_problem,
    draw=draw_problem,
    claims=claims(
        {
            "parts: parts = 1 ± 0": "Points lie within r1 or between r2 and r3. | points | all in "
            "their part",
            "balance: balance = 0.5 ± 0": "Half of the points are in the circle. | points | share "
            "in the circle",
            "gap: gap = 1 ± 1e-09": "The space between circle and annulus has the area of the "
            "circle. | gap | area, in circles",
            "annulus: annulus = 1 ± 1e-09": "The annulus has the area of the circle. | annulus | "
            "area, in circles",
        },
        source="section 4.2.1",
    ),
    errata=("S15",),
    notes=("The figure is a drawing; radii and points are those of section 4.2.1.",),
)
"""Figure 4.2: circle versus annulus, a problem that cannot be solved along a line."""


OVERLAP_RADII = (0.5, 0.5**0.5, 1.0)
OVERLAP = grid(batch=[10, 100, 1000], leak=[0.0, 0.01], networks=100, epochs=1000, points=1000)
#: Regions whose corners are kept for the picture, of each setting.
KEPT = 6


def overlap_cell(
    batch: int, leak: float, networks: int, epochs: int, points: int
) -> dict[str, Any]:
    """Train networks, and measure what those that succeed enclose."""
    from inscape.papers.sattelberg._disc import ENOUGH, drawn, shape, targets, trained
    from inscape.papers.sattelberg._polygons import ring_radii
    from inscape.papers.sattelberg._seeds import own_seed

    seeds = [own_seed(46, batch, round(1000 * leak), k) for k in range(networks)]
    (x, inner), _ = drawn(seeds, n=points)
    settings: dict[str, Any] = {"loss": "BCE", "leak": leak, "batch": batch, "epochs": epochs}
    done = trained(x, targets(inner, "circle"), seeds, init="pytorch", cut=0.0, **settings)
    found: list[dict[str, Any]] = []
    for weights, right in zip(done.weights.numpy(), done.right.tolist(), strict=True):
        region = shape(weights, 2, leak)
        if right < ENOUGH * points or region is None or not region.count:
            continue
        ring = region.region().numpy()
        near, far = ring_radii(ring)
        kept = np.round(ring, 5).tolist() if len(found) < KEPT else None
        found.append({"corners": len(ring), "near": near, "far": far, "ring": kept})
    return {"successes": int((done.right >= ENOUGH * points).sum()), "regions": found}


def cutting(records: Sequence[Record]) -> tuple[int, int]:
    """Return how many quadrilaterals cut into the circle or the annulus, and of how many."""
    found = [r for record in records for r in record.values["regions"] if r["corners"] == 4]
    return sum(r["near"] < OVERLAP_RADII[0] or r["far"] > OVERLAP_RADII[1] for r in found), len(
        found
    )


def analyse_overlap(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the share of quadrilaterals that overlap, and the least ratio of their radii."""
    cuts, n = cutting(records)
    return {"overlap": wilson(cuts, n)} if n else {}


def conclude_overlap(records: Sequence[Record]) -> list[str]:
    """Say how skewed the shapes are, for each size of batches."""
    said = []
    for batch in sorted({record.settings["batch"] for record in records}):
        some = [record for record in records if record.settings["batch"] == batch]
        ratios = [
            r["far"] / r["near"]
            for record in some
            for r in record.values["regions"]
            if r["corners"] == 4 and r["near"] > 0
        ]
        hexagons = sum(r["corners"] == 6 for record in some for r in record.values["regions"])
        if ratios:
            said.append(
                f"With batches of {batch}, {len(ratios)} successful networks enclose a "
                f"quadrilateral and {hexagons} a hexagon; the median ratio of the radii of the "
                f"quadrilaterals around the centre is {np.median(ratios):.2f}, that of a square "
                "1.41."
            )
    return said


def draw_overlap(records: Sequence[Record]) -> Figure:
    """Draw the regions of trained networks over the circle and the annulus."""
    from inscape.figures.panels import panels
    from inscape.figures.style import INK, ORANGE
    from inscape.papers.sattelberg._polygons import outline, problem

    order = sorted(records, key=lambda r: (r.settings["leak"], r.settings["batch"]))
    figure, axes = panels(len(order), columns=3, size=(2.2, 2.35))
    for ax, record in zip(axes, order, strict=True):
        problem(ax, OVERLAP_RADII)
        rings = [r["ring"] for r in record.values["regions"] if r["ring"]]
        for ring in rings:
            outline(ax, ring, color=INK if len(ring) == 4 else ORANGE, lw=1.0)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ax.set_title(f"leak {record.settings['leak']:g}, batch {record.settings['batch']}")
    return figure


FIGURE_4_6 = Experiment(
    shows="Figure 4.6",
    title="Trained solutions whose skewed quadrilaterals cut the circle or the annulus",
    smoke=grid(batch=100, leak=0.01, networks=8, epochs=60, points=400),
    settings=OVERLAP,
    departures={"smoke": ("Eight networks of one setting, 60 epochs, 400 points.",)},
    cell=overlap_cell,
    seconds=seconds,
    analyse=analyse_overlap,
    conclude=conclude_overlap,
    draw=draw_overlap,
    claims=claims(
        {
            "overlap: overlap > 0.9": "The quadrilaterals of trained networks overlap the circle "
            "or the annulus."
        },
        source="figure 4.6 and its caption; only an exact square would not",
        test="share of the quadrilaterals of successful networks, Wilson's interval",
    ),
    errata=("S15",),
    notes=(
        "The figure shows some solutions without their settings; here cross entropy, inputs as "
        "drawn, PyTorch's initialisation, all batch sizes, a ReLU and a leak of 0.01.",
        "Six regions of each setting are drawn, those with six corners in orange.",
    ),
)
"""Figure 4.6: trained quadrilaterals are skewed, and cut into the circle or the annulus."""
