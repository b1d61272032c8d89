"""Figure 4.3: three units enclose a convex quadrilateral or a hexagon, and nothing else."""

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate

if TYPE_CHECKING:
    from inscape.papers.sattelberg._cells import Units


AXES = grid(leak=[0.0, 0.01, 0.1], exact=150, decided=5000)
CORNERS = {"hyperoctahedron": 4, "expanded simplex": 6}


def cell(leak: float, exact: int, decided: int) -> dict[str, Any]:
    """Build both regular shapes, and count the shapes of random networks in two ways."""
    from inscape.papers.sattelberg._cells import closing_units
    from inscape.regions.closed_regions import from_weights

    rng = np.random.default_rng([43, round(1000 * leak)])
    seen = {"open": 0, "quadrilateral": 0, "hexagon": 0, "other": 0, "disagree": 0, "elsewhere": 0}
    best = {"hyperoctahedron": np.inf, "expanded simplex": np.inf}
    for k in range(decided):
        net = closing_units(2, leak, rng) if k % 2 else shaken(leak, rng)
        found = from_weights(net.weight, net.bias, net.out, net.end, leak)
        if found.count:
            ratio = float(found.outer[0] / found.inner[0])
            best[found.shape] = min(best[found.shape], ratio)
            seen["elsewhere"] += not bool(found.whole[0])
        if k < exact:
            far = 4 + 4 * (float(found.corners.abs().max()) if found.count else 0.0)
            name = by_boundary(net, far)
            seen[name] += 1
            wanted = {4: "quadrilateral", 6: "hexagon"}[CORNERS[found.shape]] if found.count else ""
            seen["disagree"] += name != (wanted or "open")
    regular = {name: built(name, leak) for name in CORNERS}
    return {"seen": seen, "roundest": best, "regular": regular, "decided": decided}


def shaken(leak: float, rng: np.random.Generator) -> "Units":
    """Return a network with a regular shape whose weights were moved, by little or by much."""
    from inscape.papers.sattelberg._cells import Units
    from inscape.regions.ideal_shapes import expanded_simplex, hyperoctahedron

    make = (hyperoctahedron, expanded_simplex)[int(rng.integers(2))]
    noise = 10 ** rng.uniform(-3, 0)
    weight, bias, out, end = (
        p.detach().numpy() + noise * rng.standard_normal(tuple(p.shape))
        for p in make(2).network(leak=leak).parameters()
    )
    return Units(weight, bias, out[0], float(end[0]), leak)


def by_boundary(net: "Units", far: float) -> str:
    """Return what a network encloses within a window, from the exact boundary."""
    import torch

    from inscape.papers.sattelberg._polygons import is_convex
    from inscape.regions import Boundary, boundary
    from inscape.regions.ideal_shapes import written

    model = written(net.weight, net.bias, net.out, net.end, leak=net.leak)
    square = far * torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()
    lines = boundary(model, square, domain=square)
    assert isinstance(lines, Boundary)  # two inputs and ReLU always apply
    rings = [lines.polyline(k)[:-1].numpy() for k in range(len(lines.closed)) if lines.closed[k]]
    if len(rings) > 1 or not all(is_convex(ring) for ring in rings):
        return "other"
    names = {4: "quadrilateral", 6: "hexagon"}
    return names.get(len(rings[0]), "other") if rings else "open"


