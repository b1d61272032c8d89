"""Section 6.2: the completion of shapes by a U-Net, where it succeeds and where it fails."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, Difference, Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.lab.statistics import exact_estimate

if TYPE_CHECKING:
    from torch import Tensor

    from inscape.training import Fit


Array = npt.NDArray[Any]
#: Which of the tested shapes are kept as pictures, by the order of their overlap.
KEPT = {"worst": 0.0, "lower quarter": 0.25, "median": 0.5, "best": 1.0}
#: Epochs without a lower loss after which the learning rate is divided by ten; the text: a few.
PATIENCE = 3


def trained(
    side: int, n: int, channels: Sequence[int], epochs: int, batch: int, lr: float, seed: int
) -> "Fit":
    """Train a U-Net as section 6.2.2 says: Ranger, mean squared error, flips, plateaus."""
    import torch

    from inscape.models import unet
    from inscape.papers.courtois._flips import Flipped
    from inscape.papers.courtois._shapes import shapes
    from inscape.training import fit, plateau

    x, y = shapes(n, side, seed=seed)
    model = Flipped(unet(channels=channels, seed=seed))
    for parameter in model.parameters():
        if parameter.ndim == 4:  # with channels last a convolution is faster by a third
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return fit(
        model,
        x,
        y,
        optimizer="ranger",
        lr=lr,
        batch=batch,
        epochs=epochs,
        schedule=plateau(0.1, PATIENCE),
        seed=seed,
        progress=False,
    )


def cell(
    side: int,
    n: int,
    tested: int,
    channels: list[int],
    epochs: int,
    batch: int,
    lr: float,
    seed: int,
) -> dict[str, Any]:
    """Train one U-Net and test it on shapes of each grade."""
    from inscape.papers.courtois._shapes import KINDS, overlap, shapes

    run = trained(side, n, channels, epochs, batch, lr, seed)
    found: dict[str, Any] = {"loss": run.loss, "losses": run.losses.float().numpy()}
    for kind in KINDS:
        x, y = shapes(tested, side, kind, seed=1_000_000 + seed)
        guess = predicted(run.model, x)
        overlaps = overlap(guess, y).numpy()
        found[f"overlap/{kind}"] = overlaps.astype(np.float32)
        order = np.argsort(overlaps, kind="stable")
        rows = [int(order[round(place * (tested - 1))]) for place in KEPT.values()]
        both = np.concatenate([x[rows], y[rows], guess[rows]], 1)
        found[f"pictures/{kind}"] = np.round(255 * both.clip(0, 1)).astype(np.uint8)
    return found


def predicted(model: Any, x: "Tensor") -> "Tensor":
    """Return the outputs of a model, so many at a time that they fit into memory."""
    import torch

    with torch.no_grad():
        return torch.cat([model(part) for part in torch.split(x, 100)])


#: How the grades are called in figures.
NAMES = {
    "training": "Shapes like those of the training",
    "harder": "Harder shapes",
    "much harder": "Much harder shapes",
}


def _overlap(kind: str, rule: Callable[[Any], Any]) -> Callable[[Record], float]:
    """Return what gives the mean, or the worst, overlap of one grade."""
    return lambda record: float(rule(record.values[f"overlap/{kind}"]))


def _fall(one: str, other: str) -> Difference:
    return Difference(Column(_overlap(one, np.mean)), Column(_overlap(other, np.mean)))


QUANTITIES = Quantities(
    {
        **{f"overlap/{kind}": Mean(_overlap(kind, np.mean)) for kind in NAMES},
        **{f"worst/{kind}": Mean(_overlap(kind, np.min)) for kind in NAMES},
        "fall/harder": _fall("training", "harder"),
        "fall/much harder": _fall("training", "much harder"),
        "fall/between": _fall("harder", "much harder"),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how many shapes of each grade are completed nearly perfectly."""
    said = []
    for kind, name in NAMES.items():
        overlaps = np.concatenate([record.values[f"overlap/{kind}"] for record in records])
        said.append(
            f"{name}: mean overlap {overlaps.mean():.2%}, worst {overlaps.min():.1%}; "
            f"{np.mean(overlaps >= 0.98):.0%} of {len(overlaps)} are completed to 98% or more."
        )
    return said


