"""Figure 7.2: many linear regions, few clusters of coefficients."""

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Estimate, Experiment, Trend, Value
from inscape.lab.statistics import mean_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._toy import SETTINGS_NOTE
from inscape.papers.sattelberg.figure_6_5 import HIDDEN, solved

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Maps are linked when they are nearer than this share of the largest distance between two.
LINK = 0.05


def clusters(maps: npt.NDArray[Any], link: float = LINK) -> int:
    """Return the number of clusters: maps that chains of short links join."""
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial.distance import pdist, squareform

    if len(maps) < 2:
        return len(maps)
    distances = pdist(np.asarray(maps, dtype=float))
    count, _ = connected_components(squareform(distances <= link * distances.max()))
    return int(count)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return means over the networks that solve the problem."""
    good = solved(records)
    if not good:
        return {}
    seen = [len(values["maps"]) for values in good]
    groups = [clusters(np.asarray(values["maps"])) for values in good]
    return {
        "regions": mean_estimate([float(one) for one in seen]),
        "exact regions": mean_estimate([float(values["regions"]) for values in good]),
        "clusters": mean_estimate([float(one) for one in groups]),
        "regions for each cluster": mean_estimate(
            [log(one / group) for one, group in zip(seen, groups, strict=True)]
        ),
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say the ranges, and how many regions the grid misses."""
    values = [record.values for record in records]
    seen = [len(one["maps"]) for one in values]
    groups = [clusters(np.asarray(one["maps"])) for one in values]
    coarse = [clusters(np.asarray(one["maps"]), 3 * LINK) for one in values]
    missed = 1 - sum(seen) / sum(one["cells"] for one in values)
    return [
        f"{len(values)} networks show {min(seen)} to {max(seen)} regions on the grid, in "
        f"{min(groups)} to {max(groups)} clusters; with links three times as long in "
        f"{min(coarse)} to {max(coarse)}.",
        f"The grid misses {missed:.0%} of the cells that there are.",
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the first network that solves the problem."""
    from inscape.papers.sattelberg._structure import structure

    return structure((solved(records) or [records[0].values])[0], len(HIDDEN))


EXPERIMENT = Experiment(
    shows="Figure 7.2",
    title="Coefficients of an 8 x 3 network cluster, although it has many regions",
    same_as="figure-6.5",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="regions",
            says="There are 93 regions in the domain.",
            of="regions",
            published=93,
            tolerance=46.5,
            side="above",
            bound=10,
            at=("8 x 3", "regions"),
            source="section 7.2",
        ),
        Trend(
            name="clusters",
            says="The coefficients cluster into about ten groups.",
            of="clusters",
            side="between",
            bound=5,
            upper=20,
            test="t interval over networks; ten within a factor of two",
            source="section 7.2",
        ),
        Trend(
            name="fewer",
            says="There are far fewer clusters than regions (by a factor of two at least).",
            of="regions for each cluster",
            side="above",
            bound=round(log(2), 4),
            test="mean logarithm of regions over clusters, t interval over networks",
            source="section 7.2",
        ),
    ),
    notes=(
        SETTINGS_NOTE,
        "The printed 93 is the count of one network: the tolerance is half of it. Regions are "
        "those of different activation patterns on the uniform 101 x 101 grid, as in section 7.1; "
        "all that there are is given beside it.",
        "What a cluster is the text leaves to the eye: here two maps (slopes and constant) are "
        "linked when their distance is at most 5% of the largest one, and chains of links make "
        "clusters.",
    ),
)
