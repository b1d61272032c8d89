"""Beyond section 5: is a network of low rank smoother, or better far from its data?"""

import copy
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, Difference, LogRatio, Mean, Quantities
from inscape.lab.records import Records
from inscape.papers.goldblum import _beyond, _data, ranks
from inscape.papers.goldblum.ranks import METHODS, of

if TYPE_CHECKING:
    from torch import nn

NUMBERS = ("clean", "rank", "path", "far")


def cell(
    data: str, width: int, epochs: int, last: int, pairs: int, points: int, seed: int
) -> dict[str, Any]:
    """Train one network and go on in three ways; return rank, smoothness and errors of each."""
    from inscape.models import resnet18
    from inscape.papers.goldblum._training import Recipe, train

    given = _data.images(data, normalised=False)
    net = resnet18(width=width, seed=seed)
    shared: Any = {"weight_decay": 2e-4, "augmented": True}
    recipe = Recipe(epochs=epochs, lr=0.1, drops=(0.5, 0.75), **shared)
    train(net, given.x, given.y, recipe, seed=seed)
    going_on = Recipe(epochs=last, lr=0.001, drops=ranks.DROPS, clip=0.1, **shared)
    values: dict[str, Any] = {}
    for method in METHODS:
        own = copy.deepcopy(net)
        ranks.go_on(own, given, going_on, method, seed)
        values[method] = {"ranks": ranks.ranks(own, given)}
        values[method] |= measures(own, given, pairs, points, seed)
    return values


def measures(
    net: "nn.Module", given: _data.Images, pairs: int, points: int, seed: int
) -> dict[str, float]:
    """Return test accuracy, function path length, and the error far from the data, in percent."""
    from inscape.extrapolation import extrapolation
    from inscape.papers.goldblum._training import accuracy
    from inscape.smoothness import path_length

    x, y = given.x_test[:points], given.y_test[:points]
    far: Any = extrapolation(
        net, given.x, given.y, queries=x, answers=y, points=points, known=500, baselines=(),
        seed=seed,
    )  # fmt: skip
    return {
        "clean": accuracy(net, given.x_test, given.y_test),
        "path": path_length(net, x, pairs=pairs, knots=20, seed=seed).summary().value,
        "far": 100 * far.summary().value,
        "shown": 100 * float(far.errors[:, 0].mean()),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training thrice on, and passes of the measures."""
    images = _data.number_of(settings["data"]) * (settings["epochs"] + 3 * settings["last"])
    each = 3e-4 + 5e-5 * settings["width"] + 4e-6 * settings["width"] ** 2
    return 20 + float(each * (images + 3 * (10 * settings["pairs"] + 5000)))


def over_plain(method: str) -> LogRatio:
    """Return the path length after a projection over that without, in decades."""
    return LogRatio(Column(of(method, "path")), Column(of("plain", "path")))


QUANTITIES = Quantities(
    {
        **{f"{name}/{method}": Mean(of(method, name)) for method in METHODS for name in NUMBERS},
        **{
            f"{name} {method} - plain": Difference(
                Column(of(method, name)), Column(of("plain", name))
            )
            for name in ("clean", "rank", "far")
            for method in METHODS[1:]
        },
        **{f"path {method} over plain": over_plain(method) for method in METHODS[1:]},
    }
)


def conclude(records: Records) -> list[str]:
    """Say accuracy, rank, path length and the error far from the data of each method."""
    known = QUANTITIES(records)
    words = {
        "clean": "test accuracy {:.1f}%",
        "rank": "mean effective rank {:.1f}",
        "path": "path length {:.3g}",
        "far": "error far from the data {:.1f}%",
    }
    said = []
    for method in METHODS:
        if f"clean/{method}" in known:
            parts = [words[name].format(known[f"{name}/{method}"].value) for name in NUMBERS]
            said.append(f"{method[0].upper()}{method[1:]}: {', '.join(parts)}.")
    return said


def draw(records: Records) -> Figure:
    """Draw path length and the error far from the data against the mean effective rank."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, FAINT, quiet_grid

    figure, axes = panels(3, columns=3, size=(2.8, 2.6))
    labels = {"clean": "test accuracy, %", "path": "path length", "far": "error far away, %"}
    for ax, (name, label) in zip(axes, labels.items(), strict=True):
        for record in records:
            line = [(of(m, "rank")(record), of(m, name)(record)) for m in METHODS]
            line.sort()
            ax.plot([x for x, _ in line], [y for _, y in line], color=FAINT, linewidth=0.7)
        for method, colour in zip(METHODS, CATEGORIES, strict=False):
            x, y = records.values(of(method, "rank")), records.values(of(method, name))
            ax.plot(x, y, "o", ms=4, color=colour, label=method)
        ax.set(xlabel="mean effective rank", title=label)
        quiet_grid(ax)
    axes[0].legend(fontsize=6.5)
    return figure


EXPERIMENT = Experiment(
    shows="Section 5, beyond it",
    title="Path length and errors far from the data at low and high rank and equal accuracy",
    smoke=grid(
        data="digits:n=20", width=2, epochs=1, last=1, pairs=4, points=12, seed=0,
    ),
    laptop=grid(
        data="cifar10:n=4000", width=4, epochs=10, last=4, pairs=200, points=400, seed=range(5),
    ),
    paper=grid(
        data="cifar10:n=50000", width=64, epochs=200, last=20, pairs=1000, points=10_000,
        seed=range(5),
    ),
    departures={
        "smoke": ("20 of the embedded digits, two filters, one epoch.",),
        "laptop": (
            "4,000 images; four filters in the first stage instead of 64; 10 and 4 epochs instead "
            "of 200 and 20, with drops and projections at the same fractions; path lengths and "
            "errors on 400 test images.",
        ),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_beyond.RANK_SMOOTHNESS,
    errata=("G3",),
    notes=(
        "An experiment of ours. Networks and projections are those of table 5, natural training; "
        "the three networks of a seed differ in projections during the last epochs alone.",
        "Path length is that of the logits along 20 points of chords between test images; far from "
        "the data is the quarter of the test images that lies farthest from the training images.",
    ),
)  # fmt: skip
"""Rank and smoothness: does a low effective rank change what the network is as a function?"""
