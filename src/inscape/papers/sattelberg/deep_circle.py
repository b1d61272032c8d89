"""Circle versus annulus by three layers of eight units: its lines, and clusters of its maps."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate, paired_difference, proportion_of
from inscape.papers.sattelberg._toy import SETTINGS_NOTE, SOLVED

Array = npt.NDArray[Any]
HIDDEN = (8, 8, 8)
#: Inner radius of the annulus: farther lines do not touch the circle's side of the gap.
REACH = 0.7072
#: Degrees between the directions of three units that form a triangle: 120, give or take 30.
LEAST, MOST = 90.0, 150.0
#: The centre is flatter than this share of the mean slope over the square.
FLAT = 0.25
WHOLE = grid(n=1000, epochs=150, seed=list(range(20)))


def deep_cell(n: int, epochs: int, seed: int) -> dict[str, Any]:
    """Train one network, cut the plane by it, and look at its maps on a grid."""
    from inscape.papers.sattelberg import _toy
    from inscape.papers.sattelberg._planes import packed

    run = _toy.trained("circle", HIDDEN, n=n, epochs=epochs, seed=seed)
    first, last = (_toy.states(run, [moment]).popitem()[1] for moment in (0.0, 1.0))
    found = _toy.cut(run.model)
    maps, places = _toy.grid_maps(last)
    return {
        "accuracy": _toy.accuracy(run.model, *_toy.points("circle", n, seed)),
        "cells": found.cells,
        "regions": found.regions,
        "maps": maps.numpy(),
        "places": places.numpy(),
        "lines": last["0.weight"].numpy(),
        "offsets": last["0.bias"].numpy(),
        "lines before": first["0.weight"].numpy(),
        "offsets before": first["0.bias"].numpy(),
        **packed(found, "cells/"),
    }


def triangle(lines: Array, offsets: Array) -> bool:
    """Tell whether three units enclose the centre as the three units of figure 6.4 do.

    Their lines pass within ``REACH`` of the origin, all three are off there or all on, and they
    point in directions 90 to 150 degrees apart.
    """
    near = np.abs(offsets) <= REACH * np.linalg.norm(lines, axis=1)
    angles = np.degrees(np.arctan2(lines[:, 1], lines[:, 0]))
    for on in (True, False):
        units = angles[near & ((offsets > 0) == on)]
        for three in combinations(np.sort(units), 3):
            gaps = np.diff(three, append=three[0] + 360)
            if gaps.min() >= LEAST and gaps.max() <= MOST:
                return True
    return False


def crossing_lines(lines: Array, offsets: Array) -> bool:
    """Tell whether three lines pass near the centre 30 to 90 degrees apart, whatever their side."""
    near = np.abs(offsets) <= REACH * np.linalg.norm(lines, axis=1)
    angles = np.degrees(np.arctan2(lines[:, 1], lines[:, 0])) % 180
    for three in combinations(np.sort(angles[near]), 3):
        gaps = np.diff(three, append=three[0] + 180)
        if gaps.min() >= LEAST - 60 and gaps.max() <= MOST - 60:
            return True
    return False


def flat_centre(values: Mapping[str, Any]) -> bool:
    """Tell whether the slope at the origin is small against the mean slope over the square."""
    sizes = np.linalg.norm(np.asarray(values["maps"])[:, :2], axis=1)
    places = np.asarray(values["places"])
    return bool(sizes[places[len(places) // 2]] < FLAT * sizes[places].mean())


def solved(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    """Return what is known of the networks that tell circle and annulus apart."""
    return [r.values for r in records if r.values["accuracy"] >= SOLVED]


def analyse_deep(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how often the triangle and a flat centre are there, and how many regions are."""
    good = solved(records)
    if not good:
        return {}
    after = [triangle(np.asarray(v["lines"]), np.asarray(v["offsets"])) for v in good]
    before = [
        triangle(np.asarray(v["lines before"]), np.asarray(v["offsets before"])) for v in good
    ]
    return {
        "triangle": proportion_of(after),
        "triangle before": proportion_of(before),
        "gain": paired_difference([float(one) for one in after], [float(one) for one in before]),
        "flat centre": proportion_of([flat_centre(v) for v in good]),
        "regions": mean_estimate([float(v["regions"]) for v in good]),
    }


