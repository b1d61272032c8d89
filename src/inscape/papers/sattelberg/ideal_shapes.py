"""Sections 4.1.1 to 4.1.3: the regular shapes that a layer of n + 1 units encloses."""

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.published import printed
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate

#: Distance of the three lines from the centre, for a hexagon whose sides are one apart from it.
SIZES = (1.0, 0.5, 0.1, 0.0)
EXPANSION = grid(size=list(SIZES))


def expansion_cell(size: float) -> dict[str, Any]:
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


def analyse_expansion(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the fewest corners and parallel sides of all sizes, and how uneven the last is."""
    found = {
        "corners": min(record.values["corners"] for record in records),
        "parallel": min(record.values["parallel"] for record in records),
    }
    last = min(records, key=lambda record: record.settings["size"])
    if last.settings["size"] == 0:
        found["uneven"] = round(last.values["uneven"], 9)
    return {key: exact_estimate(float(number)) for key, number in found.items()}


def conclude_expansion(records: Sequence[Record]) -> list[str]:
    """Say how the sides come closer."""
    ordered = sorted(records, key=lambda record: -record.settings["size"])
    words = ", ".join(f"{r.values['uneven']:.2f} at {r.settings['size']:g}" for r in ordered)
    return [
        "Long sides are so many times as long as short ones, by the distance of the lines from the "
        f"centre: {words}."
    ]


def draw_expansion(records: Sequence[Record]) -> Figure:
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


FIGURE_4_4 = Experiment(
    shows="Figure 4.4",
    title="The expansion of a triangle is a hexagon",
    settings=EXPANSION,
    cell=expansion_cell,
    analyse=analyse_expansion,
    conclude=conclude_expansion,
    draw=draw_expansion,
    claims=claims(
        {
            "hexagon: corners = 6 ± 0": "Expanding the triangle of the three units results in a "
            "hexagon. | all sizes | corners",
            "parallel: parallel = 3 ± 0": "If the triangle is equilateral, opposite sides of the "
            "hexagon are parallel. | all sizes | pairs of opposite sides that are parallel",
            "regular: uneven = 1 ± 1e-09": "When the lines meet in one point at 120 degrees, the "
            "hexagon is regular. | lines through one point | longest side / shortest side",
        },
        source="section 4.1.1",
    ),
    notes=("All output weights are -1 and the output is 1 within the triangle.",),
)
"""Figure 4.4: a hexagon is a triangle whose sides were moved apart."""


BODIES = grid(shape=["octahedron", "cuboctahedron"])
FACES = {"octahedron": 8, "cuboctahedron": 14}


def bodies_cell(shape: str) -> dict[str, Any]:
    """Return corners and faces of the region that the ideal network encloses, and its radii."""
    from inscape.regions.closed_regions import from_weights
    from inscape.regions.ideal_shapes import expanded_simplex, hyperoctahedron

    ideal = hyperoctahedron(3) if shape == "octahedron" else expanded_simplex(3)
    weight, bias, out, end = (p.detach().numpy() for p in ideal.network().parameters())
    found = from_weights(weight, bias, out[0], float(end[0]))
    corners = found.region().numpy()
    return {
        "corners": corners.tolist(),
        "faces": faces(corners),
        "ratio": float(found.outer[0] / found.inner[0]),
        "reached": found.shape,
        "edge": shortest(corners),
    }


def faces(corners: Any) -> list[list[int]]:
    """Return the faces of a convex hull as corners in their order around each."""
    from scipy.spatial import ConvexHull

    planes = np.unique(np.round(ConvexHull(corners).equations, 9), axis=0)
    found = []
    for normal in planes:
        at = np.flatnonzero(abs(corners @ normal[:3] + normal[3]) < 1e-7)
        middle = corners[at].mean(0)
        across = corners[at[0]] - middle
        up = np.cross(normal[:3], across)
        angles = np.arctan2((corners[at] - middle) @ up, (corners[at] - middle) @ across)
        found.append(at[np.argsort(angles)].tolist())
    return found


def shortest(corners: Any) -> float:
    """Return the shortest distance of two corners, in outer radii."""
    apart = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    return float(apart[apart > 1e-9].min() / np.linalg.norm(corners, axis=1).max())


def analyse_bodies(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return ratios of radii and numbers of faces."""
    found = {}
    for record in records:
        name = record.settings["shape"]
        found[f"{name} ratio"] = exact_estimate(round(record.values["ratio"], 9))
        found[f"{name} faces"] = exact_estimate(float(len(record.values["faces"])))
        found[f"{name} edge"] = exact_estimate(round(record.values["edge"], 9))
    return found


def draw_bodies(records: Sequence[Record]) -> Figure:
    """Draw both bodies, triangles and squares in two colours; what is behind shines through."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE

    figure, axes = panels(len(records), columns=2, size=(2.8, 2.9))
    for ax, record in zip(axes, records, strict=True):
        seen = np.array(record.values["corners"]) @ view(0.45, 0.35).T
        order = sorted(record.values["faces"], key=lambda face: seen[face, 2].mean())
        for face in order:
            colour = ORANGE if len(face) == 3 else BLUE
            front = float(seen[face, 2].mean()) > 0
            look: dict[str, Any] = {"edgecolor": "#1a1a1a", "lw": 1.2 if front else 0.5}
            ax.fill(*seen[face, :2].T, facecolor=colour, alpha=0.6 if front else 0.25, **look)
        ax.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
        ax.set_axis_off()
        ax.set_title(f"{record.settings['shape']}: R = {record.values['ratio']:.3f} $\\rho$")
    return figure


def view(turn: float, tilt: float) -> Any:
    """Return the rotation by two angles: its rows are right, up and towards the reader."""
    s, c, t, d = np.sin(turn), np.cos(turn), np.sin(tilt), np.cos(tilt)
    return np.array([[c, s, 0.0], [s * t, -c * t, d], [s * d, -c * d, -t]]) * [1, 1, 1]


FIGURE_4_5 = Experiment(
    shows="Figure 4.5",
    title="Octahedron and cuboctahedron as decision regions of four units in space",
    settings=BODIES,
    cell=bodies_cell,
    analyse=analyse_bodies,
    draw=draw_bodies,
    claims=claims(
        {
            **{
                f"{name}: {name} ratio = {value} ± 1e-08": f"The {name} has R = {word} rho. | "
                f"{name} | R / rho | {source}"
                for name, word, value, source in (
                    ("octahedron", "sqrt(3)", sqrt(3), "eq. 4.3 with erratum S16"),
                    ("cuboctahedron", "sqrt(2)", sqrt(2), "eq. 4.4"),
                )
            },
            **{
                f"{name}-faces: {name} faces = {count} ± 0": f"The {name} has {count} faces. | "
                f"{name} | faces"
                for name, count in FACES.items()
            },
            "equilateral: cuboctahedron edge = 1 ± 1e-08": "The corners of the cuboctahedron are "
            "as far from its centre as from each other. | cuboctahedron | edge / R | section "
            "4.1.2",
        },
        source="section 4.1.2, figure 4.5",
    ),
    errata=("S16",),
    notes=(
        "Bodies are those that networks of four units enclose, read from their weights; faces come "
        "from the convex hull of the corners.",
    ),
)
"""Figure 4.5: four units enclose an octahedron or a cuboctahedron in space."""


DIMENSIONS = range(2, 11)
#: Largest dimension in which the convex hull is taken as a second way.
HULLS = 6
RADII = grid(n=DIMENSIONS)
#: Squares and rounded values as printed.
PRINTED = {
    row["n"]: (Fraction(row["inner_radius_squared"]), row["approx"])
    for row in printed("sattelberg", "table-4.1")
}


def radii_cell(n: int) -> dict[str, Any]:
    """Return radii and volumes of both shapes, from facets, from eq. 4.11 and from a hull."""
    from inscape.regions.ideal_shapes import expanded_simplex, hyperoctahedron, shell_share

    simplex, octahedron = expanded_simplex(n), hyperoctahedron(n)
    odd = n % 2
    return {
        "inner_square": str(simplex.inner_square),
        "equation": str(Fraction(2 * (n + 1), n * (n + 2) + odd)),
        "hull": hull(simplex.coordinates()) if n <= HULLS else None,
        "octahedron": str(octahedron.inner_square),
        "volume": simplex.volume,
        "octahedron_volume": octahedron.volume,
        "shells": shell_share(octahedron) / shell_share(simplex),
    }


def hull(corners: Any) -> float:
    """Return the squared distance of the nearest facet of a convex hull."""
    from scipy.spatial import ConvexHull

    return float(ConvexHull(corners).equations[:, -1].max() ** 2)


def analyse_radii(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return squares and rounded radii; how many agree with the equation and with the hull."""
    found = {}
    same, hulls = 0, 0
    for record in records:
        n, square = record.settings["n"], Fraction(record.values["inner_square"])
        found[f"square/{n}"] = float(square)
        found[f"rounded/{n}"] = round(sqrt(square), 2)
        same += square == Fraction(record.values["equation"])
        other = record.values["hull"]
        hulls += other is not None and abs(other - square) < 1e-9
        if n == 10:
            found["rounder"] = sqrt(square / Fraction(record.values["octahedron"]))
    found |= {"equation": same, "hulls": hulls}
    return {key: exact_estimate(number) for key, number in found.items()}


def conclude_radii(records: Sequence[Record]) -> list[str]:
    """Say what is wrong in print, and what the limits are."""
    last = max(records, key=lambda record: record.settings["n"])
    n, shells = last.settings["n"], last.values["shells"]
    return [
        "The value at n = 4 is 0.65: sqrt(5/12) = 0.6455 (S29).",
        "For equal outer radii the expanded simplex has the larger inner radius, by a factor that "
        "tends to sqrt(2); the text has it the other way round (S7).",
        f"The shells of both differ by a factor of {shells:.1f} at n = {n}; it grows like 2^(n/2) "
        f"/ sqrt(e) = {2 ** (n / 2) / 2.718281828**0.5:.1f}, not like 2^(n/2) = {2 ** (n / 2):.1f} "
        "(S8).",
    ]


def draw_radii(records: Sequence[Record]) -> Figure:
    """Draw the inner radii of both shapes, and how much of the unit ball each fills."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE, VERMILION, quiet_grid
    from inscape.regions.ideal_shapes import ball_volume

    records = sorted(records, key=lambda record: record.settings["n"])
    n = [record.settings["n"] for record in records]
    radii, volumes = panels(2, columns=2, size=(3.3, 2.6))[1]
    for key, colour, mark, word in (
        ("inner_square", BLUE, "o", "expanded simplex"),
        ("octahedron", ORANGE, "s", "hyperoctahedron"),
    ):
        heights = [sqrt(Fraction(r.values[key])) for r in records]
        radii.plot(n, heights, marker=mark, color=colour, ms=4, label=word)
    printed = [PRINTED[k][1] for k in n]
    radii.plot(n, printed, "D", color=VERMILION, mfc="none", ms=6, label="printed")
    for key, colour, mark in (("volume", BLUE, "o"), ("octahedron_volume", ORANGE, "s")):
        shares = [r.values[key] / ball_volume(r.settings["n"]) for r in records]
        volumes.semilogy(n, shares, marker=mark, color=colour, ms=4)
    radii.set(xlabel="dimension n", ylabel="inner radius, outer radius 1", ylim=(0, 1))
    volumes.set(xlabel="dimension n", ylabel="share of the unit ball")
    for ax in (radii, volumes):
        quiet_grid(ax)
    radii.legend(fontsize=7)
    figure = radii.get_figure(root=True)
    assert figure is not None
    return figure


TABLE_4_1 = Experiment(
    shows="Table 4.1",
    title="Inner radius of the expanded n-simplex with an outer radius of one",
    settings=RADII,
    cell=radii_cell,
    analyse=analyse_radii,
    conclude=conclude_radii,
    draw=draw_radii,
    claims=claims(
        {
            **{
                f"square-{n}: square/{n} = {float(square)} ± 1e-12": f"In {n} dimensions the "
                f"squared inner radius is {square.numerator}/{square.denominator}. | n = {n} | "
                "square"
                for n, (square, _) in PRINTED.items()
            },
            **{
                f"rounded-{n}: rounded/{n} = {rounded} ± 1e-09": f"In {n} dimensions the inner "
                f"radius is about {rounded}. | n = {n} | approximate value"
                for n, (_, rounded) in PRINTED.items()
            },
            "equation: equation = 9 ± 0": "The radius follows eq. 4.11 in all nine dimensions. | "
            "n = 2 to 10 | radii as by eq. 4.11 | section 4.1.3",
            "hulls: hulls = 5 ± 0": "The nearest facets of the convex hulls are at that distance "
            "(n = 2 to 6). | n = 2 to 6 | radii as by the hull | eq. 4.11, checked in a second "
            "way",
        },
        source="printed table",
    ),
    errata=("S7", "S8", "S16", "S29"),
    notes=(
        "Facets of the expanded simplex are known as whole numbers, so that all radii are roots of "
        "fractions; nothing is rounded but the last digit shown.",
    ),
)
"""Table 4.1: the inner radius of the expanded simplex falls like the root of 2 / n."""
