"""Figure 7.1: the XOR problem, and circle versus annulus."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Experiment
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"four points": "XOR", "circle": "circle versus annulus"}
WHOLE: Axes = {"problem": list(TITLES), "n": [1000], "seed": [0]}


def cell(problem: str, n: int, seed: int) -> dict[str, Any]:
    """Return the points of one problem."""
    import numpy as np

    from inscape.papers.sattelberg._toy import points
    from inscape.papers.sattelberg.figure_5_2 import TABLE

    if problem == "four points":
        return {"x": np.array(list(TABLE), float), "y": np.array(list(TABLE.values())) > 0}
    x, y = points(problem, n, seed)
    return {"x": x.numpy(), "y": y[:, 0].numpy()}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw both problems."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._toy import scatter

    figure, axes = panels(len(records), size=(2.7, 2.7))
    for ax, record in zip(axes, records, strict=True):
        scatter(
            ax, record.values["x"], record.values["y"], 40 if len(record.values["y"]) < 9 else 5
        )
        ax.set(title=TITLES[record.settings["problem"]], xlabel="x1", ylabel="x2")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 7.1",
    title="Two problems of two classes: XOR, and circle versus annulus",
    smoke=dict(WHOLE) | {"n": [100]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("100 points.",)},
    cell=cell,
    draw=draw,
)
