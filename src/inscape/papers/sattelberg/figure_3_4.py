"""Figure 3.4: the four classes of two inputs as problems for a network with two hidden units."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Experiment
from inscape.lab.statistics import proportion_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = (0, 1, 3, 6)
NAMES = ("constant", "AND", "x1", "XOR")
WHOLE: Axes = {"number": list(NUMBERS), "runs": [1000], "seed": [0]}
#: Points on each side of the grid on which a network is drawn, from -EDGE to EDGE.
GRID, EDGE = 81, 1.6


def cell(number: int, runs: int, seed: int) -> dict[str, Any]:
    """Train networks 2-2-1 with ReLU on a class; keep how many succeed, and one that does."""
    import numpy as np
    import torch

    from inscape.boolean.truth_table import TruthTable
    from inscape.ensembles.fit_tiny import fit_tiny

    table = TruthTable(2, number)
    found = fit_tiny(
        (2, 2, 1),
        torch.from_numpy(table.points),
        torch.from_numpy(table.bits.astype(float)),
        seeds=range(seed, seed + runs),
        activation="relu",
        slope=0.0,
        threads=1,
        progress=False,
    )
    side = torch.linspace(-EDGE, EDGE, GRID)
    first = int(found.stopped.int().argmax())
    with torch.no_grad():
        seen = found.module(first)(torch.cartesian_prod(side, side))[:, 0]
    return {
        "successes": int(found.stopped.sum()),
        "epochs": float(found.epochs[found.stopped].double().median()),
        "positive": (seen.reshape(GRID, GRID).T > 0).numpy().astype(np.uint8),
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how often the smallest network for all four learns each."""
    said = []
    for record in records:
        good, runs = record.values["successes"], record.settings["runs"]
        part = proportion_estimate(good, runs)
        said.append(
            f"{NAMES[NUMBERS.index(record.settings['number'])]}: {100 * part.value:.1f}% of {runs} "
            f"networks 2-2-1 with ReLU learn it ({100 * part.low:.1f}% to {100 * part.high:.1f}%)."
        )
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw each problem over the two sides of a network that solves it."""
    from matplotlib.colors import ListedColormap

    from inscape.boolean.truth_table import TruthTable
    from inscape.figures.boolean_networks import FALSE, TRUE
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE, SKY

    figure, axes = panels(len(records), columns=4, size=(1.95, 2.35))
    for ax, record in zip(axes, records, strict=True):
        table = TruthTable(2, record.settings["number"])
        ax.imshow(
            record.values["positive"], cmap=ListedColormap([ORANGE, SKY]), alpha=0.35, vmin=0,
            vmax=1, origin="lower", extent=(-EDGE, EDGE, -EDGE, EDGE), interpolation="nearest",
        )  # fmt: skip
        colours = [TRUE if bit else FALSE for bit in table.bits]
        x, y = table.points.T
        ax.scatter(x, y, s=110, c=colours, edgecolors=BLUE, linewidths=1.5)
        rate = 100 * record.values["successes"] / record.settings["runs"]
        ax.set_title(f"{NAMES[NUMBERS.index(table.number)]}\n{rate:.0f}% learn it")
        ax.set(xticks=(-1, 1), yticks=(-1, 1), xlabel="x1")
    axes[0].set_ylabel("x2")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3.4",
    title="The four classes of two inputs, and how often two hidden ReLU units learn them",
    smoke=dict(WHOLE) | {"runs": [20]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("20 networks.",)},
    cell=cell,
    seconds=lambda settings: 2.0,
    draw=draw,
    conclude=conclude,
    notes=(
        "The figure of the text shows the problems alone; beneath them is the first of our "
        "networks that solves each, the smallest that can solve all four.",
        "Adam with learning rate 0.025 for up to 4000 epochs, binary cross entropy and He's normal "
        "law, as in section 3.4; biases start at zero.",
    ),
)