def built(name: str, leak: float) -> dict[str, Any]:
    """Return weights, corners and the ratio of radii of a network with a regular shape."""
    from inscape.regions.closed_regions import from_weights
    from inscape.regions.ideal_shapes import expanded_simplex, hyperoctahedron

    make = hyperoctahedron if name == "hyperoctahedron" else expanded_simplex
    weight, bias, out, end = (p.detach().numpy() for p in make(2).network(leak=leak).parameters())
    found = from_weights(weight, bias, out[0], float(end[0]), leak)
    return {
        "weight": weight.tolist(),
        "bias": bias.tolist(),
        "ring": found.region().tolist(),
        "ratio": float(found.outer[0] / found.inner[0]),
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return counts over all leaks, and the lowest ratio of radii of any random shape."""
    seen = {
        key: sum(record.values["seen"][key] for record in records)
        for key in records[0].values["seen"]
    }
    found = {key: float(seen[key]) for key in ("other", "disagree")}
    for name in CORNERS:
        found[f"{name} ratio"] = max(r.values["regular"][name]["ratio"] for r in records)
        found[f"{name} roundest"] = min(r.values["roundest"][name] for r in records)
    return {key: exact_estimate(number) for key, number in found.items() if np.isfinite(number)}


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what random networks enclosed, and what a leak does to quadrilaterals."""
    total = {key: sum(r.values["seen"][key] for r in records) for key in records[0].values["seen"]}
    leaky = sum(r.values["seen"]["elsewhere"] for r in records if r.settings["leak"] > 0)
    return [
        f"Of {total['open'] + total['quadrilateral'] + total['hexagon'] + total['other']} random "
        f"networks whose boundary was cut exactly {total['quadrilateral']} enclose a convex "
        f"quadrilateral, {total['hexagon']} a convex hexagon, {total['other']} anything else.",
        "With a leak, a quadrilateral whose three output weights differ in sign is never alone: "
        "the output has the same sign again far away, where the third unit is off. "
        f"That was so for {leaky} of the leaky networks; a region whose output weights have all "
        "one sign is alone.",
    ]


def draw(records: Sequence[Record]) -> Figure:
    """Draw the regular quadrilateral and the regular hexagon with the kinks of their units."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._polygons import circle, kinks, outline

    figure, axes = panels(2, columns=2, size=(2.9, 3.0))
    for ax, name in zip(axes, CORNERS, strict=True):
        made = records[0].values["regular"][name]
        kinks(ax, made["weight"], made["bias"], 2.6 if name == "hyperoctahedron" else 1.7)
        outline(ax, made["ring"])
        for radius in (1.0, 1 / made["ratio"]):
            circle(ax, radius, color="#1a1a1a")
        word = "quadrilateral" if CORNERS[name] == 4 else "hexagon"
        ax.set_title(f"{word}: R = {made['ratio']:.3f} $\\rho$")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 4.3",
    title="Quadrilateral and hexagon as decision boundaries of three units",
    smoke=grid(leak=[0.0, 0.1], exact=6, decided=100),
    settings=AXES,
    departures={"smoke": ("Two leaks and 100 random networks each, six of them cut exactly.",)},
    cell=cell,
    seconds=lambda settings: 0.4 * settings["exact"] + 0.002 * settings["decided"],
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "only-two-shapes: other = 0 ± 0": "Width 3 gives only convex quadrilaterals or "
            "hexagons as closed boundaries. | random networks | closed boundaries of another "
            "shape",
            "two-ways-agree: disagree = 0 ± 0": "What is decided from the weights is what the "
            "exact boundary shows. | random networks | decided otherwise | section 4.1.1, its "
            "reasons turned into a rule",
            "square: hyperoctahedron ratio = 1.41 ± 0.005": "The square has R = 1.41 rho. | "
            "square | R / rho | eq. 4.1",
            "hexagon: expanded simplex ratio = 1.15 ± 0.005": "The regular hexagon has R = 1.15 "
            "rho. | hexagon | R / rho | eq. 4.2 with erratum S16",
            f"square-is-roundest: hyperoctahedron roundest > {sqrt(2) - 1e-09}": "No quadrilateral "
            "solves the problem where r2 is less than 1.41 r1.",
            f"hexagon-is-roundest: expanded simplex roundest > {2 / sqrt(3) - 1e-09}": "No hexagon "
            "solves the problem where r2 is less than 1.15 r1. | lowest ratio of all random "
            "hexagons, exact for each",
        },
        source="section 4.1.1",
        test="lowest ratio of all random quadrilaterals, exact for each",
    ),
    errata=("S16",),
    notes=(
        "Half of the random networks have normal weights, but so that many close a region: normals "
        "that nearly add up to zero, or one that lies between the two others. The other half are "
        "those of the regular shapes, moved by little or by much.",
        "Radii of random shapes are around the mean of their corners.",
    ),
)
