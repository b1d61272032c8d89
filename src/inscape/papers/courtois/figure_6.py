"""Figure 6: samples of the completion of shapes, boundary in and filled shape out."""

from itertools import chain
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Quantities
from inscape.lab.records import Records
from inscape.lab.statistics import exact_estimate, mean_estimate
from inscape.papers.courtois._shapes import FINER, KINDS
from inscape.papers.courtois.shape_completion import CHOICES

#: Pictures of each grade that are kept.
SHOWN = 4
WHOLE = grid(kind=list(KINDS), side=128, count=64, seed=0)


def cell(kind: str, side: int, count: int, seed: int) -> dict[str, Any]:
    """Draw shapes of one grade, and look at each before it is filtered."""
    from scipy.ndimage import label
    from scipy.spatial import ConvexHull

    from inscape.papers.courtois import _shapes

    raw = _shapes.raw_shapes(count, FINER * side, kind, seed=seed)
    edges = _shapes.boundary(raw)
    rim = np.ones(raw.shape[1:], dtype=bool)
    rim[1:-1, 1:-1] = False
    x, y = _shapes.shapes(SHOWN, side, kind, seed=seed)
    return {
        "connected": [bool(label(shape)[1] == 1) for shape in raw],
        "inside": [not bool((shape & rim).any()) for shape in raw],
        "solidity": [
            float(shape.sum() / ConvexHull(np.argwhere(edge)).volume)
            for shape, edge in zip(raw, edges, strict=True)
        ],
        "filled": [
            bool((_shapes.filled(edge) == shape).all())
            for shape, edge in zip(raw, edges, strict=True)
        ],
        "parity": [
            float((_shapes.parity(edge) != shape).mean())
            for shape, edge in zip(raw, edges, strict=True)
        ],
        "pictures": np.round(255 * np.concatenate([x, y], 1)).astype(np.uint8),
    }


def counted(records: Records) -> dict[str, Estimate | None]:
    """Return fractions over all shapes of all grades."""
    found: dict[str, Estimate | None] = {}
    for name in ("connected", "inside", "filled"):
        flags = list(chain.from_iterable(records.values(name)))
        found[name] = exact_estimate(sum(flags) / len(flags), len(flags), "counted")
    return found


def solidity(records: Records) -> Estimate | None:
    """Return how much of its hull a shape of the training fills."""
    values = list(chain.from_iterable(records.where(kind="training").values("solidity")))
    return mean_estimate(values) if values else None


def conclude(records: Records) -> list[str]:
    """Say how convex the grades are, and what eq. (10) does to them."""
    said = []
    for record in records:
        values = record.values
        said.append(
            f"{record.settings['kind']}: a shape fills {np.mean(values['solidity']):.0%} of its "
            f"convex hull; a flood fills {np.mean(values['filled']):.0%} of the shapes exactly, "
            f"eq. (10) taken literally gets {np.mean(values['parity']):.0%} of the pixels wrong."
        )
    return said


def draw(records: Records) -> Figure:
    """Draw samples of each grade: the boundary, and below it the shape."""
    from inscape.figures.panels import panels
    from inscape.papers.courtois._diagrams import framed

    figure, axes = panels(2 * SHOWN * len(records), columns=SHOWN, size=(1.5, 1.55))
    for row, record in enumerate(records):
        for column, (edge, shape) in enumerate(np.asarray(record.values["pictures"])):
            for below, picture in enumerate((edge / max(1, edge.max()), shape / 255)):
                ax = axes[SHOWN * (2 * row + below) + column]
                framed(ax, 1 - picture)
                if column == 0:
                    name = record.settings["kind"]
                    ax.set_ylabel(f"{name}:\n{('input', 'target')[below]}")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 6",
    title="Samples of the shape-completion task",
    smoke=grid(WHOLE, side=16, count=4),
    settings=WHOLE,
    departures={"smoke": ("Four small shapes of each grade.",)},
    cell=cell,
    seconds=lambda settings: 2.0 + 0.05 * settings["count"],
    analyse=Quantities({"solidity": solidity}, counted),
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "connected: connected > 0.999": "The shapes are connected.",
            "inside: inside > 0.999": "They do not meet the border of the image.",
            "not-convex: solidity < 0.9": "The shapes are not convex (they fill less than nine "
            "tenths of their hull). | t interval over shapes of the training | figure 6",
            "rule: filled > 0.999": "An elementary algorithm solves the task (a flood that stops "
            "at the boundary). | | section 6, with erratum C8",
        },
        source="section 6",
        test="counted over all shapes",
    ),
    errata=("C8",),
    notes=(CHOICES[0],),
)
