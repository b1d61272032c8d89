"""Success and Fourier metrics by number of inputs and kind of function: groups and their changes.

A group holds one entry for each function: the share of networks that succeeded and the share of
rows that are right, both as means over sizes, and the metrics over the number of inputs.
"""

from collections.abc import Mapping, Sequence
from math import hypot, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Estimate, IntervalKind, Panel
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

Array = npt.NDArray[Any]
Group = dict[str, Array]
Key = tuple[int, str]

FOURIER = ("influence", "degree", "entropy")
NORMAL = 1.96


def dimension_groups(records: Sequence[Record], size: str | None = None) -> dict[Key, Group]:
    """Return the groups by number of inputs and kind; of one size, or the mean over sizes."""
    found: dict[Key, Group] = {}
    for n, kind in dict.fromkeys((r.settings["n"], r.settings["kind"]) for r in records):
        some = [
            r
            for r in records
            if (r.settings["n"], r.settings["kind"]) == (n, kind)
            and size in (None, r.settings["size"])
        ]
        if some:
            found[n, kind] = _group(some, n)
    return found


def _group(records: Sequence[Record], n: int) -> Group:
    sizes = sorted({r.settings["size"] for r in records})
    parts = [[r for r in records if r.settings["size"] == size] for size in sizes]
    trials = sum(r.settings["trials"] for r in parts[0])
    first = next(r.values for r in records if "degree" in r.values)
    return {
        "success": np.mean([_rate(part, "successes") for part in parts], axis=0),
        "right": np.mean([_rate(part, "right") for part in parts], axis=0) / 2**n,
        "best": np.mean([_rate(part, "best") for part in parts], axis=0) / 2**n,
        "networks": np.array([trials * len(parts)]),
        **{name: np.asarray(first[name]) / n for name in FOURIER},
    }


def _rate(records: Sequence[Record], name: str) -> Array:
    """Return the mean over trials of what the blocks have summed up."""
    total = np.sum([r.values[name] for r in records], axis=0)
    return np.asarray(total / sum(r.settings["trials"] for r in records))


def spread(group: Group, name: str) -> Estimate:
    """Return the mean over functions; success is no surer than that many trials make it."""
    values = group[name]
    n, mean = len(values), float(np.mean(values))
    se = float(np.std(values, ddof=1)) / sqrt(n) if n > 1 else 0.0
    method = "normal interval over functions" if n > 1 else "one function"
    if name == "success":
        tried = n * int(group["networks"][0])
        guess = (mean * tried + 1) / (tried + 2)  # no certainty from equal trials
        least = sqrt(guess * (1 - guess) / tried)
        se, method = max((se, method), (least, "binomial spread of the trials"))
    return Estimate(
        value=mean,
        low=mean - NORMAL * se,
        high=mean + NORMAL * se,
        se=se,
        n=n,
        exact=n == 1 and name in FOURIER,
        method=method,
        interval="binomial" if name == "success" else "normal",
    )


def change(first: Group, last: Group, name: str) -> Estimate:
    """Return by how much the mean rises from one group to another."""
    return _combined([(1.0, spread(last, name)), (-1.0, spread(first, name))])


def extra_change(corners: Sequence[Group]) -> Estimate:
    """Return how much more one kind's success drops than another's.

    Args:
        corners: The first kind with few inputs and with many, then the second.
    """
    signs = (1.0, -1.0, -1.0, 1.0)
    return _combined([(s, spread(g, "success")) for s, g in zip(signs, corners, strict=True)])


def _combined(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    value = sum(sign * part.value for sign, part in parts)
    se = hypot(*(part.se for _, part in parts))
    return Estimate(
        value=value,
        low=value - NORMAL * se,
        high=value + NORMAL * se,
        se=se,
        n=min(part.n for _, part in parts),
        exact=all(part.exact for _, part in parts),
        method="difference of means, normal interval" if se else "no spread",
        interval=_kind([part for _, part in parts]),
    )


def _kind(parts: Sequence[Estimate]) -> IntervalKind:
    """Return the kind of interval of a sum: binomial where all of its parts are."""
    return "binomial" if all(part.interval == "binomial" for part in parts) else "normal"


def or_entropy(n: int) -> Estimate:
    """Return the Fourier entropy of OR."""
    from inscape import boolean

    value = boolean.fourier(boolean.disjunction(n)).entropy
    return exact_estimate(value, 1, method="exact")


def looks(kind: str) -> dict[str, Any]:
    """Return colour and mark of a kind."""
    from inscape.figures.style import BLUE, ORANGE, VERMILION

    colour, marker = {"parity": (BLUE, "s"), "xor": (ORANGE, "o"), "random": (VERMILION, "D")}[kind]
    return {"color": colour, "marker": marker, "ms": 4}


def line_of(ax: Panel, groups: Mapping[Key, Group], kind: str, name: str) -> None:
    """Draw the mean of a kind against the number of inputs, with its interval."""
    numbers = sorted(n for n, k in groups if k == kind)
    found = [spread(groups[n, kind], name) for n in numbers]
    mean, low, high = (
        np.array([getattr(one, at) for one in found]) for at in ("value", "low", "high")
    )
    low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    ax.fill_between(numbers, low, high, color=looks(kind)["color"], alpha=0.18, lw=0)
    ax.plot(numbers, mean, **looks(kind))
