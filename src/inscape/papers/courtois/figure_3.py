"""Figure 3: planes separate the tangent features, and not the inputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from inscape.lab.experiment import Estimate, Experiment, Trend, Value
from inscape.lab.store import Record
from inscape.papers.courtois._numbers import chosen, known, means
from inscape.papers.courtois._toys import BASE
from inscape.papers.courtois.figure_1 import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("SVM on inputs", "SVM on features", "like the network", "SVM untrained", "margin")


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how well planes separate, over networks that make no error themselves."""
    perfect = [r for r in chosen(records, choice=BASE) if r.values["accuracy"] == 1.0]
    return known({name: means(perfect, name) for name in NAMES})


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what the features of untrained networks give."""
    some = chosen(records, choice=BASE)
    apart = sum(record.values["SVM untrained"] == 1.0 for record in some)
    return [
        f"A plane separates the features of {apart} of {len(some)} networks before any training: "
        "that the features are separable says little about what was learned."
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the decisions of planes for inputs and for features."""
    from inscape.figures.panels import panels
    from inscape.figures.style import INK
    from inscape.papers.courtois._pictures import scatter, sides

    values = shown(records).values
    figure, axes = panels(2, columns=2, size=(3.0, 2.9))
    x, y = np.asarray(values["x"]), np.asarray(values["y"])
    heights = np.asarray(values["map"])
    ticks = np.linspace(-1.25, 1.25, round(len(heights) ** 0.5))
    heights = heights.reshape(len(ticks), len(ticks)).T
    for ax, name in zip(axes, ("inputs", "features"), strict=True):
        sides(ax, np.asarray(values[f"map of {name}"]), 1.25)
        scatter(ax, x, y, size=2)
        if heights.min() < 0 < heights.max():
            ax.contour(ticks, ticks, heights, levels=[0.0], colors=INK, linewidths=0.8)
        ax.set_title(f"plane for {name}: {values[f'SVM on {name}']:.1%}")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3",
    title="Support vector machines on the inputs, and on the tangent features",
    same_as="courtois/figure-1",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="inputs",
            says="A support vector machine on the inputs fails (it gets less than 90% right).",
            of="SVM on inputs",
            side="below",
            bound=0.9,
            test="t interval over networks",
            source="section 5.1.3, figure 3",
        ),
        Value(
            name="features",
            says="On the tangent features it reaches an accuracy of 100%.",
            of="SVM on features",
            published=1.0,
            tolerance=0.0,
            at=("ball against sphere", "SVM accuracy on features"),
            source="section 5.1.3",
        ),
        Trend(
            name="boundary",
            says="Its decision boundary closely matches that of the network (they agree on more "
            "than 95% of a square around the points).",
            of="like the network",
            side="above",
            bound=0.95,
            test="t interval over networks",
            source="section 5.1.3",
        ),
    ),
    errata=("C5",),
    notes=(
        "The networks are those of figure 1 that make no error. The line is the boundary of the "
        "network itself.",
        "The price of errors is not in the text: 1 for the inputs, 1000 for the features, with "
        "kernels divided by their mean diagonal.",
        "That features of networks without an error are separable follows from section 4.2: the "
        "claim checks our arithmetic as much as the text.",
    ),
)