def gallery(values: Mapping[str, Any], kind: str, kept: Sequence[str]) -> Figure:
    """Draw kept shapes of one grade: boundary, prediction, and where it is wrong."""
    from inscape.figures.panels import panels
    from inscape.papers.courtois._diagrams import framed

    pictures = np.asarray(values[f"pictures/{kind}"]) / 255
    figure, axes = panels(3 * len(kept), columns=3, size=(1.7, 1.8))
    for row, name in enumerate(kept):
        edge, shape, guess = pictures[list(KEPT).index(name)]
        mine, theirs = guess > 0.5, shape > 0.5
        score = (mine & theirs).sum() / max(1, (mine | theirs).sum())
        shown = {
            "input": 1 - edge / max(edge.max(), 1e-9),
            "prediction": 1 - guess,
            "faults: missed orange, added blue": _faults(mine, theirs),
        }
        for column, (title, picture) in enumerate(shown.items()):
            framed(axes[3 * row + column], picture)
            if row == 0:
                axes[column].set_title(title, fontsize=7.5)
        axes[3 * row].set_ylabel(f"{name}: {score:.1%}")
    return figure


def _faults(mine: Array, theirs: Array) -> Array:
    """Return a picture in which what is right is grey and what is wrong has a colour."""
    from matplotlib.colors import to_rgb

    from inscape.figures.style import BLUE, RULE, VERMILION

    picture = np.ones((*mine.shape, 3))
    for where, colour in (
        (mine & theirs, RULE),
        (theirs & ~mine, VERMILION),
        (mine & ~theirs, BLUE),
    ):
        picture[where] = to_rgb(colour)
    return picture


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: pictures times pixels times the channels squared."""
    load = sum(4.0**-k * c * c for k, c in enumerate(settings["channels"]))
    seen = settings["n"] * settings["epochs"] * settings["side"] ** 2
    return float(2 + 7e-9 * seen * load + 0.01 * (settings["n"] + 3 * settings["tested"]))


LAPTOP = grid(side=64, n=1024, tested=200, channels=[[8, 8, 16, 16, 32, 32]], epochs=30)
LAPTOP = grid(LAPTOP, batch=32, lr=0.01, seed=range(3))
WIDE = [[16, 32, 64, 128, 256, 512]]
PAPER = grid(LAPTOP, side=128, n=10_000, tested=1000, channels=WIDE, epochs=150)
SMOKE = grid(LAPTOP, side=32, n=8, tested=2, channels=[[2] * 6], epochs=1, batch=4, seed=0)
DEPARTURE = (
    "Images of 64 x 64 pixels (drawn at 256 x 256) instead of 128 x 128, 1024 shapes of training "
    "instead of 10,000, 30 epochs instead of 150, and a U-Net of 8 to 32 channels: minutes on one "
    "core instead of hours on a graphics card."
)
CHOICES = (
    "The paper's shapes come from an online demo; ours are thick trees of walks that keep clear of "
    "each other, drawn with 2 to 5 branches for training and testing, 6 to 9 thinner ones (harder) "
    "and 24 to 40 still thinner ones that fill the picture (much harder).",
    "Left open and chosen here: channels (printed only in the figure), He's initial weights, batch "
    "normalisation after each convolution, Lookahead every 6 steps by one half, a plateau is "
    f"{PATIENCE} epochs without a lower training loss, overlap is that of both pictures cut at one "
    "half, the second halving is a Lanczos filter like the first.",
)


def draw_shapes(records: Records) -> Figure:
    """Draw the loss of every training, and how the overlaps of each grade are spread."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, CATEGORIES, DASHES, quiet_grid

    figure, (left, right) = panels(2, size=(3.4, 2.7))
    for record in records:
        losses = record.values["losses"]
        left.semilogy(1 + np.arange(len(losses)), losses, ".-", color=BLUE, lw=1, ms=3)
    left.set(xlabel="epoch", ylabel="training loss", title="training")
    quiet_grid(left)
    for (kind, name), colour, dash in zip(NAMES.items(), CATEGORIES, DASHES, strict=False):
        overlaps = np.sort(np.concatenate([r.values[f"overlap/{kind}"] for r in records]))
        heights = np.arange(len(overlaps) + 1) / len(overlaps)
        right.step([0, *overlaps], heights, where="post", color=colour, ls=dash, label=name, lw=1.2)
    right.set(xlabel="overlap (IOU)", ylabel="share of shapes", title="overlap at most this")
    right.legend(fontsize=6.5, loc="upper left")
    quiet_grid(right)
    return figure


SECTION_6_2_3 = Experiment(
    shows="Section 6.2.3",
    title="A U-Net completes shapes from their boundaries",
    smoke=SMOKE,
    laptop=LAPTOP,
    paper=PAPER,
    departures={"smoke": ("Eight small images, one epoch.",), "laptop": (DEPARTURE,)},
    cell=cell,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw_shapes,
    claims=(
        *claims(
            {
                "overlap: overlap/training = 0.998 ± 0.002, above 0.98": "The network reached a "
                "final IOU of 99.80%. | test set | IOU"
            },
            source="section 6.2.3",
            scales=("paper",),
        ),
        *claims(
            {
                "almost-all: overlap/training > 0.98": "Trained on many shapes it reached almost "
                "100% (an IOU above 98%)."
            },
            source="section 6",
            test="mean over test shapes, t interval over networks",
        ),
    ),
    notes=CHOICES,
)
"""Section 6.2.3: how well a U-Net completes shapes from their boundaries."""


