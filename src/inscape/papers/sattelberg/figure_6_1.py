"""Figure 6.1: circle versus annulus, and the same with classes swapped in two quadrants."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Experiment
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"circle": "circle versus annulus", "xor": "with XOR"}
WHOLE: Axes = {"problem": list(TITLES), "n": [1000], "seed": [0]}


def cell(problem: str, n: int, seed: int) -> dict[str, Any]:
    """Draw the points of one problem."""
    from inscape.papers.sattelberg._toy import points

    x, y = points(problem, n, seed)
    return {"x": x.numpy(), "y": y[:, 0].numpy(), "share": float(y.mean())}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw both problems."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._toy import scatter

    figure, axes = panels(len(records), size=(2.7, 2.7))
    for ax, record in zip(axes, records, strict=True):
        scatter(ax, record.values["x"], record.values["y"])
        ax.set(title=TITLES[record.settings["problem"]], xlabel="x1", ylabel="x2")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 6.1",
    title="Circle versus annulus, alone and combined with XOR",
    smoke=dict(WHOLE) | {"n": [100]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("100 points.",)},
    cell=cell,
    draw=draw,
    errata=("S15",),
    notes=(
        "The radii are those of section 4.2.1. How XOR is combined with the circles is not said in "
        "the text: here the classes are swapped where x1 x2 < 0.",
    ),
)
