"""The claims of tables 4.2 and 4.3, with the published numbers that ours are compared with.

The printed taus belong to 45 data sets and eight sizes. Over fewer sizes the same networks give
another tau, so a smaller run is compared with the thesis' own raw results on the same data sets
and sizes (``equal_sizes.json``, aggregates only).
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from inscape.lab.experiment import ScaleName, Value

#: Where the published spread is 0 (every data set is at the ceiling), ours may be so far off.
AT_CEILING = 0.02
#: Over so many data sets the published numbers were taken.
DATA_SETS: Mapping[ScaleName, int] = {"laptop": 10, "paper": 45}


@cache
def equal_sizes() -> Any:
    """Return means and standard errors of the thesis' raw results, by table and scale."""
    path = Path(__file__).parent / "equal_sizes.json"
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def by_data_set() -> Any:
    """Return the thesis' raw results for each of our ten data sets, in their order."""
    path = Path(__file__).parent / "by_data_set.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _units(item: str, scale: ScaleName, *place: str) -> tuple[float, ...]:
    """Return the published number of each data set that a laptop run shares with the thesis."""
    if scale != "laptop":
        return ()
    numbers = by_data_set()[item]
    for name in place:
        numbers = numbers[name]
    return tuple(numbers)


def tau_claims(item: str) -> tuple[Value, ...]:
    """Return one claim for each tau, at each scale that has a number to compare with."""
    claims = []
    for scale in ("laptop", "paper"):
        for measure, (tau, se) in equal_sizes()[item][scale]["tau"].items():
            claims.append(_tau(item, measure, tau, se, scale))
    return tuple(claims)


def _tau(item: str, measure: str, tau: float, se: float, scale: ScaleName) -> Value:
    sets = "45 data sets, 8 sizes" if scale == "paper" else "10 data sets, 6 sizes"
    return Value(
        name=f"tau-{measure}-{scale}",
        says=f"Kendall's tau of {measure} against the size is {tau:.2f} ({sets}).",
        of=f"tau/{measure}",
        published=tau,
        published_se=se or None,
        tolerance=None if se else AT_CEILING,
        side="above" if tau > 0.1 else None,
        bound=0.0,
        at=(measure, "tau"),
        kind="correlation",
        origin="paper" if scale == "paper" else "raw data",
        published_n=DATA_SETS[scale],
        published_units=_units(item, scale, "tau", measure),
        source="printed table" if scale == "paper" else "the thesis' raw results on equal sizes",
        scales=(scale,),
    )


def mean_claims(item: str) -> tuple[Value, ...]:
    """Return one claim for the mean of each measure at each size."""
    return tuple(
        Value(
            name=f"mean-{measure}-{size}-{scale}",
            says=f"At {size} training images the mean {measure} is {mean:.2f}.",
            of=f"mean/{measure}/{size}",
            published=mean,
            published_se=se,
            at=(measure, str(size)),
            published_n=DATA_SETS[scale],
            published_units=_units(item, scale, "mean", measure, size),
            source="the thesis' raw results on equal data sets",
            scales=(scale,),
            origin="raw data",
        )
        for scale in _scales()
        for measure, sizes in equal_sizes()[item][scale]["mean"].items()
        for size, (mean, se) in sizes.items()
    )


def _scales() -> tuple[ScaleName, ...]:
    return ("laptop", "paper")
