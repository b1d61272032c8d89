"""Section 3.4.5: a convolutional network, pruned by channels and by the magnitude of weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Axes, Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate
from inscape.papers.sattelberg._images import hash_of

if TYPE_CHECKING:
    from torch import nn


TRAINING: dict[str, Any] = {
    "loss": "cross_entropy",
    "optimizer": "sgd",
    "lr": 0.001,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "batch": 40,
    "progress": False,
}
#: Share of the weights left that goes at each step of magnitude pruning, and how many steps.
FRACTION, STEPS = 0.2, 20
#: Images that choose the next channel, and test images that the curve is measured at.
CHOOSING, TESTED = 1000, 2000
#: A pruning ends when the accuracy is below this share of the first one.
END = 0.5
METHODS = ("channels", "magnitude")
#: Shares of the weights at which the two methods are compared.
COMPARED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
#: Milliseconds that one image takes in one epoch.
COST = 0.35
NOTES = (
    "Images are those of section 6.1 (32 x 32, three channels, centred and scaled); the network is "
    "that section's with three convolutions, each followed by a ReLU and then a 2 x 2 max pool: "
    "activations, padding and the size of pools are not said here.",
    "The channel whose removal gives the lowest loss is chosen by 1,000 training images. The share "
    "m of weights that goes is not printed: here 20% of those that are left, at each step, over "
    "the whole network. Weights are those of filters and matrices; biases stay.",
    "Accuracy is taken on 2,000 test images, and a pruning ends below half of the first accuracy.",
)


def cell(data: str, epochs: int, seed: int, steps: int | None) -> dict[str, Any]:
    """Train one network, and prune it in both ways."""
    from inscape.models.image_nets import image_net
    from inscape.papers.sattelberg import _images
    from inscape.papers.sattelberg._seeds import own_seed
    from inscape.pruning import ChannelPruning, MagnitudePruning, channel_pruning, magnitude_pruning
    from inscape.training import fit

    given = _images.prepared(data)
    own = own_seed(seed, epochs)
    model = image_net("complex", seed=own)
    lay_out(model)
    fit(model, given.x, given.y, epochs=epochs, seed=own, **TRAINING)
    test = given.x_test[:TESTED], given.y_test[:TESTED]
    shared: dict[str, Any] = {
        "test": test,
        "tune": tuner(given.x, given.y, own),
        "until": END * _images.accuracy(model, *test),
        "seed": own,
    }
    some = given.x[:CHOOSING], given.y[:CHOOSING]
    channels = channel_pruning(model, *some, steps=steps, points=CHOOSING, **shared)
    shared["tune"] = tuner(given.x, given.y, own)
    weights = magnitude_pruning(model, *some, fraction=FRACTION, steps=steps or STEPS, **shared)
    assert isinstance(channels, ChannelPruning)
    assert isinstance(weights, MagnitudePruning)
    return {
        "channels/share": channels.shares.tolist(),
        "channels/accuracy": channels.scores.tolist(),
        "channels/left": channels.widths.tolist(),
        "magnitude/share": weights.shares.tolist(),
        "magnitude/accuracy": weights.scores.tolist(),
    }


def lay_out(model: "nn.Sequential") -> None:
    """Put the channels of filters last in memory, which halves the time of training."""
    import torch

    for parameter in model.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


def tuner(x: Any, y: Any, seed: int) -> Any:
    """Return a function that trains a network for one epoch, with other shuffles at each call."""
    from inscape.training import fit

    calls = iter(range(1, 10_000))

    def tune(body: "nn.Sequential") -> None:
        lay_out(body)
        fit(body, x, y, epochs=1, seed=seed + next(calls), **TRAINING)

    return tune


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, then one epoch for each step of both prunings."""
    images = int(settings["data"].rpartition("=")[2])
    steps = settings["steps"] or 93
    epochs = settings["epochs"] + 0.45 * steps + min(steps, STEPS)
    return float(5 + images * epochs * COST / 1000 + 1.0 * steps)


