"""Figure 6: samples of the completion of shapes, boundary in and filled shape out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Trend
from inscape.lab.statistics import exact_estimate, mean_estimate
from inscape.lab.store import Record
from inscape.papers.courtois._shapes import FINER, KINDS
from inscape.papers.courtois.section_6_2_3 import CHOICES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Pictures of each grade that are kept.
SHOWN = 4
WHOLE: Axes = {"kind": list(KINDS), "side": [128], "count": [64], "seed": [0]}


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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return shares over all shapes, and how much of its hull a shape of the training fills."""
    found = {
        name: _exact([bool(one) for record in records for one in record.values[name]])
        for name in ("connected", "inside", "filled")
    }
    training = [r for r in records if r.settings["kind"] == "training"]
    if training:
        solidity = [value for record in training for value in record.values["solidity"]]
        found["solidity"] = mean_estimate(solidity)
    return found


def _exact(successes: Sequence[bool]) -> Estimate:
    value = sum(successes) / len(successes)
    return exact_estimate(value, len(successes), method="counted")


def conclude(records: Sequence[Record]) -> list[str]:
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


def draw(records: Sequence[Record]) -> "Figure":
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
    smoke=dict(WHOLE) | {"side": [16], "count": [4]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("Four small shapes of each grade.",)},
    cell=cell,
    seconds=lambda settings: 2.0 + 0.05 * settings["count"],
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="connected",
            says="The shapes are connected.",
            of="connected",
            side="above",
            bound=0.999,
            test="counted over all shapes",
            source="section 6",
        ),
        Trend(
            name="inside",
            says="They do not meet the border of the image.",
            of="inside",
            side="above",
            bound=0.999,
            test="counted over all shapes",
            source="section 6",
        ),
        Trend(
            name="not-convex",
            says="The shapes are not convex (they fill less than nine tenths of their hull).",
            of="solidity",
            side="below",
            bound=0.9,
            test="t interval over shapes of the training",
            source="figure 6",
        ),
        Trend(
            name="rule",
            says="An elementary algorithm solves the task (a flood that stops at the boundary).",
            of="filled",
            side="above",
            bound=0.999,
            test="counted over all shapes",
            source="section 6, with erratum C8",
        ),
    ),
    errata=("C8",),
    notes=(CHOICES[0],),
)
