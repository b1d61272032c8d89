"""Figure 2.2: the structure of a multilayer perceptron, drawn from one of ours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Experiment
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.figure import Figure

AXES: Axes = {"sizes": [[3, 5, 5, 1]], "seed": [0]}


def cell(sizes: Sequence[int], seed: int) -> dict[str, Any]:
    """Return weights and biases of a network, layer by layer."""
    from torch import nn

    from inscape.models import mlp

    layers = [part for part in mlp(*sizes, seed=seed).modules() if isinstance(part, nn.Linear)]
    return {
        "weights": [layer.weight.detach().double().numpy().round(4).tolist() for layer in layers],
        "biases": [layer.bias.detach().double().numpy().round(4).tolist() for layer in layers],
    }


def draw(records: Sequence[Record]) -> "Figure":
    """Draw nodes and weights: the width of a line is the size of the weight, its hue the sign."""
    from matplotlib.figure import Figure

    from inscape.figures.style import BLUE, FAINT, GREEN, VERMILION

    values, sizes = records[0].values, records[0].settings["sizes"]
    figure = Figure(figsize=(6.2, 3.6), layout="constrained")
    ax = figure.add_subplot()
    places = [[(1.6 * k, (n - 1) / 2 - i) for i in range(n)] for k, n in enumerate(sizes)]
    constants = [(1.6 * k, -max(sizes) / 2 - 0.4) for k in range(len(sizes) - 1)]
    for k, (weights, biases) in enumerate(zip(values["weights"], values["biases"], strict=True)):
        for j, row in enumerate(weights):
            for i, weight in enumerate(row):
                _line(ax, places[k][i], places[k + 1][j], weight, max(map(abs, row)))
            _line(ax, constants[k], places[k + 1][j], biases[j], max(map(abs, row)))
    colours = [GREEN, *[BLUE] * (len(sizes) - 2), VERMILION]
    for nodes, colour in zip(places, colours, strict=True):
        x, y = zip(*nodes, strict=True)
        ax.scatter(x, y, s=260, color=colour, zorder=3, edgecolors="white")
    x, y = zip(*constants, strict=True)
    ax.scatter(x, y, s=200, color=FAINT, zorder=3, edgecolors="white")
    for at in constants:
        ax.text(*at, "1", color="white", ha="center", va="center", zorder=4)
    names = ["inputs", *(f"hidden layer {k}" for k in range(1, len(sizes) - 1)), "output"]
    for k, name in enumerate(names):
        ax.text(1.6 * k, max(sizes) / 2 + 0.25, name, ha="center")
    ax.set_axis_off()
    return figure


def _line(
    ax: "Panel", start: Sequence[float], end: Sequence[float], weight: float, largest: float
) -> None:
    from inscape.figures.style import ORANGE, SKY

    colour = SKY if weight > 0 else ORANGE
    width = 0.3 + 2.2 * abs(weight) / max(largest, abs(weight), 1e-9)
    ax.plot(*zip(start, end, strict=True), color=colour, lw=width, zorder=1, alpha=0.85)


EXPERIMENT = Experiment(
    shows="Figure 2.2",
    title="The structure of a multilayer perceptron",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    draw=draw,
    notes=(
        "The weights are those of a network of ours, as PyTorch draws them: blue lines are "
        "positive, orange ones negative, thick ones large. Grey nodes are the constant 1 of the "
        "biases.",
    ),
)
