"""Figure 4.5: four units enclose an octahedron or a cuboctahedron in space."""

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES: Axes = {"shape": ["octahedron", "cuboctahedron"]}
FACES = {"octahedron": 8, "cuboctahedron": 14}


def cell(shape: str) -> dict[str, Any]:
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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return ratios of radii and numbers of faces."""
    found = {}
    for record in records:
        name = record.settings["shape"]
        found[f"{name} ratio"] = exact_estimate(round(record.values["ratio"], 9))
        found[f"{name} faces"] = exact_estimate(float(len(record.values["faces"])))
        found[f"{name} edge"] = exact_estimate(round(record.values["edge"], 9))
    return found


def draw(records: Sequence[Record]) -> "Figure":
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


EXPERIMENT = Experiment(
    shows="Figure 4.5",
    title="Octahedron and cuboctahedron as decision regions of four units in space",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    analyse=analyse,
    draw=draw,
    claims=(
        *(
            Value(
                name=name,
                says=f"The {name} has R = {word} rho.",
                of=f"{name} ratio",
                published=value,
                tolerance=1e-8,
                at=(name, "R / rho"),
                source=source,
            )
            for name, word, value, source in (
                ("octahedron", "sqrt(3)", sqrt(3), "eq. 4.3 with erratum S16"),
                ("cuboctahedron", "sqrt(2)", sqrt(2), "eq. 4.4"),
            )
        ),
        *(
            Value(
                name=f"{name}-faces",
                says=f"The {name} has {count} faces.",
                of=f"{name} faces",
                published=count,
                tolerance=0,
                at=(name, "faces"),
                source="section 4.1.2, figure 4.5",
            )
            for name, count in FACES.items()
        ),
        Value(
            name="equilateral",
            says="The corners of the cuboctahedron are as far from its centre as from each other.",
            of="cuboctahedron edge",
            published=1,
            tolerance=1e-8,
            at=("cuboctahedron", "edge / R"),
            source="section 4.1.2",
        ),
    ),
    errata=("S16",),
    notes=(
        "Bodies are those that networks of four units enclose, read from their weights; faces come "
        "from the convex hull of the corners.",
    ),
)
