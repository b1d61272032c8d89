"""Table 5 and figure 2: low and high rank, natural and adversarial training, robustness."""

import copy
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, Difference, Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.lab.statistics import mean_estimate
from inscape.papers.goldblum import _claims, _data

if TYPE_CHECKING:
    from torch import nn

    from inscape.papers.goldblum._training import Recipe

#: Rows of the table, by training and method.
ROWS = {
    ("natural", "plain"): "naturally-trained",
    ("natural", "rankmax"): "rankmax",
    ("natural", "rankmin"): "rankmin",
    ("adversarial", "plain"): "adversarially-trained",
    ("adversarial", "rankmax"): "rankmaxadv",
    ("adversarial", "rankmin"): "rankminadv",
}
METHODS = ("plain", "rankmax", "rankmin")
NUMBERS = ("train", "clean", "robust_8_255", "robust_1_255")
#: Radius of the ball that images are moved in while training, of 255.
RADII = {"natural": 0, "adversarial": 8, "adversarial, code": 4}
THRESHOLD, CEILING = 0.5, 1.5
#: The last 20 of 220 epochs: projections after these, drops of the rate at those.
PROJECTED, DROPS, LAST = (1, 5, 10), (3 / 20, 8 / 20), 20


def cell(
    data: str, width: int, epochs: int, last: int, training: str, points: int, seed: int
) -> dict[str, Any]:
    """Train one network, go on in three ways; return accuracies and effective ranks of each."""
    from inscape.models import resnet18
    from inscape.papers.goldblum._training import Attack, Recipe, train

    given = _data.images(data, normalised=False)
    net = resnet18(width=width, seed=seed)
    values: dict[str, Any] = {"untrained": {"ranks": ranks(net, given)}}
    radius = RADII[training]
    attack = Attack(budget=radius / 255, step=radius / 4 / 255) if radius else None
    shared: Any = {"weight_decay": 2e-4, "augmented": True, "attack": attack}
    shared["bfloat16"] = epochs < 100 and attack is None
    recipe = Recipe(epochs=epochs, lr=0.1, drops=(0.5, 0.75), **shared)
    train(net, given.x, given.y, recipe, seed=seed)
    going_on = Recipe(epochs=last, lr=0.001, drops=DROPS, clip=0.1, **shared)
    for method in METHODS:
        own = copy.deepcopy(net)
        errors = go_on(own, given, going_on, method, seed)
        values[method] = {"ranks": ranks(own, given), "cropped": errors}
        values[method] |= accuracies(own, given, points, seed)
    return values


def go_on(
    net: "nn.Module", given: _data.Images, recipe: "Recipe", method: str, seed: int
) -> list[float]:
    """Train for the last epochs; return the mean error of cropping at each projection."""
    from inscape.controls import rank_max, rank_min
    from inscape.papers.goldblum._training import train

    errors: list[float] = []
    options: Any = {"stride": "one", "layers": block_convolutions(net)}
    project: Any = {
        "rankmin": partial(rank_min, threshold=THRESHOLD, **options),
        "rankmax": partial(rank_max, ceiling=CEILING, **options),
    }.get(method)
    moments = {ceil(epoch * recipe.epochs / LAST) for epoch in PROJECTED}

    def after_epoch(epoch: int) -> None:
        if project is not None and epoch in moments:
            errors.append(float(project(net, given.x[:1]).errors.mean()))

    train(net, given.x, given.y, recipe, seed=seed + 1000, after_epoch=after_epoch)
    return errors


def block_convolutions(net: "nn.Module") -> list[str]:
    """Return the names of the 16 convolutions of 3 x 3 in the blocks."""
    from torch import nn

    named = [(name, m) for name, m in net.named_modules() if isinstance(m, nn.Conv2d)]
    return [name for name, m in named[1:] if m.kernel_size == (3, 3)]


def ranks(net: "nn.Module", given: _data.Images) -> list[float]:
    """Return the effective rank of the convolutions of the blocks, in their order."""
    from inscape.spectra import effective_rank

    found: Any = effective_rank(net.eval(), given.x[:1], layers=block_convolutions(net))
    return [float(rank) for rank in found.ranks]


