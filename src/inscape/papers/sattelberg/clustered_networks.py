"""Figures 7.3 and 7.4: accuracy when few local maps stand for all, found by k-means."""

from typing import Any

import numpy as np

from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Quantities
from inscape.lab.records import Record, Records
from inscape.papers.sattelberg import _network_claims as claimed
from inscape.papers.sattelberg import _networks
from inscape.papers.sattelberg._copies import Read, gap, keeps, kinds

CURVED, CONV = claimed.CURVED, ("simple", "complex")
SGD, ADAMW = ("sgd",), ("adamw",)


def cell(
    data: str, net: str, optimizer: str, copy: int, epochs: int, fitted: int, points: int,
    grey: bool, clusters: list[int], mobilenet: int,
) -> dict[str, Any]:  # fmt: skip
    """Cluster the local maps of one network; return accuracies by the centres."""
    import torch

    from inscape._core.sampling import generator
    from inscape.papers.sattelberg import _clusters, _images
    from inscape.papers.sattelberg._maps import Maps, dtype

    given = _images.prepared(data)
    model = _networks.kept(net, optimizer, data, epochs, copy, mobilenet)
    training, testing = (
        Maps(model, x, grey=grey, dtype=dtype(net))
        for x in (given.x[:fitted], given.x_test[:points])
    )
    inputs, outputs = testing.inputs(), testing.outputs.shape[1]
    values = torch.zeros(len(clusters), len(inputs), outputs, dtype=torch.float64)
    draw = torch.rand(outputs, inputs.shape[1] - 1, generator=generator(0), dtype=torch.float64)
    fingerprints = torch.zeros(len(training.x), dtype=torch.float64)
    for output in range(outputs):
        maps, tests = training.of(output), testing.of(output)
        fingerprints += maps[:, :-1] @ draw[output]
        for row, k in enumerate(clusters):
            centres = _clusters.centres(maps, k, seed=copy)
            nearest = _clusters.assigned(tests, centres)
            values[row, :, output] = (centres[nearest] * inputs).sum(1)
    y = given.y_test[:points]
    own = testing.outputs.argmax(1) == y
    return {
        "accuracy": 100 * float(own.double().mean()),
        "clustered": [100 * float((row.argmax(1) == y).double().mean()) for row in values],
        "shared": _clusters.shared(fingerprints),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, the maps, and k-means."""
    wide = 1025 if settings["grey"] else 3073
    work = 10 * 20 * settings["fitted"] * wide * sum(settings["clusters"])
    training = _networks.training_seconds(settings, settings["net"])
    return float(5 + training + 0.004 * settings["fitted"] + 5e-11 * work)


def lost(which: slice) -> Read:
    """Return what reads the points of accuracy that are lost, averaged over some numbers k."""

    def read(record: Record) -> float:
        return float(record.values["accuracy"] - np.mean(record.values["clustered"][which]))

    return read


def shared(record: Record) -> float:
    """Return the share of training images whose linear region another one has too."""
    return float(record.values["shared"])


ONE, MORE, LAST = lost(slice(0, 1)), lost(slice(1, None)), lost(slice(-1, None))
ANALYSE = Quantities(
    {
        **{f"lost at one/{net}": kinds(ONE, net) for net in CURVED},
        "conv - dense at one": gap(ONE, CONV, ("dense",)),
        "adamw - sgd": gap(MORE, CONV, CONV, by=(ADAMW, SGD)),
        "lost/dense": kinds(LAST, "dense"),
        "lost/conv/adamw": kinds(LAST, *CONV, by=ADAMW),
        "lost/conv/sgd": kinds(LAST, *CONV, by=SGD),
        **{f"shared/{net}": kinds(shared, net) for net in CONV},
    }
)


def conclude(records: Records) -> list[str]:
    """Say the accuracy of each network by the number of clusters, and how many share a region."""
    said = []
    for net in (*_networks.NETS, "mobilenet"):
        for optimizer, name in (("sgd", "SGD"), ("adamw", "AdamW")):
            own = records.where(net=net, optimizer=optimizer)
            if not own:
                continue
            means = np.mean(own.values("clustered"), axis=0)
            numbers = ", ".join(
                f"{mean:.1f}% at {k}"
                for k, mean in zip(own[0].settings["clusters"], means, strict=True)
            )
            said.append(
                f"{net} by {name}: {np.mean(own.values('accuracy')):.1f}% as trained; {numbers} "
                f"clusters; {np.mean(own.values('shared')):.1%} of the training images share a "
                "region."
            )
    return said


def draw(records: Records) -> Figure:
    """Draw accuracy by the number of clusters, one panel for each optimizer."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    optimizers = [name for name in _networks.OPTIMIZERS if records.where(optimizer=name)]
    figure, axes = panels(len(optimizers), columns=2, size=(3.4, 2.8))
    for ax, optimizer in zip(axes, optimizers, strict=False):
        for net, colour in zip((*_networks.NETS, "mobilenet"), CATEGORIES, strict=False):
            for k, record in enumerate(records.where(net=net, optimizer=optimizer)):
                clusters, label = record.settings["clusters"], net if k == 0 else None
                ax.semilogx(
                    clusters, record.values["clustered"], "o-", ms=3, lw=0.8, color=colour,
                    label=label,
                )  # fmt: skip
                ax.axhline(record.values["accuracy"], color=colour, lw=0.6, ls=":")
        ax.set(title="SGD" if optimizer == "sgd" else "AdamW", xlabel="clusters for each output")
        quiet_grid(ax)
    for ax in axes[:1]:
        ax.set_ylabel("test accuracy, % (dotted: as trained)")
        ax.legend(fontsize=7)
    return figure


NETWORKS = grid(
    net=[*_networks.NETS, "mobilenet"], optimizer=list(_networks.OPTIMIZERS), copy=range(1, 6)
)
SMOKE = grid(
    data="digits:n=64", net=["dense", "simple"], optimizer=list(_networks.OPTIMIZERS), copy=1,
    epochs=1, fitted=40, points=20, grey=True, clusters=[[1, 3]], mobilenet=0,
)  # fmt: skip
LAPTOP = (
    "The first 20,000 training images and 3 epochs instead of all and 15; k-means on the maps of "
    "10,000 of them, judged on 2,000 test images.",
    "1, 10 and 100 clusters; the numbers of the figure are only in its picture.",
    "Five copies of each network instead of one or two, for intervals.",
    "Without pretrained networks.",
)
PAPER = (
    "Five copies of each network instead of one or two, for intervals.",
    "A MobileNetV2 stands for the pretrained networks: one copy, by SGD.",
)
GREY = (
    "The three channels hold the same image, so that coefficients are summed over them: 1,025 "
    "instead of 3,073 for each map.",
)
SHARED: dict[str, Any] = {
    "smoke": SMOKE,
    "keeps": keeps,
    "cell": cell,
    "data": _networks.hash_of,
    "seconds": seconds,
    "analyse": ANALYSE,
    "conclude": conclude,
    "draw": draw,
    "notes": (
        "k-means from k-means++ starts, 20 rounds, in float32, for each output by itself.",
        "Two images share a region if all ten local maps are the same up to rounding.",
        "The text says that AdamW has less weight decay, 0.1 against 0.01: both are 0.01 (S19).",
    ),
    "errata": ("S13", "S19"),
}

FIGURE_7_3 = Experiment(
    shows="Figure 7.3",
    title="MNIST: accuracy after k-means on the local linear maps",
    laptop=grid(
        grid(data="mnist:n=20000"), **NETWORKS, epochs=3, fitted=10_000, points=2000, grey=True,
        clusters=[[1, 10, 100]], mobilenet=0,
    ),
    paper=grid(
        grid(data="mnist:n=60000"), **NETWORKS, epochs=15, fitted=60_000, points=10_000, grey=True,
        clusters=[[1, 10, 100, 1000]], mobilenet=[0, 224],
    ),
    departures={
        "smoke": ("64 of scikit-learn's digits, one epoch, 20 test images.",),
        "laptop": (*LAPTOP, *GREY),
        "paper": (*PAPER, *GREY),
    },
    claims=claimed.FIGURE_7_3,
    **SHARED,
)  # fmt: skip
"""Figure 7.3: how few local maps keep the accuracy on MNIST."""


FIGURE_7_4 = Experiment(
    shows="Figure 7.4",
    title="CIFAR-10: accuracy after k-means on the local linear maps",
    laptop=grid(
        grid(data="cifar10:n=20000"), **NETWORKS, epochs=3, fitted=10_000, points=2000, grey=False,
        clusters=[[1, 10, 100]], mobilenet=0,
    ),
    paper=grid(
        grid(data="cifar10:n=50000"), **NETWORKS, epochs=15, fitted=50_000, points=10_000,
        grey=False, clusters=[[1, 10, 100, 1000]], mobilenet=[0, 224],
    ),
    departures={
        "smoke": ("64 of scikit-learn's digits, one epoch, 20 test images.",),
        "laptop": LAPTOP,
        "paper": PAPER,
    },
    claims=claimed.FIGURE_7_4,
    **SHARED,
)  # fmt: skip
"""Figure 7.4: how few local maps keep the accuracy on CIFAR-10."""
