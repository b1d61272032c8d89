"""Section 5.2: the half-plane task, and the kernel's neighbours near its boundary."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from inscape._core.result import PROPORTION
from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, Difference, Mean, Quantities, Quantity
from inscape.lab.records import Record, Records
from inscape.papers.courtois._toys import BASE, CHOICES, alike
from inscape.papers.courtois.ball_and_sphere import ball_seconds as seconds
from inscape.papers.courtois.ball_and_sphere import shown

READINGS = tuple(CHOICES["plane"])
WHOLE = grid(choice=list(READINGS), n=1024, steps=10_000, side=61, seed=list(range(8)))


def plane_together(cells: Sequence[Settings]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train networks side by side, and measure what figures 4 and 5 show."""
    from inscape.papers.courtois import _plane

    yield from _plane.together(cells)


def _end(choice: str) -> str:
    """Return what is added to the names of quantities of other readings than ours."""
    return "" if choice == BASE else f"/{choice}"


PLANE_QUANTITIES = Quantities(
    {
        name + _end(choice): Mean(name).where(choice=choice)
        for choice in READINGS
        for name in ("accuracy", "test accuracy")
    }
)


def conclude_plane(records: Records) -> list[str]:
    """Say how many points are missed under each reading."""
    said = []
    for choice, some in records.by("choice").items():
        n = some[0].settings["n"]
        wrong = [round((1 - right) * n) for right in some.values("accuracy")]
        said.append(
            f"{choice.capitalize()} ({CHOICES['plane'][choice]}): networks miss {min(wrong)} "
            f"to {max(wrong)} of {n} training points."
        )
    return said


def draw_plane(records: Records) -> Figure:
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


FIGURE_4 = Experiment(
    shows="Figure 4",
    title="A half-plane: the points, and the prediction of the trained network",
    smoke=grid(choice=BASE, n=64, steps=20, side=9, seed=[0, 1]),
    settings=WHOLE,
    departures={"smoke": ("64 points, 20 steps, two networks, our reading of the task alone.",)},
    together=plane_together,
    batch=8,
    alike=alike,
    seconds=seconds,
    analyse=PLANE_QUANTITIES,
    conclude=conclude_plane,
    draw=draw_plane,
    claims=claims(
        {
            "accuracy: accuracy = 0.998 ± 0.002, above 0.99": "The accuracy obtained by the "
            "network after training was 99.80%. | half-plane | training accuracy"
        },
        source="section 5.2",
    ),
    notes=(
        "The text leaves open the direction a, the law of the points, the initial weights and "
        "whether the squared error has a factor 1/2. Ours: a is the diagonal, points uniform on "
        "[-1, 1]², PyTorch's default law, no factor, float32. Other readings are run beside it; "
        "the claims are judged on ours.",
        "The laptop scale is the paper's: all of it takes minutes.",
    ),
)
"""Figure 4: the half-plane task, and what the network of section 5.2 makes of it."""


LAMBDAS = (-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0)
NEAR, FAR = 0.1, 1.0


def at(record: Record, name: str, size: float) -> float:
    """Return a number of one network, its mean over both lambdas of one size."""
    places = [k for k, value in enumerate(LAMBDAS) if abs(value) == size]
    return float(np.mean([record.values[name][k] for k in places]))


def widening(record: Record, size: float) -> float:
    """Return by which factor the kernel's neighbours are more stretched, in logarithms."""
    kernel, distance = (at(record, f"stretch by {k}", size) for k in ("kernel", "distance"))
    return float(np.log(kernel) - np.log(distance))


def _label(kind: str) -> Callable[[Record], float]:
    """Return what gives the fraction of near neighbours that share the label of the query."""
    return lambda record: at(record, f"same label by {kind}", NEAR)


def _stretch(size: float) -> Callable[[Record], float]:
    return lambda record: widening(record, size)


def _near(choice: str) -> dict[str, Quantity]:
    """Return labels and stretch of neighbours near the boundary, for one reading."""
    kernel, distance = _label("kernel"), _label("distance")
    both = Difference(Column(kernel), Column(distance))
    centre = Difference(Column(_stretch(NEAR)), Column(_stretch(FAR)))
    quantities: dict[str, Quantity] = {
        "same label": Mean(kernel, within=PROPORTION),
        "same label by distance": Mean(distance, within=PROPORTION),
        "more than distance": both,
        "stretch": Mean(_stretch(NEAR)),
        "stretch at the centre": centre,
    }
    return {name + _end(choice): of.where(choice=choice) for name, of in quantities.items()}


NEAR_QUANTITIES = Quantities(
    {name: of for choice in READINGS for name, of in _near(choice).items()}
)


def conclude_near(records: Records) -> list[str]:
    """Say how labels and stretch go with lambda."""
    some = records.where(choice=BASE)
    said = []
    for size in sorted({abs(value) for value in LAMBDAS}):
        kernel, distance = (
            np.mean([at(r, f"same label by {kind}", size) for r in some])
            for kind in ("kernel", "distance")
        )
        factor = np.exp(np.mean([widening(r, size) for r in some]))
        said.append(
            f"At a distance {size:g} from the boundary {kernel:.0%} of the kernel's neighbours "
            f"have the label of the query, and {distance:.0%} of the nearest by distance; they "
            f"are {factor:.2f} times as stretched along the boundary."
        )
    return said


def draw_near(records: Records) -> Figure:
    """Draw the neighbours of one network, by kernel above and by distance below."""
    from inscape.papers.courtois._pictures import both_rows

    values = shown(records).values
    x, y = np.asarray(values["x"]), np.asarray(values["y"])
    figure: Figure = both_rows(values, LAMBDAS, x, y, np.full(2, np.sqrt(0.5)))
    return figure


FIGURE_5 = Experiment(
    shows="Figure 5",
    title="The 100 nearest points of lambda a, by tangent kernel and by distance",
    same_as="courtois/figure-4",
    analyse=NEAR_QUANTITIES,
    conclude=conclude_near,
    draw=draw_near,
    claims=claims(
        {
            "same-label: same label > 0.5": "Most of the closest neighbours share the label of "
            "the query (near the boundary, where it is in doubt). | t interval over networks",
            "more-than-distance: more than distance > 0": "The kernel's neighbours respect the "
            "label more than the Euclidean ones near the boundary. | | section 5.2, figure 5",
            "orthogonal: stretch > 0": "The learned deformation follows the direction orthogonal "
            "to a: the kernel's neighbours are more stretched that way than the Euclidean ones. | "
            "t interval over networks of the logarithm of the factor",
            "centre: stretch at the centre > 0": "The deformation is localised around the centre "
            "of the space: it is larger there than at a distance 1.",
        },
        source="section 5.2",
        test="paired t interval over networks",
    ),
    notes=(
        "The networks are those of figure 4. The values of lambda are not in the text: ours are "
        "±0.1, ±0.25, ±0.5 and ±1 times the unit vector along a; near the boundary means ±0.1.",
        "Stretch is the standard deviation of the neighbours along the boundary, divided by that "
        "across it.",
    ),
)
"""Figure 5: near the boundary of a half-plane the kernel's neighbours keep to their side."""
