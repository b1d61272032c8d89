"""Tables 3 and 4: no regulariser, weight decay, and a norm that is not zero."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, Difference, Mean, Quantities, Quantity
from inscape.lab.records import Records
from inscape.lab.statistics import mean_estimate
from inscape.papers.goldblum import _claims, _data
from inscape.papers.goldblum._claims import NETWORKS, REGULARISERS, UN_NORMALISED

if TYPE_CHECKING:
    from torch import nn

#: Fractions of the epochs at which the rate falls: 100, 175, 225 and 275 of 300.
DROPS = (100 / 300, 175 / 300, 225 / 300, 275 / 300)
LR = 0.1
#: Weight decay of the original papers; that of the MLP is ours.
DECAYS = {"resnet": 1e-4, "densenet": 1e-4, "mobilenet": 4e-5, "fixup": 5e-4, "mlp": 5e-4}
NEGATIVE = -5e-4
#: Square of the norm and coefficient of norm-bias; of the MLP twice the square at the start.
BIASES = {
    "resnet": (2500.0, 0.005),
    "densenet": (2500.0, 0.005),
    "mobilenet": (5000.0, 0.001),
    "fixup": (1000.0, 0.0005),
    "mlp": (None, 0.0005),
}


@dataclass(frozen=True)
class Size:
    """Width of a network, and its epochs."""

    width: float
    epochs: int
    bfloat16: bool = False


SIZES = {
    "paper": {
        "resnet": Size(64, 300),
        "densenet": Size(12, 300),
        "mobilenet": Size(1.0, 300),
        "fixup": Size(16, 300),
        "mlp": Size(2048, 300),
    },
    "narrow": {
        "resnet": Size(8, 12, True),
        "densenet": Size(6, 5, True),
        "mobilenet": Size(0.25, 5, True),
        "fixup": Size(8, 10),
        "mlp": Size(512, 30, True),
    },
    "tiny": {
        "resnet": Size(2, 1),
        "densenet": Size(2, 1),
        "mobilenet": Size(0.1, 1),
        "fixup": Size(2, 1),
        "mlp": Size(8, 1),
    },
}


def network(net: str, width: float, seed: int) -> "nn.Module":
    """Return a network as it starts."""
    from inscape import models

    made: dict[str, Callable[[], nn.Module]] = {
        "resnet": partial(models.resnet18, width=int(width), seed=seed),
        "densenet": partial(models.densenet40, growth=int(width), seed=seed),
        "mobilenet": partial(models.mobilenet_v2, "cifar", width=width, seed=seed),
        "fixup": partial(models.resnet20_fixup, width=int(width), seed=seed),
        "mlp": partial(models.image_mlp, *[int(width)] * 3, seed=seed),
    }
    return made[net]()


def squared_target(net: str, start: float, seed: int) -> float:
    """Return the square of the norm that norm-bias draws towards.

    Args:
        net: The network.
        start: Square of the norm at the start of the network at hand.
        seed: Seed of the start of a network of the paper's width, which the number is for.
    """
    from inscape.papers.goldblum._training import norm_of

    printed = BIASES[net][0]
    if printed is None:
        return 2 * start
    whole = network(net, SIZES["paper"][net].width, seed)
    return printed * start / norm_of(whole) ** 2


def cell(
    data: str, size: str, normalised: bool, net: str, rule: str, points: int, seed: int
) -> dict[str, Any]:
    """Train one network under one regulariser; return test accuracy and norms."""
    from inscape.controls import norm_bias
    from inscape.papers.goldblum._training import Recipe, accuracy, norm_of, train

    given, form = _data.images(data, normalised=normalised), SIZES[size][net]
    model = network(net, form.width, seed)
    values = {"norm_init": norm_of(model)}
    decay = {"weight_decay": DECAYS[net], "negative": NEGATIVE}.get(rule, 0.0)
    more: dict[str, Any] = {}
    if rule == "norm_bias":
        squared, coefficient = squared_target(net, values["norm_init"] ** 2, seed), BIASES[net][1]
        values["norm_target"] = squared**0.5
        more["change"] = partial(norm_bias, mu=squared**0.5, coefficient=coefficient, half=True)
    recipe = Recipe(
        epochs=form.epochs,
        lr=LR,
        drops=DROPS,
        weight_decay=decay,
        augmented=True,
        bfloat16=form.bfloat16,
        **more,
    )
    train(model, given.x, given.y, recipe, seed=seed)
    values["norm"] = norm_of(model)
    values["train"] = accuracy(model, given.x[:points], given.y[:points])
    return values | {"accuracy": accuracy(model, given.x_test[:points], given.y_test[:points])}


#: Seconds that 50,000 images take in an epoch on one thread, by size and network.
COST = {
    "paper": {"resnet": 700, "densenet": 380, "mobilenet": 770, "fixup": 100, "mlp": 50},
    "narrow": {"resnet": 30, "densenet": 95, "mobilenet": 115, "fixup": 42, "mlp": 6},
    "tiny": dict.fromkeys(NETWORKS, 1000),
}


def seconds(settings: Settings) -> float:
    """Guess the time of a cell."""
    size, net = settings["size"], settings["net"]
    images = _data.number_of(settings["data"])
    return 5 + COST[size][net] * SIZES[size][net].epochs * images / 50_000


def accuracy_of(net: str, rule: str) -> Column:
    """Return the column of test accuracies of a network under a regulariser."""
    return Column("accuracy", net=net, rule=rule)


def differences(of: str, prefix: str = "") -> dict[str, Quantity]:
    """Return the paired differences of a number between regularisers, for each network."""
    pairs = (("norm_bias", "weight_decay"), ("weight_decay", "none"), ("norm_bias", "none"))
    return {
        f"{prefix}{a} - {b}/{net}": Difference(
            Column(of, net=net, rule=a), Column(of, net=net, rule=b)
        )
        for net, (a, b) in product(NETWORKS, pairs)
    }


def kept(records: Records) -> Estimate | None:
    """Return the accuracy under negative weight decay, as a fraction of that without any."""
    ones, others = (accuracy_of("resnet", rule)(records, "seed") for rule in ("negative", "none"))
    ratios = [ones[seed] / others[seed] for seed in ones if seed in others]
    return mean_estimate(ratios) if ratios else None


QUANTITIES = Quantities(
    {
        **{
            f"{rule}/{net}": Mean("accuracy").where(net=net, rule=rule)
            for net, rule in product(NETWORKS, (*REGULARISERS, "negative"))
        },
        **{
            f"norm {rule}/{net}": Mean("norm").where(net=net, rule=rule)
            for net, rule in product(NETWORKS, (*REGULARISERS, "negative"))
        },
        **differences("accuracy"),
        **differences("norm", "norm "),
        "norm negative - none/resnet": Difference(
            Column("norm", net="resnet", rule="negative"), Column("norm", net="resnet", rule="none")
        ),
        "negative over none/resnet": kept,
    }
)


def conclude(records: Records) -> list[str]:
    """Say accuracies and norms of each network, and which difference could be seen."""
    known, said = QUANTITIES(records), []
    for net, title in NETWORKS.items():
        parts = [
            f"{rule.replace('_', ' ')} {known[f'{rule}/{net}'].value:.2f}% at a norm of "
            f"{known[f'norm {rule}/{net}'].value:.3g}"
            for rule in (*REGULARISERS, "negative")
            if f"{rule}/{net}" in known
        ]
        if parts:
            said.append(f"{title}: {', '.join(parts)}.")
        pair = known.get(f"norm_bias - weight_decay/{net}")
        if pair is not None and pair.n > 1:
            said.append(
                f"{title}: with {pair.n} seeds a difference of norm-bias and weight decay would be "
                f"seen from {(pair.high - pair.low) / 2:.2g} points on."
            )
    return said


def draw(records: Records) -> Figure:
    """Draw test accuracy by network and regulariser, and the paired differences."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, VERMILION, quiet_grid

    figure, (left, right) = panels(2, columns=2, size=(3.6, 2.8))
    nets = [net for net in NETWORKS if records.where(net=net)]
    for row, net in enumerate(nets):
        columns = {
            rule: accuracy_of(net, rule)(records, "seed") for rule in (*REGULARISERS, "negative")
        }
        colours = (FAINT, BLUE, VERMILION, "0.2")
        for k, ((rule, column), colour) in enumerate(zip(columns.items(), colours, strict=True)):
            label = rule.replace("_", " ") if row == 0 else None
            spots = [row + 0.18 * (k - 1)] * len(column)
            left.plot(list(column.values()), spots, "o", ms=3.5, color=colour, label=label)
        pairs = [("norm_bias", "weight_decay", VERMILION), ("weight_decay", "none", BLUE)]
        for k, (a, b, colour) in enumerate(pairs):
            both = sorted(columns[a].keys() & columns[b].keys())
            gaps = [columns[a][seed] - columns[b][seed] for seed in both]
            label = f"{a} - {b}".replace("_", " ") if row == 0 else None
            spots = [row + 0.2 * (k - 0.5)] * len(gaps)
            right.plot(gaps, spots, "o", ms=3.5, color=colour, label=label)
    right.axvline(0, color="0.5", linewidth=0.8)
    for ax, label in ((left, "test accuracy, %"), (right, "difference by seed, points")):
        ax.set(xlabel=label, yticks=range(len(nets)), ylim=(len(nets) - 0.5, -0.5))
        ax.set_yticklabels([NETWORKS[net] for net in nets] if ax is left else [])
        ax.legend(fontsize=6.5)
        quiet_grid(ax)
    return figure


