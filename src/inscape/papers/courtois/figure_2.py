"""Figure 2: which points the tangent kernel takes for near, and which are near."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from inscape.lab.experiment import Estimate, Experiment, Trend
from inscape.lab.statistics import mean_estimate
from inscape.lab.store import Record
from inscape.papers.courtois._numbers import chosen
from inscape.papers.courtois._toys import BASE
from inscape.papers.courtois.figure_1 import READINGS, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return agreement and rank correlation of both orders, over networks."""
    found = {}
    for choice in READINGS:
        end = "" if choice == BASE else f"/{choice}"
        some = chosen(records, choice=choice)
        for name in ("agreement", "correlation") if some else ():
            means = [float(np.mean(record.values[name])) for record in some]
            found[name + end] = mean_estimate(means)
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how far both lists agree at each lambda."""
    some = chosen(records, choice=BASE)
    shares = np.mean([record.values["agreement"] for record in some], axis=0)
    words = ", ".join(f"{s:.0%} at {at:g}" for at, s in zip(LAMBDAS, shares, strict=True))
    return [
        f"Share of the nearest by kernel that are also nearest by distance, by lambda: {words}; "
        f"by chance {some[0].values['chance']:.0%}."
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the neighbours of one network, by kernel above and by distance below."""
    from inscape.papers.courtois._pictures import both_rows

    values = shown(records).values
    x, y = np.asarray(values["x"]), np.asarray(values["y"])
    figure: Figure = both_rows(values, LAMBDAS, x, y, np.asarray(values["u"]))
    return figure


EXPERIMENT = Experiment(
    shows="Figure 2",
    title="The 100 nearest points of lambda u, by tangent kernel and by distance",
    same_as="courtois/figure-1",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="similar",
            says="Both sets of neighbours are similar (they share more than half).",
            of="agreement",
            side="above",
            bound=0.5,
            test="t interval over networks, means over directions and lambdas",
            source="section 5.1.2",
        ),
        Trend(
            name="not-identical",
            says="Both sets of neighbours are not identical.",
            of="agreement",
            side="below",
            bound=0.99,
            test="t interval over networks, means over directions and lambdas",
            source="section 5.1.2",
        ),
        Trend(
            name="compatible",
            says="The normalised kernel seems to be compatible with the Euclidean distance (the "
            "ranks of all points by both correlate by more than one half).",
            of="correlation",
            side="above",
            bound=0.5,
            test="t interval of Spearman's correlation over networks",
            source="section 5.1.2",
        ),
    ),
    errata=("C5", "C6"),
    notes=(
        "The networks are those of figure 1. The values of lambda are not in the text: ours go "
        "from 0 to 1.25 by quarters, with eight random directions for each network.",
        "The kernel is that of the trained weights (k = K), one small step after the text's "
        "k = K - 1.",
    ),
)
