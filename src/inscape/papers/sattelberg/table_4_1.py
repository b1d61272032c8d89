"""Table 4.1: the inner radius of the expanded simplex falls like the root of 2 / n."""

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIMENSIONS = range(2, 11)
#: Largest dimension in which the convex hull is taken as a second way.
HULLS = 6
AXES: Axes = {"n": DIMENSIONS}
#: Squares and rounded values as printed.
PRINTED = {
    2: (Fraction(3, 4), 0.87),
    3: (Fraction(4, 8), 0.71),
    4: (Fraction(5, 12), 0.64),
    5: (Fraction(6, 18), 0.58),
    6: (Fraction(7, 24), 0.54),
    7: (Fraction(8, 32), 0.5),
    8: (Fraction(9, 40), 0.47),
    9: (Fraction(10, 50), 0.45),
    10: (Fraction(11, 60), 0.43),
}


def cell(n: int) -> dict[str, Any]:
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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
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


def conclude(records: Sequence[Record]) -> list[str]:
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


def draw(records: Sequence[Record]) -> "Figure":
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


EXPERIMENT = Experiment(
    shows="Table 4.1",
    title="Inner radius of the expanded n-simplex with an outer radius of one",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        *(
            Value(
                name=f"square-{n}",
                says=f"In {n} dimensions the squared inner radius is {square.numerator}/"
                f"{square.denominator}.",
                of=f"square/{n}",
                published=float(square),
                tolerance=1e-12,
                at=(f"n = {n}", "square"),
                source="printed table",
            )
            for n, (square, _) in PRINTED.items()
        ),
        *(
            Value(
                name=f"rounded-{n}",
                says=f"In {n} dimensions the inner radius is about {rounded}.",
                of=f"rounded/{n}",
                published=rounded,
                tolerance=1e-9,
                at=(f"n = {n}", "approximate value"),
                source="printed table",
            )
            for n, (_, rounded) in PRINTED.items()
        ),
        Value(
            name="equation",
            says="The radius follows eq. 4.11 in all nine dimensions.",
            of="equation",
            published=9,
            tolerance=0,
            at=("n = 2 to 10", "radii as by eq. 4.11"),
            source="section 4.1.3",
        ),
        Value(
            name="hulls",
            says="The nearest facets of the convex hulls are at that distance (n = 2 to 6).",
            of="hulls",
            published=5,
            tolerance=0,
            at=("n = 2 to 6", "radii as by the hull"),
            source="eq. 4.11, checked in a second way",
        ),
    ),
    errata=("S7", "S8", "S16", "S29"),
    notes=(
        "Facets of the expanded simplex are known as whole numbers, so that all radii are roots of "
        "fractions; nothing is rounded but the last digit shown.",
    ),
)