def draw_failures(records: Records) -> Figure:
    """Draw the worst, the middle and the best of the much harder shapes."""
    return gallery(records[0].values, "much harder", ("worst", "median", "best"))


FIGURE_7 = Experiment(
    shows="Figure 7",
    title="Much more complex shapes, on which the U-Net fails",
    same_as="section-6.2.3",
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw_failures,
    claims=claims(
        {
            "example: worst/much harder = 0.51 ± 0.1, below 0.8": "For this example, the IOU is "
            "51%. | example | IOU",
            "fails: overlap/much harder < 0.9": "Presented with shapes that differ too much from "
            "those of the training, the network fails (the mean IOU is below 90%). | | section 6",
            "worse: fall/much harder > 0.05": "Further increasing the complexity causes the "
            "network to fail where it had succeeded (the IOU falls by more than five points). | "
            "paired t interval over networks | section 6.2.3",
        },
        source="figure 7",
        test="mean over much harder shapes, t interval over networks",
    ),
    errata=("C8",),
    notes=(
        *CHOICES,
        "The paper prints one example of a failure; ours is the worst of the much harder shapes, "
        "averaged over networks.",
        "A flood from the border fills every one of these shapes exactly: the task has an optimal "
        "algorithm whatever the complexity.",
    ),
)
"""Figure 7: a complex shape on which the trained U-Net fails."""


def net_cell(side: int, channels: list[int]) -> dict[str, Any]:
    """Build the network, send one image through it, and write down what each block gives."""
    import torch

    from inscape.models import unet

    model = unet(channels=channels)
    blocks: list[dict[str, Any]] = []

    def watch(part: str) -> Any:
        def seen(module: Any, _: Any, out: Any) -> None:
            weights = sum(parameter.numel() for parameter in module.parameters())
            _, depth, _, size = out.shape
            blocks.append({"part": part, "channels": depth, "side": size, "weights": weights})

        return seen

    for part in ("down", "up"):
        for block in getattr(model, part):
            block.register_forward_hook(watch(part))
    model.last.register_forward_hook(watch("last"))
    with torch.no_grad():
        model(torch.zeros(1, 1, side, side))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"blocks": blocks, "parameters": parameters}


def analyse_net(records: Records) -> dict[str, Estimate]:
    """Return at how many sizes the network looks at an image."""
    sizes = len({block["side"] for block in records[0].values["blocks"]})
    number = float(sizes)
    return {"scales": exact_estimate(number, 1, method="counted")}


def conclude_net(records: Records) -> list[str]:
    """Say how large the network is."""
    return [
        f"For images of {record.settings['side']} x {record.settings['side']} the network has "
        f"{record.values['parameters']:,} parameters."
        for record in records
    ]


def draw_net(records: Records) -> Figure:
    """Draw the blocks."""
    from inscape.papers.courtois._diagrams import scales

    return scales(records[0].values["blocks"])


FIGURE_9 = Experiment(
    shows="Figure 9",
    title="The U-Net of the completion of shapes",
    smoke={name: SMOKE[name] for name in ("side", "channels")},
    laptop={name: LAPTOP[name] for name in ("side", "channels")},
    paper={name: PAPER[name] for name in ("side", "channels")},
    departures={"smoke": ("Two channels.",), "laptop": (DEPARTURE,)},
    cell=net_cell,
    analyse=analyse_net,
    conclude=conclude_net,
    draw=draw_net,
    claims=claims(
        {
            "scales: scales = 6 ± 0.0": "The U-Net processes the input at six different scales. | "
            "U-Net | scales"
        },
        source="figure 9",
    ),
    notes=CHOICES[1:],
)
"""Figure 9: the U-Net that completes shapes, at six scales."""


def draw_harder(records: Records) -> Figure:
    """Draw the best, the middle and the worst of the harder shapes."""
    return gallery(records[0].values, "harder", ("best", "median", "worst"))


FIGURE_10 = Experiment(
    shows="Figure 10",
    title="Harder shapes than those of the training, completed by the U-Net",
    same_as="section-6.2.3",
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw_harder,
    claims=claims(
        {
            "solved: overlap/harder > 0.95": "Presented with complex examples that were not in "
            "the training set, the network still manages to fulfil its task (the mean IOU is "
            "above 95%).",
            "between: fall/between > 0": "Such examples are completed better than those of figure "
            "7. | paired t interval over networks",
        },
        source="section 6.2.3",
        test="mean over harder shapes, t interval over networks",
    ),
    notes=CHOICES,
)
"""Figure 10: tricky shapes, unlike those of the training, that the U-Net completes."""
