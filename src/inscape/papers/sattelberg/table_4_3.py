"""Table 4.3: leaks, cross entropy, normalised inputs and small batches each help to enclose."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from inscape.lab.experiment import Estimate, Experiment, Trend, Value
from inscape.lab.store import Record
from inscape.papers.sattelberg._rates import (
    FACTORS,
    analyse,
    choices,
    printed_mean,
    printed_mean_se,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Levels of each factor, the best printed mean first.
ORDERS = {
    "loss": ("BCE", "MSE"),
    "normalise": (True, False),
    "leak": (0.01, 0.1, 0.0),
    "batch": (10, 100, 1000),
}


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how the orders come out under the other readings of the text."""
    said = []
    for choice in choices(records):
        if choice["one"] == "signs":  # half of the table
            continue
        for when, word in (("best", "some epoch"), ("end", "the last epoch")):
            found = analyse(records, when, **choice)
            if "loss BCE" not in found:
                continue
            words = "; ".join(f"{factor} {_order(found, factor)}" for factor in FACTORS)
            said.append(
                f"With weights of {choice['init']}, the {choice['one']} labelled 1 and success at "
                f"{word}, mean successes are {words}."
            )
    return said


def _order(found: dict[str, Estimate], factor: str) -> str:
    means = {level: found[f"{factor} {level}"].value for level in FACTORS[factor]}
    ranked = sorted(means, key=lambda level: -means[level])
    return " > ".join(f"{level} ({100 * means[level]:.0f})" for level in ranked)


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the mean success of every level, ours with its interval beside the printed one."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    found = analyse(records)
    figure, axes = panels(4, columns=4, size=(1.7, 2.4))
    for ax, (factor, levels) in zip(axes, FACTORS.items(), strict=True):
        for at, level in enumerate(levels):
            ours = found.get(f"{factor} {level}")
            if ours is not None:
                ax.plot([at, at], [100 * ours.low, 100 * ours.high], color=BLUE, lw=1.5)
                ax.plot(at, 100 * ours.value, "o", color=BLUE, ms=5, label="ours"[: 4 * (not at)])
            theirs = 100 * printed_mean(factor, level)
            ax.plot(at, theirs, "D", color=VERMILION, ms=4, label="printed"[: 7 * (not at)])
        ax.set(title=factor, ylim=(0, 100), xlim=(-0.5, len(levels) - 0.5))
        ax.set_xticks(range(len(levels)), [str(level) for level in levels])
        quiet_grid(ax)
    axes[0].set_ylabel("mean successes of 100")
    axes[0].legend(loc="lower right", fontsize=7)
    return figure


EXPERIMENT = Experiment(
    shows="Table 4.3",
    title="Mean successes over all other settings, for every level of each setting",
    same_as="table-4.2",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        *(
            Value(
                name=f"{factor}-{level}",
                says=f"With {factor} {level} the mean is {100 * printed_mean(factor, level):.1f} "
                "of 100.",
                of=f"{factor} {level}",
                published=printed_mean(factor, level),
                published_se=printed_mean_se(factor, level),
                at=(f"{factor} {level}", "rate"),
                source="means of the printed table 4.2, which table 4.3 rounds; binomial spread",
            )
            for factor, levels in FACTORS.items()
            for level in levels
        ),
        *(
            Trend(
                name=f"{factor}-{better}-before-{worse}",
                says=f"{factor} {better} has a higher mean than {factor} {worse}.",
                of=f"{factor} {better} - {worse}",
                side="above",
                test="difference of mean rates, binomial spread",
                source="printed table 4.3",
            )
            for factor, levels in ORDERS.items()
            for better, worse in pairwise(levels)
        ),
    ),
    errata=("S15",),
    notes=("Runs, choices and rules are those of table 4.2.",),
)
