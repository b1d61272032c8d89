"""The claims of tables 4.2 and 4.3, with the published numbers that ours are compared with.

The printed taus belong to 45 data sets and eight sizes. Over fewer sizes the same networks give
another tau, so a smaller run is compared with the thesis' own raw results on the same data sets
and sizes (``equal_sizes.json``, aggregates only).
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from inscape.lab.experiment import ScaleName, Value

#: Where the published spread is 0 (every data set is at the ceiling), ours may be so far off.
AT_CEILING = 0.02


@cache
def equal_sizes() -> Any:
    """Return means and standard errors of the thesis' raw results, by table and scale."""
    path = Path(__file__).parent / "equal_sizes.json"
    return json.loads(path.read_text(encoding="utf-8"))


def tau_claims(item: str) -> tuple[Value, ...]:
    """Return one claim for each tau, at each scale that has a number to compare with."""
    claims = []
    for scale in ("laptop", "paper"):
        for measure, (tau, se) in equal_sizes()[item][scale]["tau"].items():
            claims.append(_tau(measure, tau, se, scale))
    return tuple(claims)


def _tau(measure: str, tau: float, se: float, scale: ScaleName) -> Value:
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
            source="the thesis' raw results on equal data sets",
            scales=(scale,),
        )
        for scale in _scales()
        for measure, sizes in equal_sizes()[item][scale]["mean"].items()
        for size, (mean, se) in sizes.items()
    )


def _scales() -> tuple[ScaleName, ...]:
    return ("laptop", "paper")
