"""Figure A.1: units are added to a hidden layer one by one, and each turns the line once more."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._classes import FIRST, REGIONS, bands, curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES: Axes = {"leak": [0.0]}


def cell(leak: float) -> dict[str, Any]:
    """Return the line of the first k units of the network of theorem 3.3.2, for every k."""
    from inscape.boolean.line_networks import wide_classifier
    from inscape.papers.sattelberg._line import line

    whole = wide_classifier(REGIONS, first=FIRST, leak=leak)
    cut = [line(_first_units(whole, k), -0.1, 1.1) for k in range(1, len(REGIONS))]
    return {"lines": [one.lists() for one in cut]}


def _first_units(model: Any, count: int) -> Any:
    """Return the network without the units after the first ones."""
    from torch import nn

    from inscape.boolean.line_networks import linear

    first, bend, last = model
    weights = first.weight.detach()[:count], first.bias.detach()[:count]
    into = linear(last.weight.detach()[:, :count], last.bias.detach())
    return nn.Sequential(linear(*weights), bend, into).eval()


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how often each line bends."""
    lines = records[0].values["lines"]
    counts = {f"bends/{k}": float(len(one["knots"]) - 2) for k, one in enumerate(lines, start=1)}
    return {name: exact_estimate(count) for name, count in counts.items()}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the problem, and the line after each unit."""
    from inscape.figures.panels import panels
    from inscape.figures.style import RULE

    lines = records[0].values["lines"]
    figure, axes = panels(1 + len(lines), columns=1, size=(5.0, 1.2))
    for ax in axes:
        bands(ax, REGIONS, FIRST)
        ax.set(xlim=(-0.1, 1.1), yticks=[])
    axes[0].axhline(0, color=RULE, lw=0.7)
    axes[0].set(title="five regions", ylim=(-1, 1))
    for k, (ax, one) in enumerate(zip(axes[1:], lines, strict=True), start=1):
        curve(ax, one)
        ax.set_ylim(-3, 3)
        ax.set_title(f"{k} unit{'s' * (k > 1)}")
    return figure


EXPERIMENT = Experiment(
    shows="Figure A.1",
    title="Adding ReLU units one by one to a shallow network",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 3.0,
    analyse=analyse,
    draw=draw,
    claims=tuple(
        Value(
            name=f"bends-{k}",
            says=f"With {k} of its units the network bends {k} times.",
            of=f"bends/{k}",
            published=k,
            tolerance=0,
            at=(f"{k} units", "bends"),
            source="lemma A.2.1",
        )
        for k in range(1, len(REGIONS))
    ),
    errata=("S24",),
    notes=("The regions of the example are ours: the figure prints no numbers.",),
)
