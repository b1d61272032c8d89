"""Figures 1, 3, 4 and 5: how training changes the tangent kernel, by width of the network."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Estimate, Experiment, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities, Slope, Tau
from inscape.lab.records import Record, Records
from inscape.lab.statistics import paired_difference
from inscape.papers.goldblum import _claims, _data
from inscape.papers.goldblum import _kernel_figures as figures
from inscape.papers.goldblum._kernel_figures import TITLES, at_end

if TYPE_CHECKING:
    from torch import Tensor, nn

LR, MOMENTUM, DECAY, BATCH = 0.01, 0.9, 5e-4, 128
#: The rate falls to a fifth at these fractions of the epochs: 60, 120 and 160 of 200.
DROPS, FACTOR = (0.3, 0.6, 0.8), 0.2
#: Images that a kernel is of, and the batch whose lowest classes the code takes.
POINTS = 25
#: Fractions of the training at which the kernel is measured.
PROBES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
EARLY = 0.1
PAPER_EPOCHS = 200
#: Networks that train in bfloat16 with channels last at scales below the paper's.
CONVOLUTIONAL = ("conv", "wide-resnet")
CHOICES = ("random", "sorted")


def network(net: str, width: int, seed: int) -> "nn.Module":
    """Return a network of figure 1 as it starts, PyTorch's own way as in the code."""
    from inscape import models

    made: dict[str, Callable[[], nn.Module]] = {
        "mlp-2": lambda: models.image_mlp(width, seed=seed),
        "mlp-4": lambda: models.image_mlp(width, width, width, seed=seed),
        "conv": lambda: models.conv_net(width=width, seed=seed),
        "wide-resnet": lambda: models.wide_resnet16(width=width, seed=seed),
    }
    return made[net]()


def kernel_images(given: _data.Images, choice: str, seed: int) -> "Tensor":
    """Return 25 random images, or the first of the first batch when it is sorted by class."""
    import torch

    if choice == "random":
        rng = torch.Generator().manual_seed(seed)
        return given.x[torch.randperm(len(given.x), generator=rng)[:POINTS]]
    order = torch.argsort(given.y[:BATCH], stable=True)
    return given.x[:BATCH][order[:POINTS]]


