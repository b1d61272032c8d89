"""Figure 1.1: a two-layer ReLU network with three inputs and five hidden units, as a graph."""

from collections.abc import Sequence
from typing import Any

from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record

AXES = grid(d=3, hidden=5, seed=0)
Point = tuple[float, float]


def cell(d: int, hidden: int, seed: int) -> dict[str, Any]:
    """Return the weights of a fresh network, and how far Eq. (1.7) is from what it computes."""
    import torch

    from inscape._core.sampling import generator
    from inscape.models import two_layer

    model = two_layer(d, hidden, init="glorot", seed=seed, dtype=torch.float64)
    w, b, a, a0 = (parameter.detach() for parameter in model.parameters())
    x = torch.randn(100, d, generator=generator(seed), dtype=torch.float64)
    by_hand = sum(a[0, i] * (x @ w[i] + b[i]).clamp(min=0) for i in range(hidden)) + a0
    with torch.no_grad():
        off = float((model(x)[:, 0] - by_hand).abs().max())
    return {"first": w.tolist(), "last": a[0].tolist(), "off": off}


def draw(records: Sequence[Record]) -> Figure:
    """Draw the graph; lines are as wide as weights are large, and dashed where negative."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, INK, RULE, VERMILION

    values = records[0].values
    first, last = values["first"], values["last"]
    inputs, units = _column(0.0, len(first[0])), _column(1.0, len(last))
    output = (2.0, 0.0)
    edges = [(inputs[j], units[i], w) for i, row in enumerate(first) for j, w in enumerate(row)]
    edges += [(units[i], output, w) for i, w in enumerate(last)]
    top = max(abs(w) for _, _, w in edges)
    figure, (ax,) = panels(1, size=(4.6, 3.4))
    for start, end, w in edges:
        colour, dash = (BLUE, "-") if w >= 0 else (VERMILION, (0, (4, 1.5)))
        line = {"arrowstyle": "-", "color": colour, "linestyle": dash, "shrinkA": 13, "shrinkB": 13}
        line["linewidth"] = 0.4 + 2.6 * abs(w) / top
        ax.annotate("", xy=end, xytext=start, arrowprops=line)
    for letter, nodes in (("x", inputs), ("a", units), ("y", [output])):
        for k, node in enumerate(nodes):
            name = f"${letter}$" if letter == "y" else f"${letter}_{k + 1}$"
            ax.plot(*node, "o", ms=26, mfc="none", mec=RULE)
            ax.text(*node, name, ha="center", va="center", color=INK, fontsize=11)
    for x, words in ((0.0, "inputs"), (1.0, "ReLU units"), (2.0, "output")):
        ax.text(x, -2.75, words, ha="center", va="center")
    ax.plot([], [], color=BLUE, label="positive weight")
    ax.plot([], [], color=VERMILION, linestyle=(0, (4, 1.5)), label="negative weight")
    ax.legend(loc="upper right", fontsize=7.5)
    ax.set(xlim=(-0.3, 2.3), ylim=(-3.0, 2.6))
    ax.set_axis_off()
    return figure


def _column(x: float, count: int) -> list[Point]:
    """Return ``count`` nodes one below the other, around the middle."""
    return [(x, (count - 1) / 2 - k) for k in range(count)]


EXPERIMENT = Experiment(
    shows="Figure 1.1",
    title="Diagram of a two-layer ReLU network, its lines as wide as the weights",
    settings=AXES,
    cell=cell,
    draw=draw,
    errata=("V6",),
    notes=("The weights are those of a network of our own as it is before training.",),
)
