"""Figures 6.8 and 6.9: the three images that are closest together."""

from collections.abc import Sequence
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate
from inscape.papers.sattelberg._images import hash_of


def triple(data: str, only: int | None) -> dict[str, Any]:
    """Find the three training images nearest to each other, among one class or all."""
    import torch

    from inscape.papers.sattelberg._closest import closest_triple, plane
    from inscape.papers.sattelberg._images import raw

    given = raw(data)
    rows = torch.arange(len(given.y)) if only is None else torch.nonzero(given.y == only)[:, 0]
    flat = given.x[rows].flatten(1)
    chosen, size = closest_triple(flat)
    places, _ = plane(*flat[chosen].double())
    indices = rows[chosen]
    return {
        "indices": indices.tolist(),
        "classes": [given.class_names[int(k)] for k in given.y[indices]],
        "perimeter": size,
        "places": places.tolist(),
        "searched": len(rows),
        "images": given.x[indices].numpy(),
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Name the three images."""
    values = records[0].values
    named = zip(values["indices"], values["classes"], strict=True)
    shown = ", ".join(f"{index} ({word})" for index, word in named)
    return [
        f"Among {values['searched']:,} training images the closest three are {shown}, with a sum "
        f"of distances of {values['perimeter']:.3g}."
    ]


def draw(records: Sequence[Record]) -> Figure:
    """Draw the three images, and where they lie in their plane."""
    import numpy as np

    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE

    values = records[0].values
    figure, axes = panels(4, columns=4, size=(1.7, 1.9))
    for letter, ax, image, word in zip(
        "ABC", axes, values["images"], values["classes"], strict=False
    ):
        shown = np.moveaxis(np.asarray(image), 0, -1)
        ax.imshow(shown[..., 0] if shown.shape[-1] == 1 else shown, cmap="gray", vmin=0, vmax=1)
        ax.set(title=f"{letter}: {word}", xticks=[], yticks=[])
    last = axes[-1]
    for letter, (x, y) in zip("ABC", values["places"], strict=True):
        last.plot(x, y, "o", color=BLUE)
        last.annotate(letter, (x, y), xytext=(4, 4), textcoords="offset points")
    last.set_aspect("equal", adjustable="datalim")
    last.set_title("their plane")
    last.margins(0.25)
    return figure


def seconds(settings: Settings) -> float:
    """Guess the time: two tables of distances."""
    name, _, count = settings["data"].partition(":n=")
    images = int(count) / (1 if settings["only"] is None else 10)
    numbers = {"cifar10": 3072, "mnist": 784}.get(name, 64)
    return float(3 + 4 * images**2 * numbers / 5e10)


def analyse_photographs(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how many of the three are airplanes, and how many deer."""
    classes = records[0].values["classes"]
    return {
        word: exact_estimate(n, 3, method="exact search")
        for word in ("airplane", "deer")
        for n in (float(classes.count(word)),)
    }


FIGURE_6_8 = Experiment(
    shows="Figure 6.8",
    title="Three images of CIFAR-10 that span a cross-section",
    smoke=grid(data="digits:n=60", only=None),
    laptop=grid(data="cifar10:n=20000", only=None),
    paper=grid(data="cifar10:n=50000", only=None),
    departures={
        "smoke": ("60 of scikit-learn's digits.",),
        "laptop": ("The first 20,000 of the 50,000 training images.",),
    },
    cell=triple,
    data=hash_of,
    seconds=seconds,
    analyse=analyse_photographs,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            f"{word}: {word} = {count} ± 0": f"{says} among the three closest images. | "
            f"closest three images | {word}"
            for word, says, count in (
                ("airplane", "Two airplanes are", 2),
                ("deer", "One deer is", 1),
            )
        },
        source="figure 6.8",
        scales=("paper",),
    ),
    notes=(
        "Closest is read as the smallest sum of the three Euclidean distances of raw pixels.",
        "Images of all classes are searched, since the figure shows two classes.",
    ),
)
"""Figure 6.8: the three photographs of CIFAR-10 that are closest together."""


FIGURE_6_9 = Experiment(
    shows="Figure 6.9",
    title="Three zeros of MNIST that span a cross-section",
    smoke=grid(data="digits:n=200", only=0),
    settings=grid(data="mnist:n=60000", only=0),
    departures={"smoke": ("200 of scikit-learn's digits.",)},
    cell=triple,
    data=hash_of,
    seconds=seconds,
    conclude=conclude,
    draw=draw,
    notes=(
        FIGURE_6_8.notes[0],
        "Only zeros are searched, since the figure shows zeros; some ones are closer together.",
    ),
)
"""Figure 6.9: the three zeros of MNIST that are closest together."""
