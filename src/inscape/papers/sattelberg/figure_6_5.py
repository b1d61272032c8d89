"""Figure 6.5: circle versus annulus by three layers of eight units."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Trend
from inscape.lab.statistics import mean_estimate, paired_difference, proportion_of
from inscape.lab.store import Record
from inscape.papers.sattelberg._toy import SETTINGS_NOTE, SOLVED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]

HIDDEN = (8, 8, 8)
#: Inner radius of the annulus: farther lines do not touch the circle's side of the gap.
REACH = 0.7072
#: Degrees between the directions of three units that form a triangle: 120, give or take 30.
LEAST, MOST = 90.0, 150.0
#: The centre is flatter than this share of the mean slope over the square.
FLAT = 0.25
WHOLE: Axes = {"n": [1000], "epochs": [150], "seed": list(range(20))}


def cell(n: int, epochs: int, seed: int) -> dict[str, Any]:
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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
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


def conclude(records: Sequence[Record]) -> list[str]:
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


def draw(records: Sequence[Record]) -> "Figure":
    """Draw classes, regions and coefficients above, and the lines of each layer below."""
    from inscape.papers.sattelberg._structure import structure

    return structure((solved(records) or [records[0].values])[0], len(HIDDEN))


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: most of it is training."""
    return float(4 + settings["epochs"] * settings["n"] / 32 * 1.1e-3)


EXPERIMENT = Experiment(
    shows="Figure 6.5",
    title="A solution of circle versus annulus by three hidden layers of eight units",
    smoke={"n": [200], "epochs": [3], "seed": [0]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("200 points, three epochs, one network.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="triangle",
            says="The larger network repeats the triangle of the small network in its first "
            "layer (most networks do).",
            of="triangle",
            side="above",
            bound=0.5,
            test="share of the networks that solve the problem, Wilson's interval",
            source="section 6.2",
        ),
        Trend(
            name="learned",
            says="The triangle is a solution that training finds: more networks have it after "
            "training than before.",
            of="gain",
            side="above",
            test="paired t interval over networks",
            source="section 6.2",
        ),
        Trend(
            name="centre",
            says="The coefficients have a central point as those of the small network do (in most "
            "networks).",
            of="flat centre",
            side="above",
            bound=0.5,
            test="share of the networks that solve the problem, Wilson's interval",
            source="section 6.2",
        ),
        Trend(
            name="more",
            says="It has more regions than the seven of the small network.",
            of="regions",
            side="above",
            bound=7,
            test="t interval over networks",
            source="section 6.2, figure 6.5",
        ),
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
