"""Figure 1: ball against sphere, and what the network of section 5.1 makes of it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Value
from inscape.lab.store import Record
from inscape.papers.courtois._numbers import chosen, known, means
from inscape.papers.courtois._toys import BASE, CHOICES, alike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READINGS = tuple(CHOICES["ball"])
WHOLE: Axes = {
    "choice": list(READINGS),
    "n": [1024],
    "steps": [10_000],
    "side": [61],
    "seed": list(range(8)),
}


def together(cells: Sequence[Settings]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train networks side by side, and measure what figures 1 to 3 show."""
    from inscape.papers.courtois import _ball

    yield from _ball.together(cells)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return accuracy and radius of the boundary for each reading of the task."""
    found: dict[str, Estimate | None] = {}
    for choice in READINGS:
        some = chosen(records, choice=choice)
        end = "" if choice == BASE else f"/{choice}"
        for name in ("accuracy", "test accuracy", "radius"):
            found[name + end] = means(some, name)
    return known(found)


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what each reading of the task gives."""
    said = []
    for choice in READINGS:
        some = chosen(records, choice=choice)
        if not some:
            continue
        perfect = sum(record.values["accuracy"] == 1.0 for record in some)
        closed = [r.values for r in some if r.values["radius"] is not None]
        text = f"{choice.capitalize()} ({CHOICES['ball'][choice]}): {perfect} of {len(some)} "
        text += "networks make no error"
        if closed:
            low = min(v["radii"][0] for v in closed)
            high = max(v["radii"][1] for v in closed)
            mean = sum(v["radius"] for v in closed) / len(closed)
            text += f"; boundaries lie at radii {low:.2f} to {high:.2f}, {mean:.3f} on average"
        said.append(text + ".")
    return said


def shown(records: Sequence[Record]) -> Record:
    """Return the record that holds pictures."""
    return next((record for record in records if "map" in record.values), records[0])


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the points and the prediction of one network."""
    from inscape.figures.panels import panels
    from inscape.papers.courtois._pictures import ring, scatter, surface

    values = shown(records).values
    figure, axes = panels(2, columns=2, size=(3.2, 2.8))
    x, y = np.asarray(values["x"]), np.asarray(values["y"])
    scatter(axes[0], x, y)
    axes[0].set_title("training points")
    image = surface(axes[1], np.asarray(values["map"]), 1.25)
    ring(axes[1], 0.75)
    axes[1].set_title("prediction, its sign change,\nand radius 0.75 (dotted)")
    figure.colorbar(image, ax=axes[1], shrink=0.8)
    return figure


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, eight networks side by side."""
    return 2.0 + float(settings["steps"]) * 1e-3


EXPERIMENT = Experiment(
    shows="Figure 1",
    title="Ball against sphere: the points, and the prediction of the trained network",
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
            says="The network reaches an accuracy of 100% on the training set.",
            of="accuracy",
            published=1.0,
            tolerance=0.0,
            side="above",
            bound=0.99,
            at=("ball against sphere", "training accuracy"),
            source="section 5.1.1",
        ),
        Value(
            name="radius",
            says="The boundary of decision seems to be the circle of radius 0.75.",
            of="radius",
            published=0.75,
            tolerance=0.05,
            at=("ball against sphere", "radius of the boundary"),
            source="section 5.1.1",
        ),
        Value(
            name="unseen",
            says="The network seems to have converged to an optimal algorithm: it makes no error "
            "on unseen points.",
            of="test accuracy",
            published=1.0,
            tolerance=0.0,
            side="above",
            bound=0.99,
            at=("ball against sphere", "accuracy on 1024 unseen points"),
            source="section 5.1.1",
        ),
    ),
    errata=("C5",),
    notes=(
        "The text leaves open the law of the points, the class balance, the initial weights and "
        "whether the squared error has a factor 1/2. Ours: points uniform on both parts, half of "
        "them on each, PyTorch's default law, no factor, float32. Other readings are run beside "
        "it; the claims are judged on ours.",
        "The laptop scale is the paper's: all of it takes minutes.",
        "The radius is the mean over 64 rays of where the output first turns positive, for "
        "networks that turn on every ray.",
    ),
)
