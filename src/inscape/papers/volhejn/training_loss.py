"""Training loss goes with the measures of smoothness: the reason to fix it (section 4.2)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log10

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import kendall_tau, mean_estimate
from inscape.papers.volhejn._growing import ALL_SETS, RING_SETS, cell, hash_of
from inscape.papers.volhejn._measures import THESIS

ONCE = grid(size=256, scale=0.01, hidden=256, lr=0.01, batch=64, epochs=25000)
ONCE = grid(ONCE, measures=[list(THESIS.values())])
LAPTOP = grid(data=RING_SETS, stop_loss=[1e-1, 1e-2, 1e-3, 1e-4, 1e-5], seed=range(3), **ONCE)
SMALL = grid(LAPTOP, data=["digits-binary:4-9", "digits-binary:0-1"], seed=0, size=32, hidden=16)
#: Training loss and measure of every run, by data set.
Runs = Mapping[str, list[tuple[float, float]]]


def runs(records: Sequence[Record], measure: str) -> Runs:
    """Return the loss on the training images and the measure of every run that got to its loss."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        if record.values["converged"]:
            pair = record.values["train_loss"], record.values["measures"][measure]
            found[record.settings["data"]].append(pair)
    return found


def taus(records: Sequence[Record], measure: str) -> list[float]:
    """Return Kendall's tau of training loss and measure for each data set."""
    return [
        kendall_tau([loss for loss, _ in pairs], [value for _, value in pairs])
        for pairs in runs(records, measure).values()
    ]


def analyse(records: Sequence[Record]) -> Mapping[str, Estimate]:
    """Return the mean tau of each measure over data sets."""
    found = {measure: taus(records, measure) for measure in THESIS}
    return {f"tau/{measure}": mean_estimate(each) for measure, each in found.items() if each}


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: each power of ten of the loss takes as many epochs as the last."""
    epochs = min(settings["epochs"], -1200 * log10(settings["stop_loss"]))
    rank = min(settings["size"], 550)
    return float(2 + epochs * settings["size"] / settings["batch"] * (6e-5 + 4e-7 * rank))


def draw(records: Sequence[Record]) -> Figure:
    """Draw each measure against the loss at which training stopped, from early to late."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION

    figure, axes = panels(len(THESIS), columns=2, size=(3.2, 2.2))
    for ax, measure in zip(axes, THESIS, strict=True):
        means = _means(records, measure)
        for by_loss in means.values():
            line = sorted(by_loss.items())
            ax.plot(*zip(*line, strict=True), lw=0.8, alpha=0.35, color=BLUE)
        losses = sorted({loss for by_loss in means.values() for loss in by_loss})
        middle = [np.mean([m[loss] for m in means.values() if loss in m]) for loss in losses]
        ax.plot(losses, middle, marker="o", ms=4, lw=1.8, color=VERMILION)
        tau = float(np.mean(taus(records, measure)))
        ax.set(xscale="log", title=f"{measure}   tau {tau:.2f}", xlabel="training loss at the end")
        ax.set_xticks(losses, [f"{loss:g}" for loss in losses])
        ax.minorticks_off()
        ax.invert_xaxis()
    return figure


def _means(records: Sequence[Record], measure: str) -> dict[str, dict[float, float]]:
    """Return the mean over networks, by data set and the loss that was asked for."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.values["converged"]:
            by_loss = found[record.settings["data"]]
            by_loss[record.settings["stop_loss"]].append(record.values["measures"][measure])
    return {
        name: {loss: float(np.mean(values)) for loss, values in by_loss.items()}
        for name, by_loss in found.items()
    }


EXPERIMENT = Experiment(
    shows="Section 4.2",
    title="Kendall's tau of four measures against the training loss at which training stopped",
    smoke=grid(SMALL, stop_loss=[0.3, 0.1, 0.03], lr=0.1, batch=16, epochs=500),
    laptop=LAPTOP,
    paper=grid(LAPTOP, data=ALL_SETS),
    departures={
        "smoke": ("Small images of digits, 16 hidden units: only to see that it runs.",),
        "laptop": (
            "Ten of the 45 pairs of digits: 0-1, 1-2, ..., 8-9 and 0-9, each digit twice.",
            "The thesis prints no run behind its remark; the design is ours, with its networks.",
        ),
        "paper": (
            "The thesis prints no run behind its remark; the design is ours, with its networks.",
        ),
    },
    cell=cell,
    data=hash_of,
    seconds=seconds,
    analyse=analyse,
    draw=draw,
    claims=claims(
        {
            f"goes-with-loss-{measure}: tau/{measure} < 0": "Training loss is correlated with "
            f"{measure}, which grows while the loss falls."
            for measure in THESIS
        },
        source="section 4.2 says correlated; that it grows while the loss falls is our reading",
        test="t interval over data sets",
    ),
    errata=("V1", "V5"),
    notes=(
        "Networks of one data set and seed take the same way and leave it at different losses.",
    ),
)
