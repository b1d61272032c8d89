"""The cell and the drawing that figures 6.8 and 6.9 share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Settings
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def draw(records: Sequence[Record]) -> "Figure":
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