def accuracies(net: "nn.Module", given: _data.Images, points: int, seed: int) -> dict[str, float]:
    """Return the accuracy on training and test images, and under PGD with 20 steps."""
    from inscape.papers.goldblum._training import accuracy
    from inscape.robustness import Pgd, robustness

    x, y = given.x_test[:points], given.y_test[:points]
    settings: Any = {
        "attack": Pgd(steps=20, step_size=0.25), "norm": "linf", "bounds": (0.0, 1.0),
        "carry": False, "sanity": False, "examples": 0, "points": points, "seed": seed,
    }  # fmt: skip
    found: Any = robustness(net, x, y, budgets=[1 / 255, 8 / 255], **settings)
    near, far = (100 * float(share) for share in found.accuracy[-2:])
    return {
        "train": accuracy(net, given.x[:points], given.y[:points]),
        "clean": accuracy(net, given.x_test, given.y_test),
        "robust_8_255": far,
        "robust_1_255": near,
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: passes over the images, and the attack on the test images."""
    passes = 8 if RADII[settings["training"]] else 1
    images = (
        passes * _data.number_of(settings["data"]) * (settings["epochs"] + 3 * settings["last"])
    )
    each = 3e-4 + 5e-5 * settings["width"] + 4e-6 * settings["width"] ** 2
    return 10 + float(each * (images + 45 * settings["points"]))


def of(method: str, name: str) -> Callable[[Record], float]:
    """Return the function that reads a number of a method; of ranks their mean."""

    def read(record: Record) -> float:
        return float(np.mean(record.values[method]["ranks" if name == "rank" else name]))

    return read


def difference(name: str, training: str, method: str, other: str) -> Difference:
    """Return the paired difference of a number between two methods of one training."""
    return Difference(
        Column(of(method, name), training=training), Column(of(other, name), training=training)
    )


def over_natural(records: Records) -> Estimate | None:
    """Return the mean effective rank after adversarial over that after natural training."""
    ones, others = (
        records.where(training=training).column(of("plain", "rank"))
        for training in ("adversarial", "natural")
    )
    ratios = [ones[seed] / others[seed] for seed in ones if seed in others]
    return mean_estimate(ratios) if ratios else None


QUANTITIES = Quantities(
    {
        **{
            f"{name}/{row}": Mean(of(method, name)).where(training=training)
            for (training, method), row in ROWS.items()
            for name in NUMBERS
        },
        **{
            f"clean {method} - natural": difference("clean", "natural", method, "plain")
            for method in METHODS[1:]
        },
        "robust rankminadv - adversarial": difference(
            "robust_8_255", "adversarial", "rankmin", "plain"
        ),
        "robust rankminadv - rankmaxadv": difference(
            "robust_8_255", "adversarial", "rankmin", "rankmax"
        ),
        **{
            f"rank {method} - {training}": difference("rank", training, method, "plain")
            for training in ("natural", "adversarial")
            for method in (*METHODS[1:], "untrained")
        },
        "rank adversarial over natural": over_natural,
    }
)


def of_ranks(records: Records) -> dict[str, Estimate]:
    """Return the quantities that are effective ranks, for figure 2."""
    return {name: known for name, known in QUANTITIES(records).items() if name.startswith("rank ")}


def conclude(records: Records) -> list[str]:
    """Say accuracies and mean ranks of each row, and what cropping the kernels costs."""
    known, said = QUANTITIES(records), []
    for (training, method), row in ROWS.items():
        own = records.where(training=training)
        if not own or f"clean/{row}" not in known:
            continue
        shown = ", ".join(f"{known[f'{name}/{row}'].value:.1f}" for name in NUMBERS)
        rank = np.mean(own.values(of(method, "rank")))
        line = f"{row}: {shown}% (train, clean, 8/255, 1/255), mean effective rank {rank:.1f}"
        errors = [e for record in own for e in record.values[method]["cropped"]]
        if errors:
            line += f"; cropping to 3 x 3 leaves {100 * np.mean(errors):.0f}% of the map behind"
        said.append(f"{line}.")
    return [line[0].upper() + line[1:] for line in said]


def draw_table_5(records: Records) -> Figure:
    """Draw the four accuracies of each row."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    figure, (ax,) = panels(1, columns=1, size=(5.4, 3.0))
    rows = {key: row for key, row in ROWS.items() if records.where(training=key[0])}
    for k, (name, colour) in enumerate(zip(NUMBERS, CATEGORIES, strict=False)):
        for place, (training, method) in enumerate(rows):
            numbers = records.where(training=training).values(of(method, name))
            label = name.replace("_", " ", 1).replace("_", "/") if place == 0 else None
            spots = [place + 0.16 * (k - 1.5)] * len(numbers)
            ax.plot(numbers, spots, "o", ms=4, color=colour, label=label)
    ax.set(xlabel="accuracy, %", yticks=range(len(rows)), ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticklabels(list(rows.values()))
    ax.legend(fontsize=6.5)
    quiet_grid(ax)
    return figure


def draw_figure_2(records: Records) -> Figure:
    """Draw the effective rank of each filter, a panel for each training."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    kinds = [kind for kind in ("natural", "adversarial") if records.where(training=kind)]
    figure, axes = panels(len(kinds), columns=2, size=(3.6, 2.7))
    for ax, kind in zip(axes, kinds, strict=False):
        own = records.where(training=kind)
        for method, colour in zip(("untrained", *METHODS), CATEGORIES, strict=False):
            lines = np.array([record.values[method]["ranks"] for record in own])
            x = np.arange(1, lines.shape[1] + 1)
            ax.plot(x, lines.mean(0), "o-", ms=3, color=colour, label=method)
        ax.set(title=f"{kind} training", xlabel="filter", ylabel="effective rank")
        quiet_grid(ax)
    axes[0].legend(fontsize=6.5)
    return figure


TABLE_5 = Experiment(
    shows="Table 5",
    title="Accuracy and robustness of ResNet-18 with small or large singular values cut",
    smoke=grid(
        data="digits:n=20", width=2, epochs=1, last=1, training=["natural", "adversarial"],
        points=4, seed=0,
    ),
    laptop=grid(
        data="cifar10:n=7000", width=8, epochs=12, last=4, training=["natural", "adversarial"],
        points=500, seed=range(5),
    ),
    paper=grid(
        data="cifar10:n=50000", width=64, epochs=200, last=20, training=list(RADII),
        points=10_000, seed=range(5),
    ),
    departures={
        "smoke": ("20 of the embedded digits, two filters, one epoch.",),
        "laptop": (
            "7,000 images; 8 filters in the first stage instead of 64; 12 and 4 epochs instead of "
            "200 and 20, with drops at the same fractions and projections after the first and the "
            "second of the last ones; attacks on 500 test images.",
            "Natural training computes in bfloat16 with images in channels-last order, 0.65 of the "
            "time of float32; adversarial training in float32.",
        ),
        "paper": ("Five seeds instead of one; 4/255 as in the code beside 8/255.",),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw_table_5,
    claims=_claims.TABLE_5,
    errata=("G3",),
    notes=(
        "Effective rank is nuclear over Frobenius norm of the circular convolution (G3), of the "
        "16 convolutions of 3 x 3 in the blocks; only these are projected, as in the code.",
        "Strided layers are projected as if they had no stride (Sedghi et al.), on feature maps of "
        "their real sizes; the released code uses those of ImageNet.",
        "The network without projection is trained for the last epochs, too, so that rows differ "
        "in projections alone.",
        "The last epochs are those of the code: rate 0.001, gradients clipped at 0.1; images lie "
        "in [0, 1] and are not normalised; weight decay 2e-4.",
    ),
)  # fmt: skip
"""Table 5: neither low nor high rank makes networks robust."""


FIGURE_2 = Experiment(
    shows="Figure 2",
    title="Effective rank of each convolution, untrained and after each training",
    same_as="goldblum/table-5",
    analyse=of_ranks,
    conclude=conclude,
    draw=draw_figure_2,
    claims=_claims.FIGURE_2,
    errata=("G3",),
    notes=("The runs are those of table 5.",),
)
"""Figure 2: RankMin and RankMax change the effective rank as they should."""
