"""Section 3.5: which metric of a four-input function best predicts that networks learn it?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.records import Record
from inscape.papers.sattelberg._correlation import (
    explaining_best,
    kendall_correlation,
    rank_correlation,
    rolls,
)
from inscape.papers.sattelberg._difficulty import LEAKY, NAMES, RELU, Counts, counted, known
from inscape.papers.sattelberg._npn_metrics import METRICS, metrics
from inscape.papers.sattelberg._regression import lead, sets, shares_explained, with_interval

Array = npt.NDArray[Any]
SHORT = {RELU: "relu", LEAKY: "leaky"}
#: What predicts: each metric alone, all four, and all with the imbalance of the truth table.
LABELS = {**METRICS, "all": "all four", "more": "all four and imbalance"}


def log_odds(counts: Counts) -> Array:
    """Return each class's odds of success over all sizes, as logarithm; half a trial is added."""
    tried = counts.trials * len(counts.sizes)
    won = counts.successes.sum(0)
    odds: Array = np.log((won + 0.5) / (tried - won + 0.5))
    return odds


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return correlations, and the share of the variance of the log odds that is predicted."""
    known_before = metrics()
    found: dict[str, Estimate | None] = {}
    for leak, counts in counted(records).items():
        name, odds = SHORT[leak], log_odds(counts)
        if np.ptp(odds) == 0:
            continue
        four = {metric: known_before[metric] for metric in METRICS}
        for metric in METRICS:
            found[f"rank/{metric}/{name}"] = rank_correlation(four[metric], odds)
            found[f"tau/{metric}/{name}"] = kendall_correlation(four[metric], odds)
        found[f"influence ahead/{name}"] = explaining_best("influence", four, odds)
        found |= _predicted(known_before, odds, name)
    return known(found)


def _predicted(values: Mapping[str, Array], odds: Array, name: str) -> dict[str, Estimate]:
    drawn = rolls(len(odds), draws=200)
    explained = {label: shares_explained(x, odds, drawn) for label, x in sets(values).items()}
    found = {f"explained/{k}/{name}": with_interval(*both) for k, both in explained.items()}
    others = [explained[metric] for metric in METRICS if metric != "influence"]
    found[f"predicts better/{name}"] = lead(explained["influence"], others)
    found[f"together/{name}"] = lead(explained["all"], [explained[m] for m in METRICS])
    found[f"imbalance/{name}"] = lead(explained["more"], [explained["all"]])
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say who predicts best, and how much is left to explain."""
    found, said = analyse(records), []
    for leak, name in SHORT.items():
        shares = {k: found[f"explained/{k}/{name}"].value for k in LABELS if _has(found, k, name)}
        if not shares:
            continue
        best = max(METRICS, key=lambda metric: shares[metric])
        said.append(
            f"{NAMES[leak]}: {METRICS[best]} alone predicts {shares[best]:.0%} of the variance of "
            f"the log odds of success, all four metrics {shares['all']:.0%}, with the imbalance of "
            f"the truth table {shares['more']:.0%}."
        )
    return said


def _has(found: Mapping[str, Estimate], label: str, name: str) -> bool:
    return f"explained/{label}/{name}" in found


def draw(records: Sequence[Record]) -> Figure:
    """Draw rank correlations and shares predicted, with intervals, for both activations."""
    from inscape.figures.panels import panels
    from inscape.figures.style import RULE

    found = analyse(records)
    figure, axes = panels(2, columns=2, size=(3.7, 2.9))
    _dots(axes[0], found, "rank", METRICS)
    axes[0].set(title="rank correlation with success", xlim=(-1, 1))
    axes[0].axvline(0, color=RULE, lw=0.8, zorder=0)
    _dots(axes[1], found, "explained", LABELS)
    axes[1].set(title="variance predicted, ten-fold", xlim=(min(0, axes[1].get_xlim()[0]), 1))
    axes[1].axvline(0, color=RULE, lw=0.8, zorder=0)
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _dots(ax: Panel, found: Mapping[str, Estimate], what: str, labels: Mapping[str, str]) -> None:
    """Draw one row for each predictor, with a dot and its interval for each activation."""
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    looks = {RELU: (VERMILION, "s", 0.14), LEAKY: (BLUE, "o", -0.14)}
    for leak, name in SHORT.items():
        colour, mark, shift = looks[leak]
        rows = [
            (k, found[f"{what}/{m}/{name}"])
            for k, m in enumerate(labels)
            if f"{what}/{m}/{name}" in found
        ]
        for k, one in rows:
            ax.plot([one.low, one.high], [k + shift] * 2, color=colour, lw=1.6)
        places = [one.value for _, one in rows], [k + shift for k, _ in rows]
        ax.plot(*places, ls="", marker=mark, color=colour, ms=5, label=NAMES[leak])
    ax.set_yticks(range(len(labels)), list(labels.values()))
    ax.set_ylim(len(labels) - 0.5, -0.5)
    quiet_grid(ax, "x")


_PREDICTED = "share of variance predicted in ten folds, difference, bootstrap over classes"


EXPERIMENT = Experiment(
    shows="Section 3.5, metrics and difficulty",
    title="Which metric of a four-input function best predicts that networks learn it",
    same_as="figure-3.5",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"influence-first-{name}: influence ahead/{name} > 0": "Influence correlates most "
                f"with the success of {NAMES[leak]} networks. | size of its rank correlation less "
                "the largest of the others', bootstrap over classes"
                for leak, name in SHORT.items()
            },
            **{
                f"influence-predicts-{name}: predicts better/{name} > 0": "Influence alone "
                f"predicts the success of {NAMES[leak]} networks better than swaps, degree or "
                "entropy alone."
                for leak, name in SHORT.items()
            },
            **{
                f"together-{name}: together/{name} > 0": "All four metrics together predict the "
                f"success of {NAMES[leak]} networks better than the best of them alone. | | our "
                "question: is any metric enough?"
                for leak, name in SHORT.items()
            },
            "imbalance-relu: imbalance/relu > 0": "The imbalance of the truth table adds to what "
            "the four metrics predict for ReLU. | | section 3.4.2: hard ReLU problems are "
            "unbalanced; our test",
        },
        source="section 3.4.2: influence is more explanatory in general",
        test=_PREDICTED,
    ),
    errata=("S1", "S2"),
    notes=(
        "An experiment of ours on the records of figure 3.5. Success of a class is the log odds "
        "over all sizes, half a trial added to both sides.",
        "Predictions are least squares on each metric and its square, and on the products of all "
        "where there are several; 20 times ten folds over the classes. All 222 classes are there, "
        "so intervals say how far the answer hangs on single classes.",
    ),
)
