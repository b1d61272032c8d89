"""Figure 2.3: sigmoids make a step, two of them a rectangle, forty of them a sine."""

from collections.abc import Sequence
from math import pi
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Trend, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEEPNESS = 200.0
GRID = 2001
AXES: Axes = {"rectangles": [5, 10, 20, 40, 80]}


def cell(rectangles: int) -> dict[str, Any]:
    """Build a network of sigmoids that draws sine by rectangles, and measure how far it is off."""
    import torch

    model = network(rectangles)
    x = torch.linspace(0, 2 * pi, GRID, dtype=torch.float64)
    with torch.no_grad():
        y = model(x[:, None])[:, 0]
    return {
        "units": model[0].out_features,
        "mean_error": float((y - torch.sin(x)).abs().mean()),
        "curve": [round(value, 5) for value in y[::5].tolist()],
    }


def network(rectangles: int) -> Any:
    """Return two sigmoids for each rectangle: one steps up at its left end, one down at its right.

    Each is as high as sine in the middle of the rectangle.
    """
    import torch
    from torch import nn

    from inscape.boolean.line_networks import linear

    ends = torch.linspace(0, 2 * pi, rectangles + 1, dtype=torch.float64)
    heights = torch.sin((ends[1:] + ends[:-1]) / 2)
    places = torch.cat([ends[:-1], ends[1:]])
    steep = torch.full((2 * rectangles, 1), STEEPNESS, dtype=torch.float64)
    out = linear(torch.cat([heights, -heights])[None], torch.zeros(1, dtype=torch.float64))
    return nn.Sequential(linear(steep, -STEEPNESS * places), nn.Sigmoid(), out).eval()


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the units of 20 rectangles, and the power by which the error falls."""
    import numpy as np

    found = {
        f"units/{r.settings['rectangles']}": exact_estimate(float(r.values["units"]))
        for r in records
    }
    if len(records) > 1:
        sizes = np.log([r.settings["rectangles"] for r in records])
        errors = np.log([r.values["mean_error"] for r in records])
        found["power"] = exact_estimate(float(np.polyfit(sizes, errors, 1)[0]))
    return found


def draw(records: Sequence[Record]) -> "Figure":
    """Draw steps, a rectangle and the sine."""
    import numpy as np

    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, VERMILION

    figure, axes = panels(3, size=(2.5, 2.2))
    x = np.linspace(-1, 1, 801)
    for w, shade in ((5.0, 0.3), (15.0, 0.6), (200.0, 1.0)):
        axes[0].plot(x, 1 / (1 + np.exp(-w * x)), color=BLUE, alpha=shade, label=f"w = {w:g}")
    axes[0].set(title="one sigmoid: a step")
    axes[0].legend(loc="upper left")
    up, down = (1 / (1 + np.exp(-200 * (x - end))) for end in (-0.4, 0.4))
    axes[1].plot(x, up, color=FAINT, lw=0.9)
    axes[1].plot(x, -down, color=FAINT, lw=0.9)
    axes[1].plot(x, up - down, color=BLUE)
    axes[1].set(title="two: a rectangle")
    twenty = next((r for r in records if r.settings["rectangles"] == 20), records[-1])
    at = np.linspace(0, 2 * pi, len(twenty.values["curve"]))
    axes[2].plot(at, np.sin(at), color=VERMILION, label="sine")
    axes[2].plot(at, twenty.values["curve"], color=BLUE, lw=1.0)
    axes[2].set(
        title=f"{twenty.values['units']}: sine by {twenty.settings['rectangles']} rectangles"
    )
    return figure


EXPERIMENT = Experiment(
    shows="Figure 2.3",
    title="Universal approximation by sigmoids: step, rectangle, sine",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    analyse=analyse,
    draw=draw,
    claims=(
        Value(
            name="units",
            says="Twenty rectangles take 40 sigmoidal units.",
            of="units/20",
            published=40,
            tolerance=0,
            at=("20 rectangles", "units"),
            source="figure 2.3",
        ),
        Trend(
            name="falls",
            says="With more pairs of sigmoids the error becomes arbitrarily small.",
            of="power",
            side="below",
            bound=-0.5,
            test="slope of the logarithm of the mean error by the logarithm of the rectangles",
            source="section 2.2.2",
        ),
    ),
    notes=("The network is written down, not trained; its sigmoids have the slope 200.",),
)
