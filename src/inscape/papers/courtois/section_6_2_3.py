"""Section 6.2.3: how well a U-Net completes shapes from their boundaries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from inscape.lab.experiment import Experiment, Trend, Value
from inscape.lab.store import Record
from inscape.papers.courtois._unet import (
    LAPTOP,
    NAMES,
    PAPER,
    PATIENCE,
    SMOKE,
    analyse,
    cell,
    conclude,
    seconds,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def draw(records: Sequence[Record]) -> "Figure":
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


EXPERIMENT = Experiment(
    shows="Section 6.2.3",
    title="A U-Net completes shapes from their boundaries",
    smoke=SMOKE,
    laptop=LAPTOP,
    paper=PAPER,
    departures={"smoke": ("Eight small images, one epoch.",), "laptop": (DEPARTURE,)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="overlap",
            says="The network reached a final IOU of 99.80%.",
            of="overlap/training",
            published=0.998,
            tolerance=0.002,
            side="above",
            bound=0.98,
            at=("test set", "IOU"),
            source="section 6.2.3",
            scales=("paper",),
        ),
        Trend(
            name="almost-all",
            says="Trained on many shapes it reached almost 100% (an IOU above 98%).",
            of="overlap/training",
            side="above",
            bound=0.98,
            test="mean over test shapes, t interval over networks",
            source="section 6",
        ),
    ),
    notes=CHOICES,
)
