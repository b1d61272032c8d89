"""Figure 6.12: with which points of a grid a point is compared."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Experiment
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DONE, COMPARED, CURRENT, OPEN = range(4)
WORDS = ("done", "compared with", "this point", "still to come")
WHOLE: Axes = {"side": [9], "row": [4], "column": [3]}


def cell(side: int, row: int, column: int) -> dict[str, Any]:
    """Return the part that every point of the grid plays while one point finds its region."""
    return {"parts": parts(side, row, column)}


def parts(side: int, row: int, column: int) -> list[list[int]]:
    """Return the parts, row by row from the top, each from left to right."""

    def part(i: int, j: int) -> int:
        if (i, j) == (row, column):
            return CURRENT
        if (i, j) == (row, column - 1) or (i == row - 1 and j >= column - 1):
            return COMPARED
        return DONE if (i, j) < (row, column) else OPEN

    return [[part(i, j) for j in range(side)] for i in range(side)]


def conclude(records: Sequence[Record]) -> list[str]:
    """Count comparisons on a grid, by this rule and by all pairs."""
    said = []
    for record in records:
        p = record.settings["side"]
        ours = sum(
            sum(row.count(COMPARED) for row in parts(p, i, j)) for i in range(p) for j in range(p)
        )
        pairs = p * p * (p * p - 1) // 2
        said.append(
            f"A {p} x {p} grid takes {ours} comparisons by this rule, {pairs} by all pairs."
        )
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the grid."""
    from inscape.figures.panels import panels
    from inscape.figures.style import GREEN, INK, ORANGE, VERMILION

    figure, (ax,) = panels(1, size=(4.2, 3.0))
    rows = records[0].values["parts"]
    for part, (word, colour, mark) in enumerate(
        zip(WORDS, (INK, ORANGE, VERMILION, GREEN), "oD*x", strict=True)
    ):
        spots = [(j, i) for i, row in enumerate(rows) for j, own in enumerate(row) if own == part]
        ax.plot(*zip(*spots, strict=True), mark, color=colour, label=word, ms=7)
    ax.invert_yaxis()
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[])
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


EXPERIMENT = Experiment(
    shows="Figure 6.12",
    title="Points with which a point of the grid is compared",
    smoke=WHOLE,
    laptop=WHOLE,
    paper=WHOLE,
    cell=cell,
    conclude=conclude,
    draw=draw,
    errata=("S17",),
    notes=(
        "grid_regions(..., neighbours='row') compares by this rule; what the rule misses is "
        "measured in sattelberg/grid-ablation.",
    ),
)
