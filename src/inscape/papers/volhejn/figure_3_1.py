"""Figure 3.1: a function whose slope varies as little as can be, and yet it goes a longer way."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record

#: The four points of the example.
POINTS = ((-2.0, 1.0), (-1.0, 0.0), (1.0, 0.0), (2.0, 1.0))
PRINTED = {("f", "PL0"): 3, ("f", "PL1"): 2, ("spline", "PL0"): 2, ("spline", "PL1"): 2}
NAMES = {"f": "f of Eq. 3.14", "spline": "linear spline"}


def example(x: Tensor) -> Tensor:
    """Return f of Eq. (3.14): straight outside [-1, 1], a parabola that dips inside."""
    return torch.where(x.abs() >= 1, x.abs() - 1, (x**2 - 1) / 2)


def through(knots: Tensor, heights: Tensor) -> nn.Sequential:
    """Return the ReLU network that is straight between its points; one unit for each but the last.

    Its weights are sums of few binary fractions where the points are, so nothing is rounded.
    """
    bends = torch.diff(torch.diff(heights) / torch.diff(knots), prepend=knots.new_zeros(1))
    first = nn.Linear(1, len(bends), dtype=torch.float64)
    last = nn.Linear(len(bends), 1, dtype=torch.float64)
    with torch.no_grad():
        first.weight.fill_(1.0)
        first.bias.copy_(-knots[:-1])
        last.weight.copy_(bends[None])
        last.bias.copy_(heights[:1])
    return nn.Sequential(first, nn.ReLU(), last).eval()


def cell(function: str, knots: int) -> dict[str, Any]:
    """Measure a network that follows the function, exactly, and the function itself by secants."""
    from inscape._core import NotApplicable
    from inscape.smoothness import slope_variation, total_variation

    ends = torch.tensor([[-2.0], [2.0]], dtype=torch.float64)
    inner = torch.linspace(-1, 1, knots if function == "f" else 2, dtype=torch.float64)
    at = torch.cat([ends[0], inner, ends[1]])
    model = through(at, example(at))
    way, bend = total_variation(model, ends), slope_variation(model, ends)
    assert not isinstance(way, NotApplicable)
    assert not isinstance(bend, NotApplicable)
    found = {
        "PL0": way.summary().value,
        "PL1": bend.summary().value,
        "exact": way.exact and bend.exact,
        "x": way.at.tolist(),
        "y": way.values[:, 0].tolist(),
        "from": bend.at.tolist(),
        "slope": bend.slopes[:, 0].tolist(),
    }
    if function == "f":
        whole = (tool(example, ends).summary() for tool in (total_variation, slope_variation))
        found["by secants"] = [summary.value for summary in whole if summary is not None]
    return found


def analyse(records: Sequence[Record]) -> Mapping[str, Estimate]:
    """Return the two variations of both functions."""
    return {
        f"{record.settings['function']}/{measure}": Estimate(
            value=record.values[measure],
            low=record.values[measure],
            high=record.values[measure],
            se=0.0,
            n=1,
            exact=record.values["exact"],
            method="all knots of the network, in float64",
            interval="exact" if record.values["exact"] else "",
        )
        for record in records
        for measure in ("PL0", "PL1")
    }


def draw(records: Sequence[Record]) -> Figure:
    """Draw both functions through the points, and their slopes."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, GREEN, ORANGE, quiet_grid

    figure, (left, right) = panels(2, columns=2, size=(3.4, 2.7))
    marks = {"f": (BLUE, "-"), "spline": (ORANGE, (0, (5, 2)))}
    for record in records:
        values, name = record.values, record.settings["function"]
        colour, dash = marks[name]
        for ax, measure in ((left, "PL0"), (right, "PL1")):
            label = f"{NAMES[name]}: {values[measure]:g}"
            x, y = _curve(values) if ax is left else _steps(values)
            ax.plot(x, y, color=colour, linestyle=dash, label=label)
    left.plot(*zip(*POINTS, strict=True), "o", ms=5, color=GREEN, zorder=3)
    left.set(title="PL0: variation of the function", xlabel="x", ylabel="f(x)")
    right.set(title="PL1: variation of its slope", xlabel="x", ylabel="f'(x)")
    left.legend(loc="upper center")
    right.legend(loc="upper left")
    for ax in (left, right):
        quiet_grid(ax)
    return figure


def _curve(values: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    return values["x"], values["y"]


def _steps(values: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Return the corners of a staircase: each slope of the network from its knot to the next."""
    at, slopes = values["from"], values["slope"]
    x = [end for left, right in pairwise(at) for end in (left, right)]
    return x, [slope for slope in slopes for _ in range(2)]


EXPERIMENT = Experiment(
    shows="Figure 3.1",
    title="A function that minimises the variation of its slope but not its own, on four points",
    smoke=grid(function=["f", "spline"], knots=5),
    laptop=grid(function=["f", "spline"], knots=257),
    paper=grid(function=["f", "spline"], knots=257),
    departures={"smoke": ("The parabola has 5 knots instead of 257.",)},
    cell=cell,
    seconds=lambda settings: 3.0,
    analyse=analyse,
    draw=draw,
    claims=claims(
        {
            f"{measure}-{function}: {function}/{measure} = {number} ± 1e-09": f"{measure} of the "
            f"{NAMES[function]} is {number}. | {NAMES[function]} | {measure}"
            for (function, measure), number in PRINTED.items()
        },
        source="section 3.3, below Eq. (3.14)",
    ),
    notes=(
        "Both functions are measured as ReLU networks, whose knots are all known. That of f "
        "follows the parabola at 257 knots, 0 among them; between two of them f only falls or only "
        "rises, and so does its slope, so that the network has exactly the variations of f.",
    ),
)
