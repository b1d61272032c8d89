"""Figures 7.10 to 7.17: how alike networks are by distance, alignment and cross-entropy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.papers.sattelberg import _network_claims as claimed
from inscape.papers.sattelberg import _networks
from inscape.papers.sattelberg._blocks import (
    ADAMW,
    CONV,
    CURVED,
    DENSE,
    LINEAR,
    PRETRAINED,
    SGD,
    Block,
    above_all,
    average,
    by,
    contrast,
    draw_matrix,
    finite,
    group,
    matrix,
    separation,
)

Draw = Callable[[Records], Figure]


def cell(data: str, set: int, epochs: int, points: int, mobilenet: int) -> dict[str, Any]:
    """Compare all pairs of networks of one set by their local maps and outputs on test images."""
    from inscape.papers.sattelberg import _images, _pairs
    from inscape.papers.sattelberg._maps import Maps, dtype

    given = _images.prepared(data)
    x, y = given.x_test[:points], given.y_test[:points]
    members = _networks.members(mobilenet)
    maps = [
        Maps(_networks.network(member, data, epochs, set, mobilenet), x, dtype=dtype(member.net))
        for member in members
    ]
    right = [float((own.outputs.argmax(1) == y).double().mean()) for own in maps]
    return {
        "names": [member.name for member in members],
        "accuracy": [100 * share for share in right],
        **_pairs.measured(maps),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, the maps and their kernels."""
    members = _networks.members(settings["mobilenet"])
    training = sum(_networks.training_seconds(settings, member.net) for member in members)
    points = settings["points"]
    return float(5 + training + len(members) * (0.02 * points + 1e-6 * points**2))


#: Pairs of one family by one optimizer, and by both.
WITHIN = {name: tuple(Block(by(name, family)) for family in (DENSE, CONV)) for name in (SGD, ADAMW)}
ACROSS = tuple(Block(by(SGD, family), by(ADAMW, family)) for family in (DENSE, CONV))
SGD_CONV, ADAMW_CONV = (by(name, CONV) for name in (SGD, ADAMW))
OUTSIDE = (
    Block(SGD_CONV, by(ADAMW, CURVED)),
    Block(SGD_CONV, by(SGD, DENSE)),
)
COMPLEX = group("complex", ADAMW)


def alignments(of: str, prefix: str = "") -> dict[str, Mean]:
    """Return the contrasts of blocks of one form of the alignment."""
    found = {
        "sgd conv block": contrast(of, (Block(SGD_CONV),), OUTSIDE),
        "same - across": contrast(of, WITHIN[SGD] + WITHIN[ADAMW], ACROSS),
        "sgd - adamw conv": contrast(of, (Block(SGD_CONV),), (Block(ADAMW_CONV),)),
        "dense pair sgd": contrast(of, (Block(by(SGD, DENSE)),), (Block(by(SGD, DENSE), CONV),)),
        "dense - conv adamw": contrast(of, (Block(by(ADAMW, DENSE)),), (Block(ADAMW_CONV),)),
        "dense across": contrast(
            of, (Block(by(SGD, DENSE), by(ADAMW, DENSE)),), (Block(DENSE, CONV),)
        ),
        "complex adamw": contrast(
            of, (Block(COMPLEX),), (Block(COMPLEX, CURVED, without=(COMPLEX,)),)
        ),
    }
    return {f"{prefix}{name}": quantity for name, quantity in found.items()}


def divergence(record: Record, cells: list[tuple[int, int]]) -> float:
    """Return the mean over pairs of the cross-entropy less the entropy of the row's network."""
    values = matrix(record, "cross-entropy")
    return float(np.mean([values[i, j] - values[i, i] for i, j in cells]))


def diverging(first: tuple[Block, ...], second: tuple[Block, ...]) -> Mean:
    """Return the decades between the mean divergences of blocks."""

    def read(record: Record) -> float:
        names = record.values["names"]
        a, b = (
            divergence(record, [cell for block in blocks for cell in block.cells(names)])
            for blocks in (first, second)
        )
        return float(np.log10(a / b))

    return Mean(finite(read))


CONTRASTS = {
    "adamw over sgd": (WITHIN[ADAMW], WITHIN[SGD]),
    "across over sgd": (ACROSS, WITHIN[SGD]),
    "families": (
        (Block(by(SGD, DENSE), SGD_CONV), Block(SGD_CONV, by(SGD, DENSE))),
        WITHIN[SGD],
    ),
}