def only_where_asked(settings: Settings) -> bool:
    """Keep negative weight decay for the ResNet alone, which A.4 has it for."""
    return bool(settings["rule"] != "negative" or settings["net"] == "resnet")


TINY = grid(data="digits:n=20", size="tiny", points=10)
NARROW = grid(data="cifar10:n=50000", size="narrow", points=10_000)
WHOLE = grid(data="cifar10:n=50000", size="paper", points=10_000)
DEPARTURES: Any = {
    "smoke": ("20 of the embedded digits, tiny networks, one epoch.",),
    "laptop": (
        "Narrow networks: ResNet-18 with 8 filters in the first stage instead of 64, DenseNet with "
        "growth 6 instead of 12, MobileNetV2 with a quarter of the channels, Fixup ResNet-20 with "
        "8 filters instead of 16, 512 hidden units instead of 2048.",
        "12, 5, 5, 10 and 30 epochs instead of 300, the rate falling at the same fractions; so "
        "accuracies are not compared with the printed ones, only the signs of differences.",
        "Norm-bias draws towards the printed square of the norm times the ratio of both squares at "
        "the start, narrow over whole.",
        "Five seeds instead of ten.",
        "ResNet-18, DenseNet, MobileNetV2 and the MLP compute in bfloat16 with float32 weights, "
        "images with channels last: 0.65, 0.6, 0.75 and 0.4 of the time of float32 in the same "
        "layout on one thread of an EPYC; Fixup, 0.9, stays in float32.",
    ),
    "paper": ("Weight decay is that of the original papers; that of the MLP is ours (5e-4).",),
}
NOTES = (
    "Regularisers of one seed share the start, the batches, the crops and the flips.",
    "Norm-bias adds the coefficient times the parameters to the gradient, as in the released code: "
    "half of the gradient of Eq. 2 (G2).",
    "The MLP's norm-bias is not printed: a square of twice that at the start, coefficient 0.0005.",
    "Accuracy is that after the last epoch. It must pass chance to mean something: see the table.",
)

