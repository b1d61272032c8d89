"""Figure 13: a ReLU network cuts the plane for multiplication as it does for addition."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inscape.lab.experiment import Axes, Experiment, Trend
from inscape.lab.store import Record
from inscape.papers.klindt import _maps
from inscape.papers.klindt._arithmetic import LIMIT, TARGETS, analyse, cell, conclude, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONCE: Axes = {
    "activation": ["relu"],
    "inverse_sigma": [0.0],
    "width": [1024],
    "n": [128],
    "steps": [50_000],
    "grid": [512],
}
WHOLE: Axes = {"target": list(TARGETS), "seed": range(10), **ONCE}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the maps of both tasks."""
    row = []
    for target, title in TARGETS.items():
        record = _maps.first_map(records, target=target)
        row += [(title, record)] if record is not None else []
    return _maps.rows_of_maps([row], LIMIT)


EXPERIMENT = Experiment(
    shows="Figure 13",
    title="Error of a ReLU network on addition and on multiplication",
    smoke={**WHOLE, "seed": [0], "width": [16], "n": [24], "steps": [40], "grid": [32]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("16 units, 24 points, 40 steps, one seed.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=tuple(
        Trend(
            name=f"ridges-{target}",
            says=f"Ridges of low error pass through the training points of {target}: errors there "
            "are less than a tenth of those elsewhere on the disc.",
            of=f"contrast, {target}, plain",
            side="above",
            bound=1.0,
            test="log10 of test error over training error, bootstrap over seeds",
            source="A.2.8, figure 13",
        )
        for target in TARGETS
    ),
    notes=("The width is not printed: 1024, the largest of figure 1.",),
)
