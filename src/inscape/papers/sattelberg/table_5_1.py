"""Table 5.1: deep and narrow networks mostly fail to learn sine, and need many initialisations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inscape.lab.experiment import Axes, Experiment, Trend, Value
from inscape.lab.store import Record
from inscape.papers.sattelberg._counts import (
    DEEP,
    MOST,
    SHALLOW,
    analyse,
    counted,
    printed,
    printed_level,
    printed_probability,
    share_fitting,
)
from inscape.papers.sattelberg._sine import POINTS, cell, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.figure import Figure

#: Spread of log10 of one geometric variable with a small probability: pi / sqrt(6) / ln 10.
SCATTER = 0.557
#: Words on bright cells; unlike ink it stays dark on dark paper.
DARK = "#1a1a1a"
ONCE: Axes = {"trials": [MOST], "epochs": [200], "more": [1000], "accept": [0.45], "lr": [0.1]}
GRID: Axes = {"width": range(1, 11), "depth": range(1, 11), "batch": [POINTS, 32, 1], **ONCE}


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what failures are, and what other batch sizes would have given."""
    found = analyse(records)
    said = []
    if "constant" in found:
        ends = [(r.values["failed_constant_at_end"], r) for r in records if _whole(r)]
        failures = sum(r.settings["trials"] - r.values["successes"] for _, r in ends)
        said.append(
            f"Of {failures:,} networks that failed, {found['constant'].value:.0%} were constant "
            f"functions before the first step, and {sum(n for n, _ in ends) / failures:.0%} after "
            "the last."
        )
    for batch in sorted({r.settings["batch"] for r in records} - {POINTS}):
        share = share_fitting(counted(records, batch))
        said.append(
            f"With batches of {batch}, {share.value:.0%} of the printed counts lie in the central "
            f"95% of their law; with all points at each step {found['fitting'].value:.0%} do."
        )
    return said


def _whole(record: Record) -> bool:
    return bool(record.settings["batch"] == POINTS)


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the printed counts beside those that our probabilities let one expect."""
    import numpy as np

    from inscape.figures.panels import panels

    sizes = counted(records)
    widths, depths = (sorted({size[k] for size in sizes}) for k in (0, 1))
    ours = np.array(
        [
            [min(MOST, sizes[w, d][1] / sizes[w, d][0]) if sizes[w, d][0] else MOST for d in depths]
            for w in widths
        ]
    )
    theirs = np.array([[float(printed(w, d) or MOST) for d in depths] for w in widths])
    figure, axes = panels(2, columns=2, size=(4.2, 3.6))
    for ax, counts, title in zip(
        axes, (theirs, ours), ("printed: one draw", "ours: expected, 1 / p"), strict=True
    ):
        _table(ax, counts, widths, depths)
        ax.set(title=title, xlabel="depth", ylabel="width")
    return figure


def _table(ax: "Panel", counts: "object", widths: Sequence[int], depths: Sequence[int]) -> None:
    import numpy as np

    numbers = np.asarray(counts)
    ax.imshow(np.log10(numbers), vmin=0, vmax=np.log10(MOST), cmap="cividis", aspect="auto")
    ax.set_xticks(range(len(depths)), [str(depth) for depth in depths])
    ax.set_yticks(range(len(widths)), [str(width) for width in widths])
    for row, line in enumerate(numbers.tolist()):
        for column, number in enumerate(line):
            word = "≥1000" if number >= MOST else f"{number:.3g}"
            colour = DARK if number > 30 else "white"
            ax.text(column, row, word, ha="center", va="center", fontsize=6.5, color=colour)


EXPERIMENT = Experiment(
    shows="Table 5.1",
    title="Initialisations needed until a network of given width and depth learns sine",
    smoke={
        "width": [1, 3],
        "depth": [1, 3],
        "batch": [POINTS, 32],
        **ONCE,
        "trials": [16],
        "epochs": [50],
        "more": [50],
    },
    laptop=GRID,
    paper=GRID,
    departures={"smoke": ("Two widths and depths, 16 networks of each, 50 epochs.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="shallow",
            says="Up to depth 5 the printed counts are those of a success probability of 0.89.",
            of="shallow",
            published=printed_probability(SHALLOW),
            published_se=0.042,
            side="above",
            bound=0.5,
            at=("depths 1 to 5", "probability of success"),
            source="printed table, 50 successes in 56 trials; binomial spread",
        ),
        *(
            Value(
                name=f"level-{depth}",
                says=f"At depth {depth} the mean of log10 of the counts is "
                f"{printed_level(depth):.2f} (more than 1000 taken as 1000).",
                of=f"level/{depth}",
                published=printed_level(depth),
                published_se=SCATTER / 10**0.5,
                at=(f"depth {depth}", "mean of log10 of the count over widths"),
                source="printed table; log10 of one geometric variable scatters by 0.557",
            )
            for depth in DEEP
        ),
        Trend(
            name="counts-fit",
            says="The printed counts are draws of the laws that our probabilities give.",
            of="fitting",
            side="above",
            bound=0.85,
            test="share of counts in the central 95% of their law, Wilson's interval",
            source="printed table",
        ),
        Trend(
            name="deeper-fails-more",
            says="Deeper networks tend to fail more frequently.",
            of="with depth",
            side="below",
            test="Kendall's tau of success and depth, bootstrap over widths",
            source="section 5.3",
        ),
        Trend(
            name="width-helps",
            says="As the width increases, this effect decreases (depths 6 to 10).",
            of="with width",
            side="above",
            test="Kendall's tau of success and width, bootstrap over depths",
            source="section 5.3",
        ),
        Trend(
            name="dead-layers",
            says="Failures stem from layers whose units are all off, so that the network is a "
            "constant function from the start.",
            of="constant",
            side="above",
            bound=0.5,
            test="share of the failures, bootstrap over sizes",
            source="section 5.3",
        ),
    ),
    errata=("S26",),
    notes=(
        "The batch size is not printed. Claims are judged with all 100 points at each step, since "
        "none is mentioned; batches of 32 (as in section 6.1) and of 1 are run beside it.",
        "1000 networks of every size are trained, where the dissertation stops at the first that "
        "succeeds; three of those that do are trained on.",
        "Initial weights are PyTorch's defaults; the dissertation does not say.",
    ),
)
