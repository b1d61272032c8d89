"""Figure 5.2: a network of two ReLU units that solves XOR (with another bias than printed)."""

from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.figure import Figure

TABLE = {(-1, -1): -1, (-1, 1): 1, (1, -1): 1, (1, 1): -1}
#: Biases of the hidden units: as printed in (5.11), and as erratum S9 has them.
BIASES = {"printed": (1.0, 0.0), "corrected": (2.0, 0.0)}
#: Pieces by erratum S9: slope along x1 + x2, and constant.
PIECES = {"11": (-1, 1), "10": (1, 1), "01": (-2, -1), "00": (0, -1)}
AXES: Axes = {"bias": ["printed", "corrected"]}


def cell(bias: str) -> dict[str, Any]:
    """Return the values at the four points, all pieces, and which of them exist."""
    import torch

    from inscape.piecewise.graph.network import piecewise

    model = network(BIASES[bias])
    x = torch.tensor(list(TABLE), dtype=torch.float64)
    pieces = piecewise(model, x)
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    maps = {}
    for name in PIECES:
        pattern = [torch.tensor([[int(bit) for bit in name]] * 3, dtype=torch.uint8)]
        values = pieces.values(corners, pattern)[:, 0]
        maps[name] = [float(values[1] - values[0]), float(values[2] - values[0]), float(values[0])]
    return {
        "values": pieces.values(x)[:, 0].tolist(),
        "maps": maps,
        "exists": {name: width(name, BIASES[bias]) > 0 for name in PIECES},
        "bound": sum(comb(3, i) for i in range(3)),
    }


def network(bias: Sequence[float]) -> Any:
    """Return the network of (5.10) and (5.11) with these biases."""
    import torch
    from torch import nn

    from inscape.boolean.line_networks import linear

    first = linear(torch.ones(2, 2).double(), torch.tensor(bias).double())
    last = linear(torch.tensor([[1.0, -2.0]]).double(), torch.tensor([-1.0]).double())
    return nn.Sequential(first, nn.ReLU(), last).eval()


def width(pattern: str, bias: Sequence[float]) -> float:
    """Return how wide the band of a pattern is along x1 + x2: 0 where there is none.

    A unit is on where x1 + x2 lies above minus its bias.
    """
    on = [-b for bit, b in zip(pattern, bias, strict=True) if bit == "1"]
    off = [-b for bit, b in zip(pattern, bias, strict=True) if bit == "0"]
    return max(0.0, min(off, default=float("inf")) - max(on, default=-float("inf")))


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return values and pieces of the corrected network."""
    values = next(r.values for r in records if r.settings["bias"] == "corrected")
    found = {f"at {x}": y for x, y in zip(TABLE, values["values"], strict=True)}
    for name, (first, second, constant) in values["maps"].items():
        found |= {f"{name}/x1": first, f"{name}/x2": second, f"{name}/constant": constant}
    found["regions"] = float(sum(values["exists"].values()))
    found["regions of 01"] = float(values["exists"]["01"])
    found["most of three lines"] = float(values["bound"])
    return {name: exact_estimate(value) for name, value in found.items()}


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what the printed bias gives."""
    values = next(r.values for r in records if r.settings["bias"] == "printed")
    shown = ", ".join(f"{y:g}" for y in values["values"])
    return [f"With the printed bias (1, 0) the network gives {shown} at the four points."]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the problem and the network."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    figure, (left, right) = panels(2, columns=2, size=(2.8, 2.6))
    for (x1, x2), y in TABLE.items():
        colour = BLUE if y > 0 else VERMILION
        left.plot(x1, x2, "o", ms=11, color=colour)
        left.text(x1, x2 - 0.35, f"{y:+d}", ha="center", va="center", fontsize=8)
    left.set(title="(a) the problem", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), xlabel="x1", ylabel="x2")
    quiet_grid(left)
    _graph(right, BIASES["corrected"])
    right.set_title("(b) the network")
    return figure


def _graph(ax: "Panel", bias: Sequence[float]) -> None:
    from inscape.figures.style import INK, RULE, VERMILION

    inputs, hidden, output = ((0.0, 1.0), (0.0, -1.0)), ((1.0, 1.0), (1.0, -1.0)), (2.0, 0.0)
    edges = [(a, b, "1") for a in inputs for b in hidden]
    edges += [(hidden[0], output, "1"), (hidden[1], output, "-2")]
    line = {"arrowstyle": "-", "color": RULE, "shrinkA": 10, "shrinkB": 10}
    for start, end, word in edges:
        ax.annotate("", xy=end, xytext=start, arrowprops=line)
        x, y = (0.7 * a + 0.3 * b for a, b in zip(start, end, strict=True))
        ax.text(x, y + 0.13, word, fontsize=7, ha="center")
    names = {inputs[0]: "x1", inputs[1]: "x2", output: "-1"}
    names |= {unit: f"{b:g}" for unit, b in zip(hidden, bias, strict=True)}
    for place, name in names.items():
        edge = VERMILION if place in hidden else INK
        ax.plot(*place, "o", ms=20, mfc="none", mec=edge)
        ax.text(*place, name, ha="center", va="center", fontsize=8)
    ax.set(xlim=(-0.4, 2.4), ylim=(-1.7, 1.7))
    ax.axis("off")


def _claim(name: str, says: str, of: str, published: float, at: tuple[str, str]) -> Value:
    return Value(
        name=name,
        says=says,
        of=of,
        published=published,
        tolerance=0,
        at=at,
        source="section 5.2 with erratum S9",
    )


EXPERIMENT = Experiment(
    shows="Figure 5.2",
    title="A network with two hidden units for XOR, and its pieces",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 2.0,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        *(
            _claim(
                f"at{x1:+d}{x2:+d}",
                f"At ({x1}, {x2}) the network gives {y}.",
                f"at ({x1}, {x2})",
                y,
                (f"x = ({x1}, {x2})", "output"),
            )
            for (x1, x2), y in TABLE.items()
        ),
        *(
            _claim(
                f"piece-{name}-{column}",
                f"The affine map of pattern {name} has {number} at {column}.",
                f"{name}/{column}",
                number,
                (f"pattern {name}", column),
            )
            for name, (slope, constant) in PIECES.items()
            for column, number in (("x1", slope), ("x2", slope), ("constant", constant))
        ),
        _claim("regions", "The plane has three regions.", "regions", 3, ("network", "regions")),
        _claim(
            "empty",
            "The region of pattern 01 is empty.",
            "regions of 01",
            0,
            ("pattern 01", "regions"),
        ),
        _claim(
            "bound",
            "Three lines make at most 7 regions of the plane.",
            "most of three lines",
            7,
            ("three lines", "regions at most"),
        ),
    ),
    errata=("S9",),
)
