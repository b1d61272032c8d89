"""The completion of shapes by a U-Net: its training, its tests and what figures 7, 9, 10 share."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Axes, Estimate, Settings
from inscape.lab.statistics import mean_estimate, paired_difference
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure
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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the mean overlap of each grade, how it falls, and the worst that there is."""
    found = {}
    means = {kind: _means(records, kind) for kind in ("training", "harder", "much harder")}
    for kind, values in means.items():
        found[f"overlap/{kind}"] = mean_estimate(values)
        worst = [float(np.min(record.values[f"overlap/{kind}"])) for record in records]
        found[f"worst/{kind}"] = mean_estimate(worst)
    found["fall/harder"] = paired_difference(means["training"], means["harder"])
    found["fall/much harder"] = paired_difference(means["training"], means["much harder"])
    found["fall/between"] = paired_difference(means["harder"], means["much harder"])
    return found


def _means(records: Sequence[Record], kind: str) -> list[float]:
    return [float(np.mean(record.values[f"overlap/{kind}"])) for record in records]


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many shapes of each grade are completed nearly perfectly."""
    said = []
    for kind, name in NAMES.items():
        overlaps = np.concatenate([record.values[f"overlap/{kind}"] for record in records])
        said.append(
            f"{name}: mean overlap {overlaps.mean():.2%}, worst {overlaps.min():.1%}; "
            f"{np.mean(overlaps >= 0.98):.0%} of {len(overlaps)} are completed to 98% or more."
        )
    return said


#: How the grades are called in figures.
NAMES = {
    "training": "Shapes like those of the training",
    "harder": "Harder shapes",
    "much harder": "Much harder shapes",
}


def gallery(values: Mapping[str, Any], kind: str, kept: Sequence[str]) -> "Figure":
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


LAPTOP: Axes = {
    "side": [64],
    "n": [1024],
    "tested": [200],
    "channels": [[8, 8, 16, 16, 32, 32]],
    "epochs": [30],
    "batch": [32],
    "lr": [0.01],
    "seed": range(3),
}
PAPER: Axes = {
    "side": [128],
    "n": [10_000],
    "tested": [1000],
    "channels": [[16, 32, 64, 128, 256, 512]],
    "epochs": [150],
    "batch": [32],
    "lr": [0.01],
    "seed": range(3),
}
SMOKE: Axes = {
    **LAPTOP,
    "side": [32],
    "n": [8],
    "tested": [2],
    "channels": [[2, 2, 2, 2, 2, 2]],
    "epochs": [1],
    "batch": [4],
    "seed": [0],
}
