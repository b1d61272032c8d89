"""Figures 7.7 to 7.9: the local maps of one network, mapped to those of another."""

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
    DENSE,
    OWN,
    PRETRAINED,
    SGD,
    Block,
    average,
    by,
    contrast,
    draw_matrix,
    finite,
    group,
    mean,
)
from inscape.papers.sattelberg._images import hash_of
from inscape.papers.sattelberg._networks import Member

# ------------------------------------------------------------------------------ figures 7.8, 7.9


def cell(
    data: str, set: int, epochs: int, fitted: int, points: int, grey: bool, mobilenet: int
) -> dict[str, Any]:
    """Map the maps of each network of a set to those of each other; return accuracies."""
    import torch

    from inscape.papers.sattelberg import _images
    from inscape.papers.sattelberg._maps import Maps, dtype
    from inscape.papers.sattelberg._transfer import mapped_outputs

    given, members = _images.prepared(data), _networks.members(mobilenet)
    networks = [_networks.network(member, data, epochs, set, mobilenet) for member in members]
    training, testing = (
        [
            Maps(network, x, grey=grey, dtype=dtype(member.net))
            for network, member in zip(networks, members, strict=True)
        ]
        for x in (given.x[:fitted], given.x_test[:points])
    )
    y = given.y_test[:points]
    classes = mapped_outputs(training, testing).argmax(-1)
    own = torch.stack([each.outputs.argmax(1) for each in testing])
    accuracy = 100 * (own == y).double().mean(-1)
    found = 100 * (classes == y).double().mean(-1)
    found.diagonal().copy_(accuracy)
    return {
        "names": [member.name for member in members],
        "accuracy": accuracy.tolist(),
        "mapped": found.tolist(),
        "kept": (found / accuracy).tolist(),
        "lost": (accuracy - found).tolist(),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, the maps, and ten fits of each network."""
    members = _networks.members(settings["mobilenet"])
    training = sum(_networks.training_seconds(settings, member.net) for member in members)
    images, wide = settings["fitted"], 1025 if settings["grey"] else 3073
    work = 10 * images * wide * (2 * wide + 4 * settings["points"])
    return float(5 + training + len(members) * (0.03 * images + 3e-11 * work))


DENSE_SGD, DENSE_ADAMW = (by(name, DENSE) for name in (SGD, ADAMW))
SGD_CONV, ADAMW_CONV = (by(name, CONV) for name in (SGD, ADAMW))
#: Targets among our networks that are not dense ones by AdamW.
OTHERS = (
    Block(OWN, by(SGD, OWN)),
    Block(OWN, ADAMW_CONV),
    Block(OWN, group("linear", ADAMW)),
)

MNIST = Quantities(
    {
        "kept/others": Mean(finite(lambda record: mean(record, "kept", *OTHERS))),
        "others - dense adamw": contrast("kept", OTHERS, (Block(OWN, DENSE_ADAMW),)),
        "dense sgd - dense adamw": contrast(
            "kept", (Block(OWN, DENSE_SGD),), (Block(OWN, DENSE_ADAMW),)
        ),
        "others - pretrained": contrast("kept", OTHERS, (Block(OWN, PRETRAINED),)),
        "from - towards pretrained": contrast(
            "kept", (Block(PRETRAINED, OWN),), (Block(OWN, PRETRAINED),)
        ),
    }
)


def linear_gains(record: Record) -> float:
    """Return what the linear SGD network gains when it is mapped to dense SGD networks."""
    own = record.values["accuracy"][record.values["names"].index("linear SGD")]
    return mean(record, "mapped", Block(group("linear", SGD), DENSE_SGD)) - float(own)


def each_cell(records: Records) -> dict[str, Estimate | None]:
    """Return the accuracy of every pair."""
    names = records[0].values["names"] if records else []

    def at(i: int, j: int) -> Mean:
        return Mean(lambda record: record.values["mapped"][i][j])

    return {
        f"mapped/{source}/{target}": at(i, j)(records)
        for i, source in enumerate(names)
        for j, target in enumerate(names)
        if i != j
    }


CIFAR = Quantities(
    {
        "drop/dense sgd": Mean(finite(lambda record: mean(record, "lost", Block(DENSE_SGD)))),
        "drop/conv sgd": Mean(finite(lambda record: mean(record, "lost", Block(SGD_CONV)))),
        "conv to dense - dense to dense": contrast(
            "lost", (Block(SGD_CONV, DENSE_SGD),), (Block(DENSE_SGD),)
        ),
        "dense to conv - conv to conv": contrast(
            "lost", (Block(DENSE_SGD, SGD_CONV),), (Block(SGD_CONV),)
        ),
        "linear to dense - linear": Mean(finite(linear_gains)),
        "drop/conv adamw - conv sgd": contrast("lost", (Block(ADAMW_CONV),), (Block(SGD_CONV),)),
        "mapped/linear SGD/dense SGD": Mean(
            finite(lambda record: mean(record, "mapped", Block(group("linear", SGD), DENSE_SGD)))
        ),
    },
    each_cell,
)


def alike(records: Records) -> Records:
    """Return the records of one kind: with the pretrained networks, if there are any."""
    with_pretrained = records.where(lambda record: bool(record.settings["mobilenet"]))
    return with_pretrained or records


def draw(records: Records) -> Figure:
    """Draw the mean accuracy of all pairs, and how much of the target's own it is."""
    from inscape.figures.panels import panels

    chosen = alike(records)
    figure, axes = panels(2 if chosen else 0, columns=2, size=(3.7, 3.3))
    measures = (("mapped", "accuracy, %", 100.0), ("kept", "share of the target's own", 1.0))
    for ax, (of, title, top) in zip(axes, measures, strict=False):
        image = draw_matrix(ax, chosen[0].values["names"], average(chosen, of), top=top)
        ax.set(title=title, ylabel="mapped from", xlabel="mapped to")
        figure.colorbar(image, ax=ax, shrink=0.7)
    return figure


def conclude(records: Records) -> list[str]:
    """Say which pair keeps least and most, on average over sets."""
    chosen = alike(records)
    if not chosen:
        return []
    names, kept = chosen[0].values["names"], average(chosen, "kept")
    np.fill_diagonal(kept, np.nan)
    said = []
    for word, at in (("most", np.nanargmax(kept)), ("least", np.nanargmin(kept))):
        i, j = divmod(int(at), len(names))
        said.append(
            f"Mapped from {names[i]} to {names[j]}, {kept[i, j]:.0%} of the target's accuracy is "
            f"kept, the {word} of all pairs."
        )
    return said


SETS = grid(set=range(1, 6), epochs=3, fitted=10_000, points=2000)
WHOLE = grid(set=range(1, 6), epochs=15, points=10_000)
SMOKE = grid(
    data="digits:n=64", set=1, epochs=1, fitted=40, points=20, grey=True, mobilenet=0
)  # fmt: skip
LAPTOP = (
    "The first 20,000 training images and 3 epochs instead of all and 15.",
    "Fitted on the maps of 10,000 training images, judged on 2,000 test images.",
    "Five sets of networks instead of one, for intervals.",
    "Networks are trained in float32, not in 16 bits; maps are in float64.",
)
GREY = (
    "The three channels hold the same image, so that coefficients are summed over them: 1,025 "
    "instead of 3,073 for each map."
)
STANDS = "A MobileNetV2 stands for the pretrained networks; its maps are in float32."
FEW = (
    "Five sets of networks instead of one, for intervals.",
    "Networks are trained in float32, not in 16 bits.",
    STANDS,
)
NOTES = (
    "Each fit has a penalty of 1e-10 of the mean square of a coefficient, so that it is defined "
    "where maps have fewer directions than coefficients; the text does not say how this is done.",
    "The diagonal is the network's own accuracy, as in the figure.",
    "At the scale of the paper the maps of one output of all networks take 20 GB.",
)
SHARED: dict[str, Any] = {
    "smoke": SMOKE,
    "cell": cell,
    "data": _networks.hash_of,
    "seconds": seconds,
    "draw": draw,
    "conclude": conclude,
}

FIGURE_7_8 = Experiment(
    shows="Figure 7.8",
    title="MNIST: accuracy after mapping the local maps of each network to each other one",
    laptop=grid(grid(data="mnist:n=20000"), **SETS, grey=True, mobilenet=[0, 64]),
    paper=grid(grid(data="mnist:n=60000"), **WHOLE, fitted=60_000, grey=False, mobilenet=[0, 224]),
    departures={
        "smoke": ("64 of scikit-learn's digits, one epoch, 20 test images.",),
        "laptop": (*LAPTOP, GREY, f"{STANDS} It sees 64 x 64 pixels."),
        "paper": FEW,
    },
    analyse=MNIST,
    claims=claimed.FIGURE_7_8,
    notes=("The printed matrix cannot be read: it is judged by the sentences about it.", *NOTES),
    **SHARED,
)
"""Figure 7.8: accuracy on MNIST after mapping from each network to each other one."""


FIGURE_7_9 = Experiment(
    shows="Figure 7.9",
    title="CIFAR-10: accuracy after mapping the local maps of each network to each other one",
    laptop=grid(grid(data="cifar10:n=20000"), **SETS, grey=False, mobilenet=0),
    paper=grid(
        grid(data="cifar10:n=50000"), **WHOLE, fitted=50_000, grey=False, mobilenet=[0, 224]
    ),
    departures={
        "smoke": ("64 of scikit-learn's digits, one epoch, 20 test images.",),
        "laptop": (*LAPTOP, "Without pretrained networks."),
        "paper": FEW,
    },
    analyse=CIFAR,
    claims=claimed.FIGURE_7_9,
    notes=(
        "Of the printed matrix only those cells are claims whose accuracy and drop add up to the "
        "target's own accuracy and which are not copies of others.",
        *NOTES,
    ),
    **SHARED,
)
"""Figure 7.9: accuracy on CIFAR-10 after mapping from each network to each other one."""


# ------------------------------------------------------------------------------------ figure 7.7


def example_cell(
    data: str, set: int, epochs: int, fitted: int, points: int, grey: bool
) -> dict[str, Any]:
    """Map the coefficients of a dense network to those of a simple convolutional one."""
    import torch

    from inscape.papers.sattelberg import _images
    from inscape.papers.sattelberg._maps import Maps
    from inscape.papers.sattelberg._transfer import mapped_maps

    given = _images.prepared(data)
    networks = [
        _networks.network(Member(net, 1, "sgd"), data, epochs, set) for net in ("dense", "simple")
    ]
    first, second = (Maps(network, given.x[:fitted], grey=grey) for network in networks)
    tests = [Maps(network, given.x_test[:points], grey=grey) for network in networks]
    parts = []
    for output in range(tests[0].outputs.shape[1]):
        maps = [test.of(output) for test in tests]
        maps.append(mapped_maps((first, second), tests[0], output))
        parts.append(torch.stack([each[:, :-1] for each in maps]))
    found = torch.stack(parts, 2)  # source, target and mapped; images; outputs; coefficients
    values: dict[str, Any] = {
        "correlation": correlation(found[2], found[1]),
        "before": correlation(found[0], found[1]),
    }
    if set == 1:
        image = (3, found.shape[2], -1, _images.SIDE, _images.SIDE)
        shown = found[:, 0].reshape(image).sum(2)
        values |= {
            name: part.float().numpy()
            for name, part in zip(("source", "target", "mapped"), shown, strict=True)
        }
    return values


def correlation(first: Any, second: Any) -> float:
    """Return the mean correlation of coefficients over images and outputs."""
    a, b = (maps - maps.mean(-1, keepdim=True) for maps in (first, second))
    sizes = a.norm(dim=-1) * b.norm(dim=-1)
    return float(((a * b).sum(-1) / sizes).mean())


def draw_example(records: Records) -> Figure:
    """Draw the coefficients of all outputs at one test image: source, mapped and target."""
    from inscape.figures.panels import panels

    record = records.first("mapped")
    outputs = len(record.values["mapped"]) if record else 0
    figure, axes = panels(3 * outputs, columns=max(1, outputs), size=(0.75, 0.85))
    for k, name in enumerate(("source", "mapped", "target")):
        for output in range(outputs):
            assert record is not None  # there are outputs
            image, ax = np.asarray(record.values[name])[output], axes[k * outputs + output]
            top = float(np.abs(image).max()) or 1.0
            ax.imshow(image, cmap="PuOr", vmin=-top, vmax=top)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if output == 0:
                ax.set_ylabel({"source": "dense", "target": "simple"}.get(name, name), fontsize=7)
            if k == 0:
                ax.set_title(str(output), fontsize=7)
    return figure


FIGURE_7_7 = Experiment(
    shows="Figure 7.7",
    title="Coefficients of a dense MNIST network mapped to a convolutional one",
    smoke=grid(data="digits:n=64", set=1, epochs=1, fitted=40, points=5, grey=True),
    laptop=grid(
        data="mnist:n=20000", set=range(1, 6), epochs=3, fitted=10_000, points=100, grey=True
    ),
    paper=grid(
        data="mnist:n=60000", set=range(1, 6), epochs=15, fitted=60_000, points=1000, grey=False
    ),
    departures={
        "smoke": ("64 of scikit-learn's digits, one epoch, five test images.",),
        "laptop": (*LAPTOP[:1], "Fitted on 10,000 images, compared on 100.", *LAPTOP[2:], GREY),
        "paper": FEW[:2],
    },
    cell=example_cell,
    data=hash_of,
    seconds=lambda settings: 30 + 0.007 * settings["fitted"],
    analyse=Quantities(
        {
            "correlation": Mean("correlation"),
            "gain": Mean(lambda record: record.values["correlation"] - record.values["before"]),
        }
    ),
    draw=draw_example,
    claims=claimed.FIGURE_7_7,
    notes=(
        "Both networks were trained by SGD; the figure does not say. Shown is the first test "
        "image of the first set.",
    ),
)
"""Figure 7.7: one image's coefficients, before and after the mapping."""
