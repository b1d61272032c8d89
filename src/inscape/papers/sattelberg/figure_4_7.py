"""Figure 4.7: n random directions in n dimensions come closer to orthogonal as n grows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import bootstrap_estimate, kendall_tau

SIZES = [*range(2, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100]
AXES = grid(n=SIZES, trials=100)


def cell(n: int, trials: int) -> dict[str, Any]:
    """Draw normal vectors and return mean and maximum of their absolute cosines, trial by trial."""
    rng = np.random.default_rng([47, n])
    means, largest = [], []
    for _ in range(trials):
        rows = rng.standard_normal((n, n))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = np.abs(rows @ rows.T)[np.triu_indices(n, 1)]
        means.append(float(cosines.mean()))
        largest.append(float(cosines.max()))
    return {"mean": means, "maximum": largest}


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the rank correlation of n with both, and the step of the maximum from 2 to 3."""
    found = {}
    for key in ("mean", "maximum"):
        trials = list(zip(*(record.values[key] for record in records), strict=True))
        sizes = [record.settings["n"] for record in records]

        def tau(drawn: Sequence[Any], sizes: Sequence[int] = sizes) -> float:
            return kendall_tau(sizes, np.mean(drawn, axis=0))

        found[f"tau of the {key}"] = bootstrap_estimate(trials, tau, draws=400)
    by = {record.settings["n"]: record for record in records}
    if {2, 3} <= set(by):
        steps = np.subtract(by[3].values["maximum"], by[2].values["maximum"])
        found["first step of the maximum"] = bootstrap_estimate(steps.tolist(), draws=400)
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what is expected, and where the maximum does not fall."""
    by = {record.settings["n"]: record for record in records}
    largest = {n: float(np.mean(record.values["maximum"])) for n, record in by.items()}
    top = max(largest, key=lambda n: largest[n])
    return [
        f"The maximum is largest at n = {top} ({largest[top]:.2f}), not at n = 2 "
        f"({largest[2]:.2f}): two vectors make one pair, three make three."
        if top > 2
        else f"The maximum is largest at n = 2 ({largest[2]:.2f}).",
        "The mean absolute cosine of two directions is 2 / pi = 0.64 in the plane, 1 / 2 in space, "
        "and falls like sqrt(2 / (pi n)); the maximum of all pairs like sqrt(4 log(n) / n), far "
        "more slowly.",
    ]


def draw(records: Sequence[Record]) -> Figure:
    """Draw mean and maximum against n, with the spread over trials and the mean as expected."""
    from math import lgamma

    from matplotlib.figure import Figure

    from inscape.figures.style import BLUE, FAINT, ORANGE, SIZE, quiet_grid

    records = sorted(records, key=lambda record: record.settings["n"])
    n = np.array([record.settings["n"] for record in records])
    figure = Figure(figsize=SIZE, layout="constrained")
    ax = figure.add_subplot()
    for key, colour, mark in (("maximum", ORANGE, "s"), ("mean", BLUE, "o")):
        values = np.array([record.values[key] for record in records])
        low, high = np.quantile(values, [0.025, 0.975], axis=1)
        ax.fill_between(n, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(n, values.mean(1), color=colour, marker=mark, ms=3.5, label=f"{key} of all pairs")
    law = [np.exp(lgamma(k / 2) - lgamma((k + 1) / 2)) / np.sqrt(np.pi) for k in n]
    ax.plot(n, law, color=FAINT, ls=":", label="mean of one pair, exactly")
    ax.set(xscale="log", ylim=(0, 1), xlabel="n vectors in n dimensions", ylabel="|cosine|")
    ax.set_xticks([2, 3, 5, 10, 20, 50, 100], ["2", "3", "5", "10", "20", "50", "100"])
    ax.minorticks_off()
    quiet_grid(ax)
    ax.legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    shows="Figure 4.7",
    title="Mean and maximum dot product of n random vectors in n dimensions",
    smoke=grid(n=[2, 3, 10, 30], trials=20),
    settings=AXES,
    departures={"smoke": ("Four dimensions and 20 trials.",)},
    cell=cell,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "mean-falls: tau of the mean < -0.9": "The mean dot product decreases with n.",
            "maximum-falls: tau of the maximum < -0.9": "The maximum dot product decreases with "
            "n. | Kendall's tau of n and the maximum, bootstrap over trials",
            "maximum-falls-at-once: first step of the maximum < 0": "The maximum decreases from "
            "the first step on, from n = 2 to n = 3. | mean difference, bootstrap over trials | "
            "section 4.2.2, taken at its word",
        },
        source="section 4.2.2, figure 4.7",
        test="Kendall's tau of n and the mean, bootstrap over trials",
    ),
    notes=(
        "Vectors are normal and scaled to length one, and the absolute value of the dot product is "
        "taken; the range of n is not in the text, here it is 2 to 100.",
    ),
)