def pretrained_first(record: Record) -> float:
    """Return how far the pretrained network by SGD is ahead of all others of ours."""
    names = record.values["names"]
    return above_all(
        record,
        "cross-entropy",
        [name for name in names if name in by(SGD, PRETRAINED)],
        [name for name in names if name not in PRETRAINED],
    )


def linear_first(record: Record) -> float:
    """Return how far the worse linear network is ahead of all networks with hidden layers."""
    names = record.values["names"]
    return above_all(
        record,
        "cross-entropy",
        [name for name in names if name in LINEAR],
        [name for name in names if name in CURVED],
    )


def own(settings: Settings) -> bool:
    """Tell whether a cell has our networks alone."""
    return not settings["mobilenet"]


def analyse(records: Records) -> dict[str, Estimate]:
    """Return the quantities: those of the pretrained networks from the cells that have them."""
    ours = Quantities(
        {
            "linear apart": contrast(
                "distance", (Block(LINEAR, CURVED),), (Block(CURVED),), log=True
            ),
            **alignments("biased"),
            **alignments("debiased", "debiased "),
            "linear first": Mean(finite(linear_first)),
            **{
                name: contrast("cross-entropy", *blocks, log=True)
                for name, blocks in CONTRASTS.items()
            },
            **{f"divergence {name}": diverging(*blocks) for name, blocks in CONTRASTS.items()},
        }
    )
    others = Quantities(
        {
            "separation": Mean(
                finite(lambda record: separation(record, "distance", PRETRAINED, CURVED))
            ),
            "pretrained across": contrast(
                "biased", (Block(PRETRAINED),), (Block(PRETRAINED, CURVED),)
            ),
            "pretrained first": Mean(finite(pretrained_first)),
        }
    )
    return ours(records.where(lambda record: own(record.settings))) | others(
        records.where(lambda record: not own(record.settings))
    )


def conclude(records: Records) -> list[str]:
    """Say how well the networks do, and how alignment as printed differs from the debiased."""
    found = [record for record in records if own(record.settings)]
    if not found:
        return []
    names = found[0].values["names"]
    accuracy = np.mean([record.values["accuracy"] for record in found], axis=0)
    parts = [f"{name} {value:.1f}%" for name, value in zip(names, accuracy, strict=True)]
    biased, debiased = (
        average(found, of)[Block(CURVED).mask(names)] for of in ("biased", "debiased")
    )
    return [
        f"Mean test accuracy: {', '.join(parts)}.",
        f"Alignment as printed is {biased.mean():.2f} on average over pairs of networks with "
        f"hidden layers, debiased {debiased.mean():.2f}; with linear networks it is 0 / 0 (S31).",
    ]


def shown(records: Records) -> Records:
    """Return the records to draw: those with the pretrained networks, if there are any."""
    with_pretrained = records.where(lambda record: not own(record.settings))
    return with_pretrained or records


def drawing(*measures: tuple[str, str], cap: float | None = None) -> Draw:
    """Return what draws matrices, averaged over sets.

    Args:
        measures: Name and title of each.
        cap: Percentile at which colours end; the largest by default.
    """

    def draw(records: Records) -> Figure:
        from inscape.figures.panels import panels

        chosen = shown(records)
        figure, axes = panels(len(measures) if chosen else 0, columns=2, size=(3.7, 3.3))
        for ax, (of, title) in zip(axes, measures, strict=False):
            values = average(chosen, of)
            top = float(np.nanpercentile(values, 100 if cap is None else cap))
            low = min(0.0, float(np.nanmin(values)))
            image = draw_matrix(ax, chosen[0].values["names"], values, top=top, low=low)
            ax.set_title(title)
            figure.colorbar(image, ax=ax, shrink=0.7)
        return figure

    return draw


ONE = grid(set=range(1, 6), epochs=3, points=2000, mobilenet=[0, 64])
SMOKE = grid(data="digits:n=64", set=1, epochs=1, points=20, mobilenet=0)
DEPARTURES: Any = {
    "smoke": ("64 of scikit-learn's digits, one epoch, 20 test images.",),
    "laptop": (
        "The first 20,000 training images and 3 epochs instead of all and 15.",
        "The first 2,000 test images; alignment as printed grows with fewer images, the debiased "
        "one does not.",
        "Five sets of networks instead of one, for intervals.",
        "Networks are trained in float32, not in 16 bits; maps are in float64.",
        "A MobileNetV2 at 64 x 64 pixels stands for the pretrained networks; its maps are in "
        "float32.",
    ),
    "paper": (
        "Five sets of networks instead of one, for intervals.",
        "Networks are trained in float32, not in 16 bits.",
        "A MobileNetV2 at 224 x 224 pixels stands for ResNet-18, ResNet-152 and Inception-v3.",
    ),
}
NOTES = (
    "A set is a linear network and two copies each of three others, by both optimizers: one column "
    "of table 7.1. Matrices are means over sets.",
    "Weights are kept in the user's cache, so that all entries share one training.",
)


