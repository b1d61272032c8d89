"""Chapter 2: where activation functions come from, and what width and depth can do."""

from collections.abc import Sequence
from math import pi
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate, resampled_statistic

FIRING = grid(most=60.0, currents=61, milliseconds=550.0)


def firing_cell(most: float, currents: int, milliseconds: float) -> dict[str, Any]:
    """Return how often the neuron of Hodgkin and Huxley fires at constant currents."""
    import numpy as np

    from inscape.papers.sattelberg._neuron import firing_rates

    given = np.linspace(0, most, currents)
    rates = firing_rates(given, milliseconds=milliseconds)
    return {"currents": given.tolist(), "rates": rates.round(3).tolist()}


def analyse_firing(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return where firing begins, and how steadily its rate rises from there."""
    from inscape.lab.statistics import kendall_tau

    values = records[0].values
    firing = [(i, r) for i, r in zip(values["currents"], values["rates"], strict=True) if r > 20]
    if not firing:
        return {}
    currents, rates = zip(*firing, strict=True)
    found = {"threshold": exact_estimate(currents[0])}
    if len(set(rates)) > 1:
        found["rises"] = exact_estimate(kendall_tau(currents, rates))
    return found


def draw_firing(records: Sequence[Record]) -> Figure:
    """Draw step and sigmoid above, firing rate and ReLU below."""
    import numpy as np

    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, VERMILION

    values = records[0].values
    x = np.linspace(-6, 6, 401)
    figure, axes = panels(4, columns=2, size=(2.9, 2.0))
    axes[0].step(x, x > 0, color=BLUE)
    axes[0].set(title="fires or does not", xlabel="input", ylabel="output")
    for w, shade in ((0.7, 0.35), (1.5, 0.6), (5.0, 1.0)):
        axes[1].plot(x, 1 / (1 + np.exp(-w * x)), color=BLUE, alpha=shade, label=f"w = {w:g}")
    axes[1].set(title="sigmoid", xlabel="input")
    axes[1].legend()
    axes[2].plot(values["currents"], values["rates"], color=VERMILION)
    axes[2].set(
        title="Hodgkin and Huxley's neuron", xlabel="current in µA/cm²", ylabel="spikes per s"
    )
    axes[3].plot(x, np.maximum(x, 0), color=VERMILION)
    axes[3].axvline(0, color=FAINT, lw=0.6)
    axes[3].set(title="ReLU", xlabel="input")
    return figure


FIGURE_2_1 = Experiment(
    shows="Figure 2.1",
    title="Where sigmoid and ReLU come from",
    smoke=grid(FIRING, currents=16, milliseconds=120.0),
    settings=FIRING,
    departures={"smoke": ("16 currents, 0.12 s of simulated time.",)},
    cell=firing_cell,
    seconds=lambda settings: settings["milliseconds"] * 0.01,
    analyse=analyse_firing,
    draw=draw_firing,
    claims=claims(
        {
            "threshold: threshold > 0": "A neuron only begins to fire after sufficient input.",
            "rises: rises > 0.9": "The firing rate continues to increase with more input. | "
            "Kendall's tau of rate and current above the threshold",
        },
        source="section 2.2.1",
        test="exact simulation",
    ),
    notes=(
        "The firing rate is simulated with the constants of the squid axon; the first 0.05 s do "
        "not count, and rates below 20 per second, which a single spike may give, are no firing.",
    ),
)
"""Figure 2.1: what sigmoid and ReLU grew out of: a neuron that fires or not, and how often."""


GRAPH = grid(sizes=[[3, 5, 5, 1]], seed=0)


def graph_cell(sizes: Sequence[int], seed: int) -> dict[str, Any]:
    """Return weights and biases of a network, layer by layer."""
    from torch import nn

    from inscape.models import mlp

    layers = [part for part in mlp(*sizes, seed=seed).modules() if isinstance(part, nn.Linear)]
    return {
        "weights": [layer.weight.detach().double().numpy().round(4).tolist() for layer in layers],
        "biases": [layer.bias.detach().double().numpy().round(4).tolist() for layer in layers],
    }


def draw_graph(records: Sequence[Record]) -> Figure:
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
    ax: Panel, start: Sequence[float], end: Sequence[float], weight: float, largest: float
) -> None:
    from inscape.figures.style import ORANGE, SKY

    colour = SKY if weight > 0 else ORANGE
    width = 0.3 + 2.2 * abs(weight) / max(largest, abs(weight), 1e-9)
    ax.plot(*zip(start, end, strict=True), color=colour, lw=width, zorder=1, alpha=0.85)


FIGURE_2_2 = Experiment(
    shows="Figure 2.2",
    title="The structure of a multilayer perceptron",
    settings=GRAPH,
    cell=graph_cell,
    draw=draw_graph,
    notes=(
        "The weights are those of a network of ours, as PyTorch draws them: blue lines are "
        "positive, orange ones negative, thick ones large. Grey nodes are the constant 1 of the "
        "biases.",
    ),
)
"""Figure 2.2: the structure of a multilayer perceptron, drawn from one of ours."""


STEEPNESS = 200.0
SIGMOIDS_GRID = 2001
SIGMOIDS = grid(rectangles=[5, 10, 20, 40, 80])


def sigmoids_cell(rectangles: int) -> dict[str, Any]:
    """Build a network of sigmoids that draws sine by rectangles, and measure how far it is off."""
    import torch

    model = network(rectangles)
    x = torch.linspace(0, 2 * pi, SIGMOIDS_GRID, dtype=torch.float64)
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


def analyse_sigmoids(records: Sequence[Record]) -> dict[str, Estimate]:
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


def draw_sigmoids(records: Sequence[Record]) -> Figure:
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


FIGURE_2_3 = Experiment(
    shows="Figure 2.3",
    title="Universal approximation by sigmoids: step, rectangle, sine",
    settings=SIGMOIDS,
    cell=sigmoids_cell,
    analyse=analyse_sigmoids,
    draw=draw_sigmoids,
    claims=claims(
        {
            "units: units/20 = 40 ± 0": "Twenty rectangles take 40 sigmoidal units. | 20 "
            "rectangles | units",
            "falls: power < -0.5": "With more pairs of sigmoids the error becomes arbitrarily "
            "small. | | section 2.2.2",
        },
        source="figure 2.3",
        test="slope of the logarithm of the mean error by the logarithm of the rectangles",
    ),
    notes=("The network is written down, not trained; its sigmoids have the slope 200.",),
)
"""Figure 2.3: sigmoids make a step, two of them a rectangle, forty of them a sine."""


NARROW, WIDE = [2, 2, 2, 2], [3]
CLOSING = grid(hidden=[NARROW, WIDE], n=400, networks=200, epochs=1000, seed=0)
CLOSING_GRID = 101


def closing_cell(
    hidden: Sequence[int], n: int, networks: int, epochs: int, seed: int
) -> dict[str, Any]:
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
    side = torch.linspace(-1.1, 1.1, CLOSING_GRID)
    with torch.no_grad():
        seen = found.module(best)(torch.cartesian_prod(side, side).to(found.weights.dtype))[:, 0]
    return {
        "accuracies": (found.right.double() / n).numpy().round(4).tolist(),
        "positive": (seen.reshape(CLOSING_GRID, CLOSING_GRID).T > 0).numpy().astype(np.uint8),
        "x": x[:200].numpy().astype(np.float32),
        "y": y[:200, 0].numpy().astype(np.uint8),
    }


def analyse_closing(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the best accuracy of each shape."""
    return {_name(r.settings): resampled_statistic(r.values["accuracies"], max) for r in records}


def _name(settings: Settings) -> str:
    return "narrow" if list(settings["hidden"]) == NARROW else "wide"


def conclude_closing(records: Sequence[Record]) -> list[str]:
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


def draw_closing(records: Sequence[Record]) -> Figure:
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


FIGURE_2_4 = Experiment(
    shows="Figure 2.4",
    title="A closed region: impossible at width two, easy at width three",
    smoke=grid(CLOSING, networks=8, epochs=50, n=100),
    settings=CLOSING,
    departures={"smoke": ("8 networks, 50 epochs, 100 points.",)},
    cell=closing_cell,
    seconds=lambda settings: 20.0,
    analyse=analyse_closing,
    draw=draw_closing,
    conclude=conclude_closing,
    claims=claims(
        {
            "narrow: narrow < 0.999": "Networks of width two, the number of inputs, cannot solve "
            "it at any depth.",
            "wide: wide > 0.999": "One more unit makes the problem easy. | best accuracy of 200 "
            "networks with one layer | section 2.3.1",
        },
        source="theorem 2.3.2 and figure 2.4",
        test="best accuracy of 200 networks with four layers",
    ),
    notes=(
        "The caption of the figure is lost. We take circle versus annulus in the plane: a region "
        "that is bounded, which no ReLU network as wide as its input can have.",
    ),
)
"""Figure 2.4: what width d cannot do at any depth is easy at width d + 1."""
