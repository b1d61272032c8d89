"""Figure 2.4: what width d cannot do at any depth is easy at width d + 1."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Trend
from inscape.lab.statistics import resampled_statistic
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NARROW, WIDE = [2, 2, 2, 2], [3]
WHOLE: Axes = {
    "hidden": [NARROW, WIDE],
    "n": [400],
    "networks": [200],
    "epochs": [1000],
    "seed": [0],
}
GRID = 101


def cell(hidden: Sequence[int], n: int, networks: int, epochs: int, seed: int) -> dict[str, Any]:
    """Train networks on circle versus annulus; keep their accuracies, and the best as a picture."""
    import numpy as np
    import torch

    from inscape.ensembles.fit_tiny import fit_tiny
    from inscape.papers.sattelberg._toy import points

    x, y = points("circle", n, seed)
    found = fit_tiny(
        (2, *hidden, 1),
        x,
        y[:, 0],
        seeds=range(seed, seed + networks),
        activation="relu",
        slope=0.0,
        lr=0.01,
        epochs=epochs,
        threads=1,
        progress=False,
    )
    best = int(found.right.argmax())
    side = torch.linspace(-1.1, 1.1, GRID)
    with torch.no_grad():
        seen = found.module(best)(torch.cartesian_prod(side, side).to(found.weights.dtype))[:, 0]
    return {
        "accuracies": (found.right.double() / n).numpy().round(4).tolist(),
        "positive": (seen.reshape(GRID, GRID).T > 0).numpy().astype(np.uint8),
        "x": x[:200].numpy().astype(np.float32),
        "y": y[:200, 0].numpy().astype(np.uint8),
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the best accuracy of each shape."""
    return {_name(r.settings): resampled_statistic(r.values["accuracies"], max) for r in records}


def _name(settings: Settings) -> str:
    return "narrow" if list(settings["hidden"]) == NARROW else "wide"


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how the networks do."""
    said = []
    for record in records:
        found = record.values["accuracies"]
        shape = "-".join(map(str, [2, *record.settings["hidden"], 1]))
        solved = sum(one == 1 for one in found)
        said.append(
            f"Of {len(found)} networks {shape}, the best classifies {100 * max(found):.1f}% of the "
            f"points and {solved} all of them."
        )
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the best network of each shape over the points."""
    from matplotlib.colors import ListedColormap

    from inscape.figures.panels import panels
    from inscape.figures.style import ORANGE, SKY
    from inscape.papers.sattelberg._toy import scatter

    figure, axes = panels(len(records), size=(2.8, 3.0))
    for ax, record in zip(axes, records, strict=True):
        values, hidden = record.values, record.settings["hidden"]
        ax.imshow(
            values["positive"], cmap=ListedColormap([ORANGE, SKY]), alpha=0.35, vmin=0, vmax=1,
            origin="lower", extent=(-1.1, 1.1, -1.1, 1.1), interpolation="nearest",
        )  # fmt: skip
        scatter(ax, values["x"], values["y"] > 0, 6)
        layers = f"{len(hidden)} layer{'s' * (len(hidden) > 1)}"
        best = 100 * max(values["accuracies"])
        ax.set(title=f"width {hidden[0]}, {layers}: {best:.1f}% at best", xticks=[], yticks=[])
    return figure


EXPERIMENT = Experiment(
    shows="Figure 2.4",
    title="A closed region: impossible at width two, easy at width three",
    smoke=dict(WHOLE) | {"networks": [8], "epochs": [50], "n": [100]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("8 networks, 50 epochs, 100 points.",)},
    cell=cell,
    seconds=lambda settings: 20.0,
    analyse=analyse,
    draw=draw,
    conclude=conclude,
    claims=(
        Trend(
            name="narrow",
            says="Networks of width two, the number of inputs, cannot solve it at any depth.",
            of="narrow",
            side="below",
            bound=0.999,
            test="best accuracy of 200 networks with four layers",
            source="theorem 2.3.2 and figure 2.4",
        ),
        Trend(
            name="wide",
            says="One more unit makes the problem easy.",
            of="wide",
            side="above",
            bound=0.999,
            test="best accuracy of 200 networks with one layer",
            source="section 2.3.1",
        ),
    ),
    notes=(
        "The caption of the figure is lost. We take circle versus annulus in the plane: a region "
        "that is bounded, which no ReLU network as wide as its input can have.",
    ),
)