def accuracy_at(values: Mapping[str, Any], method: str, share: float) -> float:
    """Return the accuracy with so many weights, on the line between two steps.

    Beyond the end of a pruning it is that of the last step.
    """
    shares = np.asarray(values[f"{method}/share"], dtype=float)[::-1]
    accuracies = np.asarray(values[f"{method}/accuracy"], dtype=float)[::-1]
    return float(np.interp(share, shares, accuracies))


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how much accuracy is lost with so many weights, and how the two ways compare."""
    found = {}
    for method in METHODS:
        for share in (0.05, *COMPARED):
            drops = [_first(r, method) - accuracy_at(r.values, method, share) for r in records]
            found[f"drop/{method}/{share}"] = mean_estimate(drops)
    ahead = [np.mean([_ahead(record, share) for share in COMPARED]) for record in records]
    return {**found, "ahead": mean_estimate([float(one) for one in ahead])}


def _first(record: Record, method: str) -> float:
    return float(record.values[f"{method}/accuracy"][0])


def _ahead(record: Record, share: float) -> float:
    magnitude, channels = (accuracy_at(record.values, m, share) for m in ("magnitude", "channels"))
    return magnitude - channels


def smallest(record: Record, method: str, slack: float = 0.01) -> float:
    """Return the smallest share of weights on the way whose accuracy is a point below at most."""
    pairs = zip(record.values[f"{method}/share"], record.values[f"{method}/accuracy"], strict=True)
    return float(min(share for share, right in pairs if right >= _first(record, method) - slack))


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many weights each way needs to stay within a point of the first accuracy."""
    firsts = [_first(record, "channels") for record in records]
    said = [
        f"Before pruning the accuracy is {min(firsts):.1%} to {max(firsts):.1%} "
        f"({len(records)} networks)."
    ]
    for method, word in zip(METHODS, ("channels", "small weights"), strict=True):
        shares = [smallest(record, method) for record in records]
        said.append(
            f"Taking out {word}, accuracy stays within one point down to "
            f"{min(shares):.0%} to {max(shares):.0%} of the weights."
        )
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw accuracy against the weights left, with the channels of each layer at some points."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE, quiet_grid

    figure, (ax,) = panels(1, size=(6.0, 3.8))
    looks = {"channels": (BLUE, "o-", "channels"), "magnitude": (ORANGE, "s--", "magnitude")}
    for method, (colour, line, name) in looks.items():
        for k, record in enumerate(records):
            shares = record.values[f"{method}/share"]
            right = [100 * one for one in record.values[f"{method}/accuracy"]]
            label = f"pruned by {name}" if k == 0 else None
            ax.plot(shares, right, line, color=colour, ms=2.6, lw=1.0, alpha=0.8, label=label)
    _annotate(ax, records[0].values)
    ax.set(
        xlabel="share of the weights that is left", ylabel="test accuracy (%)", xlim=(-0.02, 1.02)
    )
    quiet_grid(ax)
    ax.legend(loc="lower right")
    return figure


def _annotate(ax: Any, values: Mapping[str, Any]) -> None:
    """Write the channels left of each layer beside some points of the first network."""
    from inscape.figures.style import FAINT

    shares = np.asarray(values["channels/share"])
    goals = (1.0, 0.8, 0.6, 0.4, 0.25, 0.12, 0.05)
    for at in sorted({int(np.abs(shares - goal).argmin()) for goal in goals}):
        word = "-".join(str(width) for width in values["channels/left"][at])
        place = float(shares[at]), 100 * values["channels/accuracy"][at]
        text: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6.5}
        text["ha"] = "right" if place[0] > 0.9 else "left"
        ax.annotate(word, place, (-5 if place[0] > 0.9 else 5, -12), color=FAINT, **text)


def axes(data: str, seeds: int) -> Axes:
    """Return the settings of one scale."""
    return {"data": [data], "epochs": [30], "seed": range(seeds), "steps": [None]}


def structural_drops_faster(where: str) -> dict[str, str]:
    """Return the claim that both figures share."""
    return {
        "structural-drops-faster: ahead > 0": "Structural pruning has a faster drop in accuracy "
        "than magnitude pruning. | magnitude minus structural accuracy, mean over 10% to 60% of "
        f"the weights, t interval over networks | section 3.4.5, {where}"
    }


FIGURE_3_11 = Experiment(
    shows="Figure 3.11",
    title="Accuracy on MNIST against the weights that pruning leaves",
    smoke=grid(data="digits:n=200", epochs=1, seed=0, steps=2),
    laptop=axes("mnist:n=10000", 3),
    paper=axes("mnist:n=60000", 1),
    departures={
        "smoke": ("200 of the embedded digits, one epoch, two steps.",),
        "laptop": ("10,000 training images instead of 60,000; three networks instead of one.",),
    },
    cell=cell,
    data=hash_of,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"kept-{method}: drop/{method}/0.2 < 0.01": "The MNIST network loses "
                "significant accuracy (one point) only below 20% of its weights: with 20% it "
                f"has it, pruned by {method}."
                for method in METHODS
            },
            "lost-channels: drop/channels/0.05 > 0.01": "Below 20% it does lose accuracy: more "
            "than a point with 5% of the weights, pruned by channels.",
            **structural_drops_faster("figure 3.11"),
        },
        source="section 3.4.5",
        test="loss of accuracy, t interval over networks",
    ),
    notes=NOTES,
)
"""Figure 3.11: a convolutional network on MNIST with fewer and fewer channels, or weights."""


#: Share of the weights with which the printed accuracy is still the first one.
KEPT = {"channels": 0.6, "magnitude": 0.4}


FIGURE_3_12 = replace(
    FIGURE_3_11,
    shows="Figure 3.12",
    title="Accuracy on CIFAR-10 against the weights that pruning leaves",
    laptop=axes("cifar10:n=20000", 3),
    paper=axes("cifar10:n=50000", 1),
    departures={
        **FIGURE_3_11.departures,
        "laptop": ("20,000 training images instead of 50,000; three networks instead of one.",),
    },
    claims=claims(
        {
            **{
                f"kept-{method}: drop/{method}/{share} < 0.01": "The CIFAR network retains its "
                f"original accuracy (to one point) with {share:.0%} of the weights, pruned by "
                f"{method}."
                for method, share in KEPT.items()
            },
            **structural_drops_faster("figure 3.12"),
        },
        source="section 3.4.5",
        test="loss of accuracy, t interval over networks",
    ),
)
"""Figure 3.12: a convolutional network on CIFAR-10 with fewer and fewer channels, or weights."""