def conclude_deep(records: Sequence[Record]) -> list[str]:
    """Say how many networks solve the problem, and with how many regions."""
    counts = [record.values["regions"] for record in records]
    before, after = (
        sum(
            crossing_lines(np.asarray(v[f"lines{when}"]), np.asarray(v[f"offsets{when}"]))
            for v in (record.values for record in records)
        )
        for when in (" before", "")
    )
    return [
        f"{len(solved(records))} of {len(records)} networks get {SOLVED:.0%} of the points right; "
        f"they have {min(counts)} to {max(counts)} regions in the square.",
        f"Without regard to the side on which units are on, {after} have three lines near the "
        f"centre that are 30 to 90 degrees apart; {before} had them before training.",
    ]


def draw_deep(records: Sequence[Record]) -> Figure:
    """Draw classes, regions and coefficients above, and the lines of each layer below."""
    from inscape.papers.sattelberg._structure import structure

    return structure((solved(records) or [records[0].values])[0], len(HIDDEN))


FIGURE_6_5 = Experiment(
    shows="Figure 6.5",
    title="A solution of circle versus annulus by three hidden layers of eight units",
    smoke=grid(n=200, epochs=3, seed=0),
    settings=WHOLE,
    departures={"smoke": ("200 points, three epochs, one network.",)},
    cell=deep_cell,
    seconds=lambda settings: float(4 + settings["epochs"] * settings["n"] / 32 * 1.1e-3),
    analyse=analyse_deep,
    conclude=conclude_deep,
    draw=draw_deep,
    claims=claims(
        {
            "triangle: triangle > 0.5": "The larger network repeats the triangle of the small "
            "network in its first layer (most networks do).",
            "learned: gain > 0": "The triangle is a solution that training finds: more networks "
            "have it after training than before. | paired t interval over networks",
            "centre: flat centre > 0.5": "The coefficients have a central point as those of the "
            "small network do (in most networks).",
            "more: regions > 7": "It has more regions than the seven of the small network. | t "
            "interval over networks | section 6.2, figure 6.5",
        },
        source="section 6.2",
        test="share of the networks that solve the problem, Wilson's interval",
    ),
    notes=(
        SETTINGS_NOTE,
        "A triangle is three units of the first layer whose lines pass within the gap's outer "
        "radius of the centre, that are all off or all on there, and that point in directions 90 "
        "to 150 degrees apart. Among eight random lines some do this by chance: hence the second "
        "claim.",
        "A central point is a slope at the origin below a quarter of the mean slope over the "
        "square.",
    ),
)
"""Figure 6.5: circle versus annulus by three layers of eight units."""


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


def analyse_clusters(records: Sequence[Record]) -> dict[str, Estimate]:
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


def conclude_clusters(records: Sequence[Record]) -> list[str]:
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


def draw_clusters(records: Sequence[Record]) -> Figure:
    """Draw the first network that solves the problem."""
    from inscape.papers.sattelberg._structure import structure

    return structure((solved(records) or [records[0].values])[0], len(HIDDEN))


FIGURE_7_2 = Experiment(
    shows="Figure 7.2",
    title="Coefficients of an 8 x 3 network cluster, although it has many regions",
    same_as="figure-6.5",
    analyse=analyse_clusters,
    conclude=conclude_clusters,
    draw=draw_clusters,
    claims=claims(
        {
            "regions: regions = 93 ± 46.5, above 10": "There are 93 regions in the domain. | 8 x "
            "3 | regions",
            "clusters: clusters between 5 and 20": "The coefficients cluster into about ten "
            "groups.",
            f"fewer: regions for each cluster > {round(log(2), 4)}": "There are far fewer "
            "clusters than regions (by a factor of two at least). | mean logarithm of regions "
            "over clusters, t interval over networks",
        },
        source="section 7.2",
        test="t interval over networks; ten within a factor of two",
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
"""Figure 7.2: many linear regions, few clusters of coefficients."""