TABLE_3 = Experiment(
    shows="Table 3",
    title="Three regularisers on images that are not normalised",
    smoke=grid(TINY, normalised=False, net=["resnet"], rule=["none", "norm_bias"], seed=0),
    laptop=grid(
        NARROW, normalised=False, net=list(UN_NORMALISED), rule=list(REGULARISERS), seed=range(5)
    ),
    paper=grid(
        WHOLE, normalised=False, net=list(UN_NORMALISED), rule=list(REGULARISERS), seed=range(10)
    ),
    departures=DEPARTURES,
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_claims.TABLE_3,
    errata=("G2", "G6"),
    notes=NOTES,
)
"""Table 3: norm-bias against weight decay and nothing, images in [0, 1]."""


TABLE_4 = Experiment(
    shows="Table 4",
    title="Three regularisers on normalised images, two networks without batch norm among them",
    smoke=grid(
        TINY, normalised=True, net=["densenet", "mobilenet", "fixup", "mlp"], rule=["norm_bias"],
        seed=0,
    ),
    laptop=grid(
        NARROW, normalised=True, net=list(NETWORKS), rule=[*REGULARISERS, "negative"],
        seed=range(5),
    ),
    paper=grid(
        WHOLE, normalised=True, net=list(NETWORKS), rule=[*REGULARISERS, "negative"],
        seed=range(10),
    ),
    keeps=only_where_asked,
    departures=DEPARTURES,
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_claims.TABLE_4,
    errata=("G2", "G6"),
    notes=(*NOTES, f"Negative weight decay is {NEGATIVE:g}; the paper does not print it."),
)  # fmt: skip
"""Table 4: the same with images normalised by channel, and the norms of A.4."""
