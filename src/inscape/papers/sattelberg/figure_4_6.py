"""Figure 4.6: trained quadrilaterals are skewed, and cut into the circle or the annulus."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Trend
from inscape.lab.store import Record
from inscape.papers.sattelberg._disc import seconds
from inscape.papers.sattelberg._rates import wilson

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADII = (0.5, 0.5**0.5, 1.0)
AXES: Axes = {"batch": [10, 100, 1000], "leak": [0.0, 0.01], "networks": [100], "epochs": [1000],
              "points": [1000]}  # fmt: skip
#: Regions whose corners are kept for the picture, of each setting.
KEPT = 6


def cell(batch: int, leak: float, networks: int, epochs: int, points: int) -> dict[str, Any]:
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
    return sum(r["near"] < RADII[0] or r["far"] > RADII[1] for r in found), len(found)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the share of quadrilaterals that overlap, and the least ratio of their radii."""
    cuts, n = cutting(records)
    return {"overlap": wilson(cuts, n)} if n else {}


def conclude(records: Sequence[Record]) -> list[str]:
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


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the regions of trained networks over the circle and the annulus."""
    from inscape.figures.panels import panels
    from inscape.figures.style import INK, ORANGE
    from inscape.papers.sattelberg._polygons import outline, problem

    order = sorted(records, key=lambda r: (r.settings["leak"], r.settings["batch"]))
    figure, axes = panels(len(order), columns=3, size=(2.2, 2.35))
    for ax, record in zip(axes, order, strict=True):
        problem(ax, RADII)
        rings = [r["ring"] for r in record.values["regions"] if r["ring"]]
        for ring in rings:
            outline(ax, ring, color=INK if len(ring) == 4 else ORANGE, lw=1.0)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ax.set_title(f"leak {record.settings['leak']:g}, batch {record.settings['batch']}")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 4.6",
    title="Trained solutions whose skewed quadrilaterals cut the circle or the annulus",
    smoke={"batch": [100], "leak": [0.01], "networks": [8], "epochs": [60], "points": [400]},
    laptop=AXES,
    paper=AXES,
    departures={"smoke": ("Eight networks of one setting, 60 epochs, 400 points.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="overlap",
            says="The quadrilaterals of trained networks overlap the circle or the annulus.",
            of="overlap",
            side="above",
            bound=0.9,
            test="share of the quadrilaterals of successful networks, Wilson's interval",
            source="figure 4.6 and its caption; only an exact square would not",
        ),
    ),
    errata=("S15",),
    notes=(
        "The figure shows some solutions without their settings; here cross entropy, inputs as "
        "drawn, PyTorch's initialisation, all batch sizes, a ReLU and a leak of 0.01.",
        "Six regions of each setting are drawn, those with six corners in orange.",
    ),
)
