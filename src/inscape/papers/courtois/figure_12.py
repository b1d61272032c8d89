"""Figure 12: what a network makes of two peaks, and what becomes of it with more."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from inscape._core.result import PROPORTION
from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure, Panel, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, Difference, Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.papers.courtois._peaks import CASES
from inscape.papers.courtois._toys import alike

#: Cases with more samples take four networks: their training takes four times as long.
LARGE, FEW = ("four, more data", "four, more data, adam"), 4
PICTURES = ("purity on the map", "agreement on the map", "purity of features", "purity untrained")
SHARING = ("first shares one", "ten share one")
WHOLE = grid(case=list(CASES), most=4096, steps=10_000, every=1, seed=list(range(8)))


def together(cells: Sequence[Settings]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train networks side by side; look at the features of those with two peaks."""
    from inscape.papers.courtois import _groups, _peaks

    for index, model, train, test in _peaks.trained(cells):
        settings = cells[index]
        found: dict[str, Any] = {
            "accuracy": _peaks.accuracy(model, train),
            "test accuracy": _peaks.accuracy(model, test),
        }
        if settings["case"] == "two":
            found["on all"] = _peaks.accuracy(model, _peaks.all_pairs())
            start = _peaks.first_network(CASES["two"], settings["seed"])
            found |= _groups.measured(
                model.double(), start.double(), shown=settings["seed"] == 0, every=settings["every"]
            )
        yield index, found


QUANTITIES = Quantities(
    {
        **{name: Mean(name).where(case="two") for name in SHARING},
        **{f"{name}, untrained": Mean(f"{name}, untrained").where(case="two") for name in SHARING},
        **{name: Mean(name, within=PROPORTION).where(case="two") for name in PICTURES},
        "on all": Mean("on all", within=PROPORTION).where(case="two"),
        "three groups": Mean(
            lambda r: float(r.values["groups on the map"] == 3), within=PROPORTION
        ).where(case="two"),
        **{
            f"gap/{case}": Mean(lambda r: r.values["accuracy"] - r.values["test accuracy"]).where(
                case=case
            )
            for case in CASES
        },
        **{f"seen/{c}": Mean("accuracy", within=PROPORTION).where(case=c) for c in CASES},
        **{f"unseen/{c}": Mean("test accuracy", within=PROPORTION).where(case=c) for c in CASES},
        **{
            f"gain/{case}": Difference(
                Column("test accuracy", case=f"{case}, adam"), Column("test accuracy", case=case)
            )
            for case in ("four", "six")
        },
    }
)


def conclude(records: Records) -> list[str]:
    """Say accuracies of every case, and what is true of untrained networks already."""
    said = []
    for case, some in records.by("case").items():
        seen, unseen = (np.array(some.values(name)) for name in ("accuracy", "test accuracy"))
        said.append(
            f"Peaks: {case}: {seen.mean():.1%} of the training inputs and "
            f"{unseen.mean():.1%} ({unseen.min():.1%} to {unseen.max():.1%}) of unseen ones."
        )
    found = QUANTITIES(records)
    if "first shares one" in found:
        said.append(
            "The nearest input by kernel shares one peak with "
            f"{found['first shares one'].value:.1%} of the inputs after training, and with "
            f"{found['first shares one, untrained'].value:.1%} before; by Euclidean distance it "
            "does with all, so that this says little of what was learned."
        )
    return said


def draw(records: Records) -> Figure:
    """Draw the map of the features, and accuracies by case."""
    from inscape.figures.panels import panels

    figure, axes = panels(2, columns=2, size=(3.7, 3.2))
    if (shown := records.first("plane")) is not None:
        _map(axes[0], shown)
    _bars(axes[1], records)
    return figure


def _map(ax: Panel, record: Record) -> None:
    """Draw features in the colours of classes, and marks for where the peaks lie."""
    import torch

    from inscape.figures.style import BLUE, VERMILION
    from inscape.papers.courtois._peaks import groups, labels

    plane = np.asarray(record.values["plane"])
    pairs = torch.from_numpy(np.asarray(record.values["pairs"]).astype(np.int64))
    kinds, classes = groups(pairs).numpy(), labels(pairs).numpy()
    for kind, (name, mark) in enumerate((("left", "<"), ("right", ">"), ("across", "o"))):
        for label, colour in ((False, VERMILION), (True, BLUE)):
            rows = (kinds == kind) & (classes == label)
            ax.scatter(plane[rows, 0], plane[rows, 1], s=5, c=colour, marker=mark, linewidths=0)
        ax.scatter([], [], s=12, c="grey", marker=mark, label=name)
    ax.set(xticks=[], yticks=[], title="tangent features (t-SNE)")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, -0.16), ncols=3)