def cell(data: str, net: str, width: int, epochs: int, points: int, seed: int) -> dict[str, Any]:
    """Train one network; return how its kernel changes, its accuracy and how far it moves."""
    import torch

    from inscape.kernels import kernel_drift
    from inscape.papers.goldblum._training import Bfloat16WhileTraining, accuracy
    from inscape.training import fit, schedules

    given = _data.images(data)
    model = network(net, width, seed)
    if net in CONVOLUTIONAL and epochs < PAPER_EPOCHS:
        model = Bfloat16WhileTraining(model)
    start = torch.cat([p.detach().flatten() for p in model.parameters()]).double()
    per_epoch = -(-len(given.x) // BATCH)
    falls = tuple(round(drop * epochs) * per_epoch for drop in DROPS)
    run = fit(
        model,
        given.x,
        given.y,
        loss="cross_entropy",
        lr=LR,
        momentum=MOMENTUM,
        weight_decay=DECAY,
        batch=BATCH,
        epochs=epochs,
        schedule=schedules.steps(falls, FACTOR),
        seed=seed,
        record=per_epoch,
        progress=False,
    )
    measured = sorted({round(probe * epochs) for probe in PROBES})
    values: dict[str, Any] = {"epochs measured": measured, "train_loss": float(run.losses[-1])}
    for choice in CHOICES:
        chosen = measured if choice == "random" else [0, epochs]
        found: Any = kernel_drift(
            model,
            kernel_images(given, choice, seed),
            trajectory=run.trajectory,
            steps=[epoch * per_epoch for epoch in chosen],
            outputs="full",
        )
        columns = ("correlation", "cosine", "change", "rescaled", "norm_change")
        values[choice] = {name: getattr(found, name)[:, 0].tolist() for name in columns}
        values[choice] |= {
            name: getattr(found, name).tolist() for name in ("norms", "parameter_norms")
        }
    moved = torch.cat([p.detach().flatten() for p in model.parameters()]).double() - start
    return values | {
        "parameters": len(start),
        "moved": float(moved.norm()) / len(start) ** 0.5,
        "relative": float(moved.norm() / start.norm()),
        "accuracy": accuracy(model, given.x_test[:points], given.y_test[:points]),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training and eight kernels."""
    width, net = settings["width"], settings["net"]
    images = _data.number_of(settings["data"]) * settings["epochs"] + 3000 * len(PROBES)
    each = {
        "mlp-2": 1e-5 + 2.5e-7 * width,
        "mlp-4": 1e-5 + 3e-7 * width + 1e-9 * width**2,
        "conv": 1e-4 + 2e-5 * width + 3e-6 * width**2,
        "wide-resnet": 6e-4 * width + 2e-4 * width**2,
    }[net]
    return 5 + float(each * images)


def early(record: Record) -> float | None:
    """Return the share of the fall of the correlation within the first tenth of the epochs."""
    measured, correlation = record.values["epochs measured"], record.values["random"]["correlation"]
    wanted = EARLY * measured[-1]
    if wanted not in measured or not correlation[-1] < 1:
        return None
    return float((1 - correlation[measured.index(wanted)]) / (1 - correlation[-1]))


def widest(records: Records, net: str, of: Any) -> Estimate | None:
    """Return the mean of a number of the widest networks."""
    own = records.where(net=net)
    return Mean(of).where(width=max(own.different("width")))(own) if own else None


def drop(records: Records, net: str) -> Estimate | None:
    """Return the correlation of the widest networks less that of the best width before it."""
    own = records.where(net=net)
    columns = {
        width: own.where(width=width).column(at_end("correlation"))
        for width in own.different("width")
    }
    if len(columns) < 2:
        return None
    last = columns.pop(max(columns))
    best = max(columns.values(), key=lambda column: np.mean(list(column.values() or [-1.0])))
    seeds = sorted(last.keys() & best.keys())
    return paired_difference([last[s] for s in seeds], [best[s] for s in seeds]) if seeds else None


def change_with_width(records: Records) -> dict[str, Estimate | None]:
    """Return the quantities of each architecture."""
    found: dict[str, Estimate | None] = {}
    for net in TITLES:
        own = records.where(net=net)
        many = len(own.different("width")) > 1
        for name in ("correlation", "cosine"):
            for choice in CHOICES:
                tail = "" if choice == "random" else ", sorted"
                tau = Tau("width", at_end(name, choice), interval="t") if many else None
                found[f"tau {name}{tail}/{net}"] = tau(own) if tau else None
                found[f"widest {name}{tail}/{net}"] = widest(own, net, at_end(name, choice))
        found[f"drop correlation/{net}"] = drop(records, net)
        found[f"widest rescaled/{net}"] = widest(records, net, at_end("rescaled"))
        found[f"early/{net}"] = widest(records, net, early)
        for name, of in (
            ("change", at_end("change")),
            ("moved", "moved"),
            ("relative", "relative"),
        ):
            found[f"power {name}/{net}"] = Slope("width", of)(own) if many else None
        found[f"accuracy/{net}"] = widest(records, net, "accuracy")
    return found


QUANTITIES = Quantities({}, change_with_width)


def only(*names: str) -> Callable[[Records], dict[str, Estimate]]:
    """Return the analysis that gives the quantities of these names alone."""

    def chosen(records: Records) -> dict[str, Estimate]:
        known = QUANTITIES(records)
        return {name: known[name] for name in known if name.partition("/")[0] in names}

    return chosen


def conclude(records: Records) -> list[str]:
    """Say how the correlation goes with width, for both choices of images, and the accuracy."""
    known, said = QUANTITIES(records), []
    for net, title in TITLES.items():
        own = records.where(net=net)
        if not own:
            continue
        means = [
            np.mean(own.where(width=w).values(at_end("correlation")) or [np.nan])
            for w in own.different("width")
        ]
        widths = ", ".join(str(width) for width in own.different("width"))
        shown = ", ".join(f"{mean:.2f}" for mean in means)
        said.append(f"{title}, widths {widths}: correlation {shown}.")
        both = [known.get(f"widest correlation{tail}/{net}") for tail in ("", ", sorted")]
        if both[0] is not None and both[1] is not None:
            said.append(
                f"{title}, widest: correlation {both[0].value:.2f} on random images, "
                f"{both[1].value:.2f} on the first of the batch sorted by class, as in the code; "
                f"test accuracy {known[f'accuracy/{net}'].value:.1f}%."
            )
    return said


#: Widths of the paper's networks.
TENS = [*range(1, 11), *range(20, 101, 10)]
WIDTHS = {
    "mlp-2": [*TENS, *range(200, 1001, 100), *range(2000, 10_001, 1000)],
    "mlp-4": [*TENS, *range(200, 1001, 100), 2000, 3000, 4000],
    "conv": [*TENS, 200, 300],
    "wide-resnet": [*range(1, 17)],
}
#: Data of the WideResNets at laptop scale, where the others have twice as many images.
FEWER = "cifar10:n=2500"
LAPTOP_WIDTHS = {
    "mlp-2": [4, 16, 64, 256, 1024],
    "mlp-4": [4, 16, 64, 256, 1024],
    "conv": [1, 2, 4, 8, 16],
    "wide-resnet": [1, 2, 3],
}


def keeps(settings: Settings) -> bool:
    """Keep the widths that an architecture has at a scale."""
    of_paper = settings["epochs"] >= PAPER_EPOCHS
    if settings["epochs"] == 20 and (settings["data"] == FEWER) != (
        settings["net"] == "wide-resnet"
    ):
        return False
    return settings["width"] in (WIDTHS if of_paper else LAPTOP_WIDTHS)[settings["net"]]


def _all(widths: dict[str, list[int]]) -> list[int]:
    return sorted({width for own in widths.values() for width in own})


FIGURE_1 = Experiment(
    shows="Figure 1",
    title="Change of the tangent kernel by training, by number of parameters",
    smoke=grid(
        data="digits:n=60", net=["conv"], width=[1, 2], epochs=2, points=20, seed=0
    ),
    laptop=grid(
        data=["cifar10:n=5000", FEWER], net=list(TITLES), width=_all(LAPTOP_WIDTHS), epochs=20,
        points=2000, seed=range(5),
    ),
    paper=grid(
        data="cifar10:n=50000", net=list(TITLES), width=_all(WIDTHS), epochs=PAPER_EPOCHS,
        points=10_000, seed=range(5),
    ),
    keeps=keeps,
    departures={
        "smoke": ("60 of the embedded digits, ConvNets of one and two filters, two epochs.",),
        "laptop": (
            "The first 5,000 images (WideResNets: 2,500), 20 epochs; MLPs up to 1,024 units "
            "instead of 4,000 and 10,000, ConvNets up to 16 filters instead of 300, WideResNets up "
            "to width 3 instead of 16; the drop at the end, which needs the widest "
            "MLPs, is not judged.",
            "ConvNets and WideResNets train in bfloat16 with float32 weights, images with channels "
            "last: 0.46 and 0.5 of the time of float32 in the same layout on one thread of an "
            "EPYC, 0.3 and 0.45 of that in PyTorch's own; kernels and accuracies are in float32.",
        ),
        "paper": ("Five seeds of each width; 200 epochs (the code: 200 and 600; no number in the "
                  "text).",),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=figures.draw_figure_1,
    claims=_claims.FIGURE_1,
    errata=("G4",),
    notes=(
        "Kernels are of 25 images and all ten outputs (250 x 250), in eval mode and float32. "
        "Images are random ones; and the first 25 of the first 128 when these are sorted by "
        "class, which the code takes: two or three classes.",
        "Networks begin as PyTorch has it, as in the released code; the text says uniform He.",
        "The share of the change that is a rescaling is that of its square: the rest is what is "
        "left beside the nearest multiple of the first kernel.",
    ),
)  # fmt: skip
"""Figure 1: the kernel after training beside that before, for four architectures."""


FIGURE_3 = Experiment(
    shows="Figure 3",
    title="Norm and correlation of the tangent kernel, and norm of the parameters, over training",
    same_as="goldblum/figure-1",
    analyse=only("early"),
    draw=figures.draw_figure_3,
    claims=_claims.FIGURE_3,
    notes=(
        "The widest network of each architecture, at six moments; the runs are those of figure 1.",
        "The paper does not say which widths it shows.",
    ),
)
"""Figure 3: most of the change happens early."""


FIGURE_4 = Experiment(
    shows="Figure 4",
    title="Cosine similarity of the tangent kernels and the difference of their norms",
    same_as="goldblum/figure-1",
    draw=figures.draw_figure_4,
    notes=("The runs, their claims and their verdicts are those of figure 1.",),
)
"""Figure 4: the same as figure 1 by two other measures."""


FIGURE_5 = Experiment(
    shows="Figure 5",
    title="Test accuracy and change of the parameters of the networks of figure 1",
    same_as="goldblum/figure-1",
    analyse=only("accuracy", "power moved", "power relative"),
    draw=figures.draw_figure_5,
    claims=_claims.FIGURE_5,
    notes=("The average change per parameter is the root mean square of all changes.",),
)
"""Figure 5: the networks learn, and each parameter changes less the more there are."""
