"""From counts of successes to the law of "initialisations until the first success"."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Estimate
from inscape.lab.statistics import bootstrap_estimate, kendall_tau, proportion_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._sine import POINTS

Size = tuple[int, int]  # width, depth

MOST = 1000
#: Table 5.1: rows are widths, columns depths; None is more than 1000.
PRINTED: tuple[tuple[int | None, ...], ...] = (
    (1, 1, 3, 4, 1, 18, 51, 333, None, None),
    (1, 1, 1, 2, 1, 3, 14, 54, 39, 392),
    (1, 1, 1, 1, 1, 5, 2, 13, 7, 502),
    (1, 1, 1, 1, 1, 2, 2, 33, 76, None),
    (1, 1, 1, 1, 1, 1, 2, 6, 50, 599),
    (1, 1, 1, 1, 1, 1, 2, 6, 70, 112),
    (1, 1, 1, 1, 1, 1, 3, 9, 55, 444),
    (1, 1, 1, 1, 1, 1, 1, 3, 2, 428),
    (1, 1, 1, 1, 1, 1, 1, 1, 30, None),
    (1, 1, 1, 1, 1, 1, 1, 5, 91, 171),
)
SHALLOW, DEEP = range(1, 6), range(6, 11)


def printed(width: int, depth: int) -> int | None:
    """Return the printed count of a size."""
    return PRINTED[width - 1][depth - 1]


def printed_level(depth: int) -> float:
    """Return the mean of log10 of the printed counts over widths; more than 1000 is 1000."""
    logs = [np.log10(printed(width, depth) or MOST) for width in range(1, 11)]
    return round(float(np.mean(logs)), 3)  # claims are hashed: no digit may depend on a machine


def printed_probability(depths: Sequence[int]) -> float:
    """Return the likeliest probability of success if it were the same for all these sizes."""
    counts = [printed(width, depth) for width in range(1, 11) for depth in depths]
    found = sum(count is not None for count in counts)
    return round(found / sum(count or MOST for count in counts), 3)


def beyond(successes: int, trials: int, count: int) -> float:
    r"""Return the probability that more than ``count`` initialisations are needed.

    The probability of success is unknown; its law after so many successes is Jeffreys' beta law
    :math:`B(a, b)`, so this is :math:`E[(1 - p)^{count}] = B(a, b + count) / B(a, b)`.
    """
    from scipy.special import betaln

    a, b = successes + 0.5, trials - successes + 0.5
    return float(np.exp(betaln(a, b + count) - betaln(a, b)))


def fits(successes: int, trials: int, count: int | None) -> bool:
    """Tell whether a printed count lies in the central 95% of its law."""
    if count is None:
        return beyond(successes, trials, MOST) > 0.025
    most, least = beyond(successes, trials, count - 1), 1 - beyond(successes, trials, count)
    return min(most, least) > 0.025


def level(p: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the mean of log10 of the count for each probability; more than 1000 is 1000."""
    tries = np.arange(1, MOST)
    q = 1 - np.asarray(p, dtype=float)[..., None]
    soon = (np.log10(tries) * (1 - q) * q ** (tries - 1)).sum(-1)
    found: npt.NDArray[Any] = soon + np.log10(MOST) * q[..., 0] ** (MOST - 1)
    return found


def counted(records: Sequence[Record], batch: int = POINTS) -> dict[Size, tuple[int, int]]:
    """Return successes and trials of every size at one batch size."""
    return {
        (record.settings["width"], record.settings["depth"]): (
            record.values["successes"],
            record.settings["trials"],
        )
        for record in records
        if record.settings["batch"] == batch
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return levels by depth, the trends, and how many printed counts fit their law."""
    sizes = counted(records)
    found: dict[str, Estimate] = {}
    if not sizes:
        return found
    for depth in sorted({depth for _, depth in sizes}):
        found[f"level/{depth}"] = _level(sizes, depth)
    found["shallow"] = _shallow(sizes)
    found["fitting"] = share_fitting(sizes)
    found["with depth"] = _trend(sizes, along=1)
    found["with width"] = _trend({k: v for k, v in sizes.items() if k[1] >= min(DEEP)}, along=0)
    found["constant"] = _constant(records)
    return {name: one for name, one in found.items() if np.isfinite(one.value)}


def share_fitting(sizes: Mapping[Size, tuple[int, int]]) -> Estimate:
    """Return the share of printed counts inside the central 95% of their laws, with Wilson's."""
    good = sum(fits(*counts, printed(*size)) for size, counts in sizes.items())
    return proportion_estimate(good, len(sizes), over="sizes")


def _draws(successes: int, trials: int) -> npt.NDArray[Any]:
    rng = np.random.default_rng([successes, trials])
    return rng.beta(successes + 0.5, trials - successes + 0.5, size=1000)


def _from_draws(value: float, drawn: npt.NDArray[Any], n: int) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return Estimate(
        value=value,
        low=low,
        high=high,
        se=float(drawn.std(ddof=1)),
        n=n,
        method="draws from Jeffreys' beta law of each probability",
        interval="binomial",
    )


def _level(sizes: Mapping[Size, tuple[int, int]], depth: int) -> Estimate:
    """Return the mean over widths of the expected log10 of the count."""
    some = [counts for (_, d), counts in sizes.items() if d == depth]
    drawn = np.mean([level(_draws(*counts)) for counts in some], axis=0)
    return _from_draws(float(drawn.mean()), drawn, len(some))


def _shallow(sizes: Mapping[Size, tuple[int, int]]) -> Estimate:
    """Return the probability that one would read from expected counts at depths 1 to 5."""
    some = [counts for (_, depth), counts in sizes.items() if depth in SHALLOW]
    drawn = 1 / np.mean([1 / _draws(*counts) for counts in some], axis=0)
    return _from_draws(float(drawn.mean()), drawn, len(some))


def _trend(sizes: Mapping[Size, tuple[int, int]], *, along: int) -> Estimate:
    """Return tau of the share of successes along width (0) or depth (1), mean over the other."""
    lines: dict[int, list[tuple[int, float]]] = {}
    for size, (successes, trials) in sizes.items():
        lines.setdefault(size[1 - along], []).append((size[along], successes / trials))
    taus = [kendall_tau(*zip(*pairs, strict=True)) for pairs in lines.values()]
    known = [tau for tau in taus if np.isfinite(tau)]
    return bootstrap_estimate(known or [float("nan")])


def _constant(records: Sequence[Record]) -> Estimate:
    """Return the share of failures that were constant functions before training, over sizes."""
    pairs = [
        (record.values["failed_constant_at_start"], failures)
        for record in records
        if record.settings["batch"] == POINTS
        and (failures := record.settings["trials"] - record.values["successes"])
    ]
    if not pairs:
        return bootstrap_estimate([float("nan")])
    return bootstrap_estimate(pairs, lambda some: sum(a for a, _ in some) / sum(b for _, b in some))
