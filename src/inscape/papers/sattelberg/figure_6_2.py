"""Figure 6.2: examples of MNIST and CIFAR-10, one row for each class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Experiment
from inscape.lab.store import Record
from inscape.papers.sattelberg._images import hash_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cell(data: str, examples: int) -> dict[str, Any]:
    """Return the first training images of each class."""
    import torch

    from inscape.papers.sattelberg._images import raw

    given = raw(data)
    rows = [
        torch.nonzero(given.y == k)[:examples, 0].tolist() for k in range(len(given.class_names))
    ]
    shown = torch.stack([given.x[row] for row in rows])
    return {"images": shown.numpy(), "classes": list(given.class_names), "indices": rows}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the images of each set as one mosaic."""
    import numpy as np

    from inscape.figures.panels import panels

    figure, axes = panels(len(records), columns=2, size=(3.4, 3.4))
    for ax, record in zip(axes, records, strict=True):
        images = np.asarray(record.values["images"])
        classes, count, channels, height, width = images.shape
        whole = images.transpose(0, 3, 1, 4, 2).reshape(classes * height, count * width, channels)
        ax.imshow(whole[..., 0] if channels == 1 else whole, cmap="gray", vmin=0, vmax=1)
        places = [height * (k + 0.5) for k in range(classes)]
        ax.set_yticks(places, record.values["classes"], fontsize=7)
        ax.set_xticks([])
        ax.tick_params(length=0)
        ax.set_title(f"{record.settings['data'].partition(':')[0]}, {height} x {width}")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 6.2",
    title="Example images of MNIST and CIFAR-10",
    smoke={"data": ["digits:n=400"], "examples": [6]},
    laptop={"data": ["mnist:n=1000", "cifar10:n=1000"], "examples": [10]},
    paper={"data": ["mnist:n=1000", "cifar10:n=1000"], "examples": [10]},
    departures={"smoke": ("scikit-learn's digits instead of MNIST and CIFAR-10.",)},
    cell=cell,
    data=hash_of,
    seconds=lambda settings: 3.0,
    draw=draw,
    notes=(
        "Which images the figure shows is not said: these are the first of each class. The fourth "
        "zero is the image of figure 6.3.",
    ),
)
