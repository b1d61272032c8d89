"""Figure 5: near the boundary of a half-plane the kernel's neighbours keep to their side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inscape._core.result import PROPORTION
from inscape.lab.experiment import Estimate, Experiment, Trend
from inscape.lab.statistics import mean_estimate, paired_difference
from inscape.lab.store import Record
from inscape.papers.courtois._numbers import chosen
from inscape.papers.courtois._toys import BASE
from inscape.papers.courtois.figure_1 import shown
from inscape.papers.courtois.figure_4 import READINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAMBDAS = (-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0)
NEAR, FAR = 0.1, 1.0


def at(records: Sequence[Record], name: str, size: float) -> npt.NDArray[np.float64]:
    """Return a number for each network, its mean over both lambdas of one size."""
    places = [k for k, value in enumerate(LAMBDAS) if abs(value) == size]
    found: npt.NDArray[np.float64] = np.array([record.values[name] for record in records])
    means: npt.NDArray[np.float64] = found[:, places].mean(1)
    return means


def widening(records: Sequence[Record], size: float) -> npt.NDArray[np.float64]:
    """Return by which factor the kernel's neighbours are more stretched, in logarithms."""
    kinds = (at(records, f"stretch by {kind}", size) for kind in ("kernel", "distance"))
    kernel, distance = (np.log(values) for values in kinds)
    found: npt.NDArray[np.float64] = kernel - distance
    return found


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return labels and stretch of neighbours near the boundary, for each reading."""
    found = {}
    for choice in READINGS:
        some = chosen(records, choice=choice)
        if not some:
            continue
        end = "" if choice == BASE else f"/{choice}"
        labels = [at(some, f"same label by {kind}", NEAR) for kind in ("kernel", "distance")]
        found[f"same label{end}"] = mean_estimate(labels[0], within=PROPORTION)
        found[f"same label by distance{end}"] = mean_estimate(labels[1], within=PROPORTION)
        found[f"more than distance{end}"] = paired_difference(*labels)
        found[f"stretch{end}"] = mean_estimate(widening(some, NEAR))
        found[f"stretch at the centre{end}"] = paired_difference(
            widening(some, NEAR), widening(some, FAR)
        )
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how labels and stretch go with lambda."""
    some = chosen(records, choice=BASE)
    said = []
    for size in sorted({abs(value) for value in LAMBDAS}):
        shares = [at(some, f"same label by {kind}", size).mean() for kind in ("kernel", "distance")]
        factor = np.exp(widening(some, size).mean())
        said.append(
            f"At a distance {size:g} from the boundary {shares[0]:.0%} of the kernel's neighbours "
            f"have the label of the query, and {shares[1]:.0%} of the nearest by distance; they "
            f"are {factor:.2f} times as stretched along the boundary."
        )
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the neighbours of one network, by kernel above and by distance below."""
    from inscape.papers.courtois._pictures import both_rows

    values = shown(records).values
    x, y = np.asarray(values["x"]), np.asarray(values["y"])
    figure: Figure = both_rows(values, LAMBDAS, x, y, np.full(2, np.sqrt(0.5)))
    return figure


EXPERIMENT = Experiment(
    shows="Figure 5",
    title="The 100 nearest points of lambda a, by tangent kernel and by distance",
    same_as="courtois/figure-4",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="same-label",
            says="Most of the closest neighbours share the label of the query (near the boundary, "
            "where it is in doubt).",
            of="same label",
            side="above",
            bound=0.5,
            test="t interval over networks",
            source="section 5.2",
        ),
        Trend(
            name="more-than-distance",
            says="The kernel's neighbours respect the label more than the Euclidean ones near the "
            "boundary.",
            of="more than distance",
            side="above",
            test="paired t interval over networks",
            source="section 5.2, figure 5",
        ),
        Trend(
            name="orthogonal",
            says="The learned deformation follows the direction orthogonal to a: the kernel's "
            "neighbours are more stretched that way than the Euclidean ones.",
            of="stretch",
            side="above",
            test="t interval over networks of the logarithm of the factor",
            source="section 5.2",
        ),
        Trend(
            name="centre",
            says="The deformation is localised around the centre of the space: it is larger there "
            "than at a distance 1.",
            of="stretch at the centre",
            side="above",
            test="paired t interval over networks",
            source="section 5.2",
        ),
    ),
    notes=(
        "The networks are those of figure 4. The values of lambda are not in the text: ours are "
        "±0.1, ±0.25, ±0.5 and ±1 times the unit vector along a; near the boundary means ±0.1.",
        "Stretch is the standard deviation of the neighbours along the boundary, divided by that "
        "across it.",
    ),
)
