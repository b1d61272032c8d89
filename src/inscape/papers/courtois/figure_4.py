"""Figure 4: the half-plane task, and what the network of section 5.2 makes of it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Value
from inscape.lab.store import Record
from inscape.papers.courtois._numbers import chosen, known, means
from inscape.papers.courtois._toys import BASE, CHOICES, alike
from inscape.papers.courtois.figure_1 import seconds, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READINGS = tuple(CHOICES["plane"])
WHOLE: Axes = {
    "choice": list(READINGS),
    "n": [1024],
    "steps": [10_000],
    "side": [61],
    "seed": list(range(8)),
}


def together(cells: Sequence[Settings]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train networks side by side, and measure what figures 4 and 5 show."""
    from inscape.papers.courtois import _plane

    yield from _plane.together(cells)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the accuracy for each reading of the task."""
    found: dict[str, Estimate | None] = {}
    for choice in READINGS:
        end = "" if choice == BASE else f"/{choice}"
        for name in ("accuracy", "test accuracy"):
            found[name + end] = means(chosen(records, choice=choice), name)
    return known(found)


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many points are missed under each reading."""
    said = []
    for choice in READINGS:
        some = chosen(records, choice=choice)
        if some:
            wrong = [round((1 - r.values["accuracy"]) * r.settings["n"]) for r in some]
            said.append(
                f"{choice.capitalize()} ({CHOICES['plane'][choice]}): networks miss {min(wrong)} "
                f"to {max(wrong)} of {some[0].settings['n']} training points."
            )
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the points and the prediction of one network."""
    from inscape.figures.panels import panels
    from inscape.papers.courtois._pictures import scatter, surface

    values = shown(records).values
    figure, axes = panels(2, columns=2, size=(3.2, 2.8))
    scatter(axes[0], np.asarray(values["x"]), np.asarray(values["y"]))
    axes[0].set_title("training points")
    image = surface(axes[1], np.asarray(values["map"]), 1.0)
    axes[1].set_title("prediction and its sign change")
    figure.colorbar(image, ax=axes[1], shrink=0.8)
    return figure


EXPERIMENT = Experiment(
    shows="Figure 4",
    title="A half-plane: the points, and the prediction of the trained network",
    smoke={"choice": [BASE], "n": [64], "steps": [20], "side": [9], "seed": [0, 1]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("64 points, 20 steps, two networks, our reading of the task alone.",)},
    together=together,
    batch=8,
    alike=alike,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="accuracy",
            says="The accuracy obtained by the network after training was 99.80%.",
            of="accuracy",
            published=0.998,
            tolerance=0.002,
            side="above",
            bound=0.99,
            at=("half-plane", "training accuracy"),
            source="section 5.2",
        ),
    ),
    notes=(
        "The text leaves open the direction a, the law of the points, the initial weights and "
        "whether the squared error has a factor 1/2. Ours: a is the diagonal, points uniform on "
        "[-1, 1]², PyTorch's default law, no factor, float32. Other readings are run beside it; "
        "the claims are judged on ours.",
        "The laptop scale is the paper's: all of it takes minutes.",
    ),
)
