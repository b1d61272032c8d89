"""Theorem 1: the minimum of the linear problem is a local minimum of the network."""

from typing import Any

from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Exact, Largest, Mean, Quantities
from inscape.lab.records import Records
from inscape.papers.goldblum import _claims, _data
from inscape.papers.goldblum._training import Recipe, mean_loss, train

DECAY = 5e-4
PROVED = "proved, affine on the data"


def cell(
    data: str, side: int, width: int, layers: int, epochs: int, lr: float, seed: int
) -> dict[str, Any]:
    """Embed the linear minimum, ask what kind of point it is, and train from a usual start."""
    import torch

    from inscape.landscape import (
        affine_embedding,
        local_minimum,
        softmax_regression,
        stationarity,
    )
    from inscape.models import image_mlp
    from inscape.models.initialisation import he_normal

    given = _data.images(data, side=side)
    weight, bias = softmax_regression(given.x.flatten(1), given.y)
    net = image_mlp(*[width] * (layers - 1), side=side, seed=seed)
    he_normal(net, seed=seed)
    x = given.x.double()
    embedded, report = affine_embedding(net.double(), x, weight, bias)
    verdict: Any = local_minimum(embedded, x, given.y)
    decayed: Any = stationarity(embedded, x, given.y, weight_decay=DECAY)
    logits = x.flatten(1) @ weight.T + bias
    least = float(torch.nn.functional.cross_entropy(logits, given.y))
    recipe = Recipe(epochs=epochs, lr=lr, drops=(0.5, 0.75))
    linear = torch.nn.Sequential(*[part for part in net if not isinstance(part, torch.nn.ReLU)])
    losses = {}
    for name, other in (("network", net), ("linear", linear)):
        he_normal(other, seed=seed)
        train(other.float(), given.x, given.y, recipe, seed=seed)
        losses[name] = mean_loss(other, given.x, given.y)
    return {
        "verdict": verdict.verdicts[0],
        "radius": float(verdict.radius[0]),
        "gradient": float(verdict.gradients[0]),
        "least": least,
        "gap": abs(float(verdict.losses[0]) - least),
        "positive": float(report.least.min()),
        "gradient with decay": float(decayed.total),
        "network": losses["network"],
        "linear": losses["linear"],
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: two trainings, which cost by the step, and the linear problem."""
    images, inputs = _data.number_of(settings["data"]), 3 * settings["side"] ** 2
    steps = settings["epochs"] * images / 128
    size = (inputs + 2 * settings["width"]) * settings["width"]
    return float(5 + 2 * steps * (1.5e-3 + 1.5e-8 * size) + 4e-6 * images * inputs)


QUANTITIES = Quantities(
    {
        "certified": Exact(
            lambda record: float(record.values["verdict"] == PROVED),
            lambda flags: sum(flags) / len(flags),
            "certificate in float64",
        ),
        "gap": Largest("gap"),
        "radius": Largest("radius"),
        "below": Mean(lambda record: record.values["least"] - record.values["network"]),
        "linear below": Mean(lambda record: record.values["least"] - record.values["linear"]),
        "gradient with decay": Mean("gradient with decay"),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how near the true minimum is, and what weight decay does to it."""
    known = QUANTITIES(records)
    if "below" not in known or not records[0].values.get("least"):
        return []
    least = records[0].values["least"]
    return [
        f"The linear minimum has a loss of {least:.4f}. The network embedded there is within "
        f"{known['radius'].value:.1e} of a true local minimum where it is certified; default "
        f"training ends {known['below'].value:.3g} lower, the deep linear network "
        f"{-known['linear below'].value:.2g} above.",
        f"With weight decay of {DECAY:g} the gradient at this point has the norm "
        f"{known['gradient with decay'].value:.3g}: it is not stationary (G5).",
    ]


def draw(records: Records) -> Figure:
    """Draw the loss at the embedded minimum and after both trainings, for each seed."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    figure, (ax,) = panels(1, columns=1, size=(4.2, 2.8))
    seeds = [record.settings["seed"] for record in records]
    for name, words, colour in (
        ("linear", "deep linear network, trained", BLUE),
        ("network", "the ReLU network, trained", VERMILION),
    ):
        ax.plot(seeds, records.values(name), "o", color=colour, label=words)
    least = records[0].values["least"]
    ax.axhline(least, color="0.3", linewidth=1, label="certified local minimum (Lemma 1)")
    ax.set(xlabel="seed", ylabel="loss on the training set", xticks=seeds)
    ax.set_ylim(0, None)
    ax.legend(fontsize=7)
    quiet_grid(ax)
    return figure


EXPERIMENT = Experiment(
    shows="Theorem 1",
    title="The linear minimum inside a ReLU network: a local minimum, certified, and suboptimal",
    smoke=grid(data="digits:n=200", side=2, width=12, layers=3, epochs=1, lr=0.01, seed=[0]),
    laptop=grid(
        data="cifar10:n=5000", side=8, width=64, layers=4, epochs=60, lr=0.01, seed=range(5)
    ),
    paper=grid(
        data="cifar10:n=50000", side=32, width=2048, layers=4, epochs=600, lr=0.01, seed=range(5)
    ),
    departures={
        "smoke": ("200 of the embedded digits at 2 x 2 pixels, 12 hidden units, one epoch.",),
        "laptop": (
            "5,000 images, averaged to 8 x 8 pixels: with 3,072 inputs so few are separable, and "
            "the linear problem has no minimum; 64 hidden units; 60 epochs.",
        ),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_claims.THEOREM_1,
    errata=("G1", "G5", "G10"),
    notes=(
        "The linear problem is that of cross-entropy without weight decay, solved by Newton's "
        "method to a gradient below 1e-9; the network is then judged by our local_minimum.",
        "Both networks are trained by SGD with momentum 0.9 from He's normal initialisation; the "
        "rate falls tenfold after half and three quarters of the epochs.",
    ),
)
