"""Section 5.1: ball against sphere, the kernel's neighbours, and planes that separate features."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.papers.courtois._toys import BASE, CHOICES, alike

READINGS = tuple(CHOICES["ball"])
WHOLE = grid(choice=list(READINGS), n=1024, steps=10_000, side=61, seed=list(range(8)))


def ball_together(cells: Sequence[Settings]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train networks side by side, and measure what figures 1 to 3 show."""
    from inscape.papers.courtois import _ball

    yield from _ball.together(cells)


def _end(choice: str) -> str:
    """Return what is added to the names of quantities of other readings than ours."""
    return "" if choice == BASE else f"/{choice}"


BALL_QUANTITIES = Quantities(
    {
        name + _end(choice): Mean(name).where(choice=choice)
        for choice in READINGS
        for name in ("accuracy", "test accuracy", "radius")
    }
)


def conclude_ball(records: Records) -> list[str]:
    """Say what each reading of the task gives."""
    said = []
    for choice, some in records.by("choice").items():
        perfect = sum(record.values["accuracy"] == 1.0 for record in some)
        text = f"{choice.capitalize()} ({CHOICES['ball'][choice]}): {perfect} of {len(some)} "
        text += "networks make no error"
        if radii := some.values("radius"):
            ends = np.array(some.values("radii"))
            text += f"; boundaries lie at radii {ends[:, 0].min():.2f} to {ends[:, 1].max():.2f}, "
            text += f"{np.mean(radii):.3f} on average"
        said.append(text + ".")
    return said


def shown(records: Records) -> Record:
    """Return the record that holds pictures."""
    return records.first("map") or records[0]


def draw_ball(records: Records) -> Figure:
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


def ball_seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, eight networks side by side."""
    return 2.0 + float(settings["steps"]) * 1e-3


FIGURE_1 = Experiment(
    shows="Figure 1",
    title="Ball against sphere: the points, and the prediction of the trained network",
    smoke=grid(choice=BASE, n=64, steps=20, side=9, seed=[0, 1]),
    settings=WHOLE,
    departures={"smoke": ("64 points, 20 steps, two networks, our reading of the task alone.",)},
    together=ball_together,
    batch=8,
    alike=alike,
    seconds=ball_seconds,
    analyse=BALL_QUANTITIES,
    conclude=conclude_ball,
    draw=draw_ball,
    claims=claims(
        {
            "accuracy: accuracy = 1.0 ± 0.0, above 0.99": "The network reaches an accuracy of "
            "100% on the training set. | ball against sphere | training accuracy",
            "radius: radius = 0.75 ± 0.05": "The boundary of decision seems to be the circle of "
            "radius 0.75. | ball against sphere | radius of the boundary",
            "unseen: test accuracy = 1.0 ± 0.0, above 0.99": "The network seems to have converged "
            "to an optimal algorithm: it makes no error on unseen points. | ball against sphere | "
            "accuracy on 1024 unseen points",
        },
        source="section 5.1.1",
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
"""Figure 1: ball against sphere, and what the network of section 5.1 makes of it."""


LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)


def _mean(name: str) -> Callable[[Record], float]:
    """Return what gives the mean of a list of a record."""
    return lambda record: float(np.mean(record.values[name]))


NEAR_QUANTITIES = Quantities(
    {
        name + _end(choice): Mean(_mean(name)).where(choice=choice)
        for choice in READINGS
        for name in ("agreement", "correlation")
    }
)


def conclude_near(records: Records) -> list[str]:
    """Say how far both lists agree at each lambda."""
    some = records.where(choice=BASE)
    shares = np.mean([record.values["agreement"] for record in some], axis=0)
    words = ", ".join(f"{s:.0%} at {at:g}" for at, s in zip(LAMBDAS, shares, strict=True))
    return [
        f"Share of the nearest by kernel that are also nearest by distance, by lambda: {words}; "
        f"by chance {some[0].values['chance']:.0%}."
    ]


def draw_near(records: Records) -> Figure:
    """Draw the neighbours of one network, by kernel above and by distance below."""
    from inscape.papers.courtois._pictures import both_rows

    values = shown(records).values
    x, y = np.asarray(values["x"]), np.asarray(values["y"])
    figure: Figure = both_rows(values, LAMBDAS, x, y, np.asarray(values["u"]))
    return figure


FIGURE_2 = Experiment(
    shows="Figure 2",
    title="The 100 nearest points of lambda u, by tangent kernel and by distance",
    same_as="courtois/figure-1",
    analyse=NEAR_QUANTITIES,
    conclude=conclude_near,
    draw=draw_near,
    claims=claims(
        {
            "similar: agreement > 0.5": "Both sets of neighbours are similar (they share more "
            "than half).",
            "not-identical: agreement < 0.99": "Both sets of neighbours are not identical.",
            "compatible: correlation > 0.5": "The normalised kernel seems to be compatible with "
            "the Euclidean distance (the ranks of all points by both correlate by more than one "
            "half). | t interval of Spearman's correlation over networks",
        },
        source="section 5.1.2",
        test="t interval over networks, means over directions and lambdas",
    ),
    errata=("C5", "C6"),
    notes=(
        "The networks are those of figure 1. The values of lambda are not in the text: ours go "
        "from 0 to 1.25 by quarters, with eight random directions for each network.",
        "The kernel is that of the trained weights (k = K), one small step after the text's "
        "k = K - 1.",
    ),
)
"""Figure 2: which points the tangent kernel takes for near, and which are near."""


NAMES = ("SVM on inputs", "SVM on features", "like the network", "SVM untrained", "margin")


PLANES_QUANTITIES = Quantities(
    {name: Mean(name).where(lambda r: r.values["accuracy"] == 1.0, choice=BASE) for name in NAMES}
)


def conclude_planes(records: Records) -> list[str]:
    """Say what the features of untrained networks give."""
    some = records.where(choice=BASE)
    apart = sum(record.values["SVM untrained"] == 1.0 for record in some)
    return [
        f"A plane separates the features of {apart} of {len(some)} networks before any training: "
        "that the features are separable says little about what was learned."
    ]


def draw_planes(records: Records) -> Figure:
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


FIGURE_3 = Experiment(
    shows="Figure 3",
    title="Support vector machines on the inputs, and on the tangent features",
    same_as="courtois/figure-1",
    analyse=PLANES_QUANTITIES,
    conclude=conclude_planes,
    draw=draw_planes,
    claims=claims(
        {
            "inputs: SVM on inputs < 0.9": "A support vector machine on the inputs fails (it gets "
            "less than 90% right). | | section 5.1.3, figure 3",
            "features: SVM on features = 1.0 ± 0.0": "On the tangent features it reaches an "
            "accuracy of 100%. | ball against sphere | SVM accuracy on features",
            "boundary: like the network > 0.95": "Its decision boundary closely matches that of "
            "the network (they agree on more than 95% of a square around the points).",
        },
        source="section 5.1.3",
        test="t interval over networks",
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
"""Figure 3: planes separate the tangent features, and not the inputs."""