def compared(shows: str, title: str, data: str = "", **more: Any) -> Experiment:
    """Return an experiment that compares the networks of a data set, or shows such records."""
    if "same_as" not in more:
        whole = 60_000 if data == "mnist" else 50_000
        more |= {
            "smoke": SMOKE,
            "laptop": grid(grid(data=f"{data}:n=20000"), **ONE),
            "paper": grid(
                grid(data=f"{data}:n={whole}"),
                **grid(ONE, epochs=15, points=10_000, mobilenet=[0, 224]),
            ),
            "departures": DEPARTURES,
            "cell": cell,
            "data": _networks.hash_of,
            "seconds": seconds,
            "conclude": conclude,
        }
    return Experiment(shows=shows, title=title, analyse=analyse, notes=NOTES, **more)


FIGURE_7_10 = compared(
    shows="Figure 7.10",
    title="MNIST: squared distance of scaled coefficients between all networks",
    data="mnist",
    draw=drawing(("distance", "by the largest"), ("absolute distance", "by the largest size")),
    claims=claimed.FIGURE_7_10,
    errata=("S20",),
)
"""Figure 7.10: distance of local maps on MNIST, each network scaled to a largest one of 1."""


FIGURE_7_11 = compared(
    shows="Figure 7.11",
    title="CIFAR-10: squared distance of scaled coefficients between all networks",
    data="cifar10",
    draw=drawing(("distance", "by the largest"), ("absolute distance", "by the largest size")),
    claims=claimed.FIGURE_7_11,
    errata=("S20",),
)
"""Figure 7.11: the same on CIFAR-10."""


ALIGNMENTS = drawing(("biased", "as printed"), ("debiased", "debiased"))

FIGURE_7_12 = compared(
    shows="Figure 7.12",
    title="MNIST: centred kernel alignment of coefficients between all networks",
    same_as="figure-7.10",
    draw=ALIGNMENTS,
    claims=claimed.FIGURE_7_12,
    errata=("S31",),
)
"""Figure 7.12: alignment of local maps on MNIST; undefined for linear networks."""


FIGURE_7_13 = compared(
    shows="Figure 7.13",
    title="CIFAR-10: centred kernel alignment of coefficients between all networks",
    same_as="figure-7.11",
    draw=ALIGNMENTS,
    claims=claimed.FIGURE_7_13,
    errata=("S31",),
)
"""Figure 7.13: the same on CIFAR-10."""


ENTROPY = "row predicted by column"

FIGURE_7_14 = compared(
    shows="Figure 7.14",
    title="MNIST: cross-entropy of softmax outputs between all networks",
    same_as="figure-7.10",
    draw=drawing(("cross-entropy", ENTROPY)),
    claims=claimed.FIGURE_7_14,
    errata=("S21",),
)
"""Figure 7.14: cross-entropy of outputs on MNIST."""


FIGURE_7_15 = compared(
    shows="Figure 7.15",
    title="MNIST: cross-entropy of softmax outputs, colours capped",
    same_as="figure-7.10",
    draw=drawing(("cross-entropy", f"{ENTROPY}, capped"), ("disagreement", "other class"), cap=80),
    claims=claimed.FIGURE_7_15,
    errata=("S21",),
)
"""Figure 7.15: the same, colours capped, and how often classes differ."""


FIGURE_7_16 = compared(
    shows="Figure 7.16",
    title="CIFAR-10: cross-entropy of softmax outputs between all networks",
    same_as="figure-7.11",
    draw=drawing(("cross-entropy", ENTROPY)),
    claims=claimed.FIGURE_7_16,
    errata=("S21",),
)
"""Figure 7.16: cross-entropy of outputs on CIFAR-10."""


FIGURE_7_17 = compared(
    shows="Figure 7.17",
    title="CIFAR-10: cross-entropy of softmax outputs, colours capped",
    same_as="figure-7.11",
    draw=drawing(("cross-entropy", f"{ENTROPY}, capped"), ("disagreement", "other class"), cap=80),
    claims=claimed.FIGURE_7_17,
    errata=("S21", "S25"),
)
"""Figure 7.17: the same, colours capped, and how often classes differ."""
