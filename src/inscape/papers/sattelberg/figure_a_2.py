"""Figure A.2: layers are added to a network of width two, and each folds the line once more."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._classes import FIRST, REGIONS, bands, curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTHS = (1, 2, 3, 4)
AXES: Axes = {"width": [2], "leak": [0.0]}


def cell(width: int, leak: float) -> dict[str, Any]:
    """Return the line of the network of theorem 3.3.3 at every depth."""
    from inscape.boolean.line_networks import deep_classifier
    from inscape.papers.sattelberg._line import line, zeros

    cut = [line(deep_classifier(width, depth, leak=leak), 0.0, 1.0) for depth in DEPTHS]
    return {
        "lines": [one.lists() for one in cut],
        "changes": [len(zeros(one)) for one in cut],
        "pieces": [len(one) for one in cut],
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return pieces and changes of sign at every depth."""
    values = records[0].values
    counts = {f"changes/{k}": values["changes"][i] for i, k in enumerate(DEPTHS)}
    counts |= {f"pieces/{k}": values["pieces"][i] for i, k in enumerate(DEPTHS)}
    return {name: exact_estimate(count) for name, count in counts.items()}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the problem, and the line after each layer."""
    from inscape.figures.panels import panels
    from inscape.figures.style import RULE

    lines = records[0].values["lines"]
    figure, axes = panels(1 + len(lines), columns=1, size=(5.0, 1.2))
    for ax in axes:
        ax.set(xlim=(-0.1, 1.1), yticks=[])
    for ax in (axes[0], axes[2]):
        bands(ax, REGIONS, FIRST)
    axes[0].axhline(0, color=RULE, lw=0.7)
    axes[0].set(title="five regions", ylim=(-1, 1))
    for depth, ax, one in zip(DEPTHS, axes[1:], lines, strict=True):
        curve(ax, one)
        ax.set_title(f"{depth} hidden layer{'s' * (depth > 1)} of two units")
    return figure


EXPERIMENT = Experiment(
    shows="Figure A.2",
    title="Adding layers to a network of width two",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 3.0,
    analyse=analyse,
    draw=draw,
    claims=tuple(
        Value(
            name=f"{what}-{depth}",
            says=f"{depth} layers of two units give {2**depth} {words} on [0, 1].",
            of=f"{what}/{depth}",
            published=2**depth,
            tolerance=0,
            at=(f"depth {depth}", words),
            source="theorem 3.3.3 with erratum S23",
        )
        for what, words in (("changes", "changes of sign"), ("pieces", "straight pieces"))
        for depth in DEPTHS
    ),
    errata=("S23", "S24"),
)