def _bars(ax: Panel, records: Records) -> None:
    """Draw the share of unseen inputs that every network gets right."""
    from inscape.figures.style import BLUE, FAINT, quiet_grid

    cases = records.by("case")
    looks = (("accuracy", "seen", FAINT, -0.15), ("test accuracy", "unseen", BLUE, 0.15))
    for name, label, colour, shift in looks:
        for row, some in enumerate(cases.values()):
            values = [100 * value for value in some.values(name)]
            ax.plot(values, [row + shift] * len(values), "o", color=colour, ms=3, alpha=0.7)
        ax.plot([], [], "o", color=colour, ms=3, label=label)
    ax.set_yticks(range(len(cases)), list(cases))
    ax.invert_yaxis()
    ax.set(xlabel="right, %")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    quiet_grid(ax, "x")


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, and for two peaks the map."""
    size = CASES[settings["case"]].n / 1024
    return float(settings["steps"] * 1e-3 * size + 20 * (settings["case"] == "two"))


EXPERIMENT = Experiment(
    shows="Figure 12",
    title="Tangent features of all inputs with two peaks; plain descent and Adam with more",
    smoke=grid(case=["two", "four", "four, adam"], most=64, steps=5, every=32, seed=0),
    settings=WHOLE,
    departures={"smoke": ("64 samples, five steps, a map of 63 inputs, one network.",)},
    keeps=lambda settings: settings["case"] not in LARGE or settings["seed"] < FEW,
    together=together,
    batch=8,
    alike=alike,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=(
        *claims(
            {
                "all-inputs: on all = 1.0 ± 0.0, above 0.99": "The network reaches 100% accuracy "
                "on all 2016 inputs, seen and unseen. | two peaks | accuracy on all inputs | "
                "section 6.3",
                "groups-apart: purity on the map > 0.95": "The features lie at three distinct "
                "locations of the map: both peaks left, both right, across (more than 95% of the "
                "nearest points are of the own group).",
                "groups-found: agreement on the map > 0.8": "Three-means on the map finds these "
                "groups (adjusted Rand index above 0.8).",
                "three: three groups > 0.5": "The map has three clusters, rather than two, four, "
                "five or six (for most networks, by the silhouette of k-means).",
                "one-peak: first shares one > 0.95": "The normalised kernel is highest for inputs "
                "that share exactly one peak (for more than 95% of the inputs). | | section 6.3",
            },
            source="section 6.3, figure 12",
            test="t interval over networks",
        ),
        *claims(
            {
                key: says
                for case in ("four", "six")
                for key, says in {
                    f"descent-fails-{case}: gap/{case} > 0.01": f"With {case} peaks plain gradient "
                    "descent fails to maintain its precision outside the training set (it loses "
                    "more than one point).",
                    f"adam-fixes-{case}: unseen/{case}, adam > 0.99": f"With {case} peaks Adam "
                    "fixes this issue (more than 99% of unseen inputs).",
                    f"adam-better-{case}: gain/{case} > 0": f"With {case} peaks Adam is better on "
                    "unseen inputs than plain descent. | paired t interval over networks",
                }.items()
            },
            source="section 6.3",
            test="t interval over networks",
        ),
    ),
    errata=("C4", "C7"),
    notes=(
        "The text leaves open the initial weights (ours: PyTorch's default law), the factor 1/2 of "
        "the squared error (ours: none), and everything about more than two peaks but that it "
        "failed: ours are four and six, 1024 samples, the same network, step and number of steps, "
        "10,000 unseen inputs, and Adam at its default step 0.001. A larger step of Adam and four "
        "times as many samples are run beside it.",
        "A middle pixel lies inside if a peak is on it or an odd number of peaks comes before it, "
        "which with two peaks is the text's rule.",
        "Features are those of all 2016 inputs; t-SNE has perplexity 30 and begins at the two "
        "leading directions. Purity is the share of the 15 nearest points on the map that are of "
        "the same group. Class 1 in the side groups are the inputs with a peak on the middle, by "
        "definition (erratum C7).",
        "The laptop scale is the paper's.",
    ),
)
