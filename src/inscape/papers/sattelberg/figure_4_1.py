"""Figure 4.1: one unit more than inputs lets a network enclose a region; without it none can."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate

#: Largest dimension in which a network with n + 1 units is built and decided.
DIMENSIONS = range(1, 9)
#: Hidden layers of width n that are tried, in n dimensions.
NARROW = {1: (1,), 2: (2,), 3: (3,)}
LEAKS = (0.0, 0.05)
AXES = grid(networks=100, deep=40)


def cell(networks: int, deep: int) -> dict[str, Any]:
    """Count closed regions of random networks of width n, and of built ones of width n + 1."""
    from inscape.papers.sattelberg._cells import bounded_regions, random_units
    from inscape.regions.closed_regions import from_weights
    from inscape.regions.ideal_shapes import expanded_simplex

    rng = np.random.default_rng(41)
    narrow = {
        str(n): sum(
            len(bounded_regions(random_units(n, n, leak, rng)))
            for leak in LEAKS
            for _ in range(networks // 2)
        )
        for n in NARROW
    }
    built = 0
    for n in DIMENSIONS:
        for leak in LEAKS:
            values = [p.detach().numpy() for p in expanded_simplex(n).network().parameters()]
            weight, bias, out, end = values
            built += from_weights(weight, bias, out[0], float(end[0]), leak).count
    return {"narrow": narrow, "deep": closed_lines(deep), "built": built, "stages": stages()}


def closed_lines(networks: int) -> int:
    """Return how many closed lines the boundaries of deep networks of width 2 have in the plane."""
    import torch

    from inscape.models import mlp
    from inscape.regions import Boundary, boundary

    square = 50.0 * torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()
    found = 0
    for seed in range(networks):
        model = mlp(2, 2, 2, 2, 1, seed=seed, dtype=torch.float64)
        rng = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
        lines = boundary(model.eval(), square, domain=square)
        assert isinstance(lines, Boundary)  # two inputs and ReLU always apply
        found += int(lines.closed.sum())
    return found


def stages() -> dict[str, Any]:
    """Return the points of a line, and where two units and a threshold take them.

    Units are x + 0.15 and 0.15 - x; the output is 0.55 less both, so that it is positive between
    -0.4 and 0.4.
    """
    x = np.linspace(-1, 1, 42)  # none at +-0.4
    units = np.stack([x + 0.15, 0.15 - x], 1)
    kept = np.maximum(units, 0)
    output = 0.55 - kept.sum(1)
    return {"x": x.tolist(), "units": units.tolist(), "kept": kept.tolist(), "out": output.tolist()}


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the counts, and how many of the points of the drawn example are right."""
    values = records[0].values
    found = {f"narrow/{n}": float(count) for n, count in values["narrow"].items()}
    stage = values["stages"]
    right = [(abs(x) <= 0.4) == (out > 0) for x, out in zip(stage["x"], stage["out"], strict=True)]
    found |= {"deep": float(values["deep"]), "built": float(values["built"])}
    found["example"] = sum(right) / len(right)
    return {key: exact_estimate(number) for key, number in found.items()}


def draw(records: Sequence[Record]) -> Figure:
    """Draw the six stages of the example: a line, lifted, bent, cut, and back."""
    from inscape.figures.panels import panels
    from inscape.figures.style import INK

    stage = {key: np.array(values) for key, values in records[0].values["stages"].items()}
    line = np.column_stack([stage["x"], np.zeros(len(stage["x"]))])
    figure, axes = panels(6, columns=3, size=(2.3, 1.9))
    titles = ("the problem", "two units", "after the ReLUs", "cut in the bent plane",
              "cut in the plane of the units", "the decision")  # fmt: skip
    shown = (line, stage["units"], stage["kept"], stage["kept"], stage["units"], line)
    for ax, title, points in zip(axes, titles, shown, strict=True):
        _points(ax, points, stage["x"])
        ax.set(title=title, xticks=[], yticks=[])
    ends = np.array([0.0, 0.55])
    axes[3].plot(ends, ends[::-1], color=INK, lw=1.2)
    bent = np.array([[-2.0, 0.55], [0.0, 0.55], [0.55, 0.0], [0.55, -2.0]])
    axes[4].plot(*bent.T, color=INK, lw=1.2)
    axes[4].set(xlim=(-1, 1.3), ylim=(-1, 1.3))
    for place in (-0.4, 0.4):
        axes[5].plot([place, place], [-0.3, 0.3], color=INK, lw=1.4)
    for ax in (axes[0], axes[5]):
        ax.set_ylim(-1, 1)
    return figure


def _points(ax: Panel, points: Any, x: Any) -> None:
    from inscape.figures.style import BLUE, VERMILION

    for chosen, colour, mark in ((abs(x) <= 0.4, VERMILION, "o"), (abs(x) > 0.4, BLUE, "s")):
        ax.plot(*points[chosen].T, mark, color=colour, ms=3)


EXPERIMENT = Experiment(
    shows="Figure 4.1",
    title="How a layer of width two separates an interval, and that width n closes nothing",
    smoke=grid(networks=2, deep=1),
    settings=AXES,
    departures={"smoke": ("Two random networks of each width, one deep one.",)},
    cell=cell,
    seconds=lambda settings: 0.3 * settings["networks"] + 0.4 * settings["deep"],
    analyse=analyse,
    draw=draw,
    claims=claims(
        {
            "example: example = 1 ± 0": "Two units and a threshold tell an interval from its "
            "surroundings. | the example | share of points that are right | figure 4.1",
            **{
                f"narrow-{n}: narrow/{n} = 0 ± 0": f"A hidden layer of width {n} never separates "
                f"a bounded region in {n} dimension{'s' * (n > 1)} from its surroundings. | {n} "
                f"units, {n} inputs | closed regions of random networks"
                for n in NARROW
            },
            "deep: deep = 0 ± 0": "Neither do three hidden layers of width 2 in the plane. | 3 "
            "layers of 2 units | closed lines of random boundaries | chapter 4, first page: "
            "regardless of the number of hidden layers",
            f"built: built = {len(DIMENSIONS) * len(LEAKS)} ± 0": "A single hidden layer of width "
            "n + 1 is enough, with a leak and without. | n + 1 units, n = 1 to 8 | networks that "
            "close a region",
        },
        source="chapter 4, first page",
    ),
    notes=(
        "Closed regions of random networks are found by listing all cells and joining them by "
        "linear programmes, in one to three dimensions; those of deep ones in the plane as closed "
        "lines of the exact boundary.",
        "Why width n closes nothing: its n hyperplanes meet in one point, around which the output "
        "rises or is level in some direction whatever the signs of its weights, for ReLU and leaky "
        "ReLU; so no local maximum is isolated.",
        "The numbers of the example are ours.",
    ),
)
