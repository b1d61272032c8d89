"""How well one number of each function goes with its success: correlations with intervals.

Functions are drawn with replacement, all that is known of one together.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Estimate

Array = npt.NDArray[Any]

DRAWS = 1000


def rolls(n: int, draws: int = DRAWS, seed: int = 0) -> Array:
    """Return which of ``n`` functions are in each draw."""
    return np.random.default_rng(seed).integers(n, size=(draws, n))


def spearman(x: Array, y: Array) -> Array:
    """Return Spearman's correlation along the last axis; NaN where one side is constant."""
    from scipy.stats import rankdata

    ranks = [np.asarray(rankdata(side, axis=-1)) for side in (x, y)]
    a, b = (side - side.mean(-1, keepdims=True) for side in ranks)
    size = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    with np.errstate(invalid="ignore"):
        found: Array = np.where(size > 0, (a * b).sum(-1) / size, np.nan)
    return found


def rank_correlation(x: Array, y: Array) -> Estimate | None:
    """Return Spearman's correlation of two numbers of each function; None where it is none."""
    drawn = rolls(len(x))
    return estimate(float(spearman(x, y)), spearman(x[drawn], y[drawn]), len(x))


def kendall_correlation(x: Array, y: Array) -> Estimate | None:
    """Return Kendall's tau of two numbers of each function; fewer draws, since each is slow."""
    from scipy.stats import kendalltau

    drawn = rolls(len(x), draws=200)
    taus = [float(kendalltau(x[draw], y[draw]).statistic) for draw in drawn]
    return estimate(float(kendalltau(x, y).statistic), np.array(taus), len(x))


def explaining_best(name: str, metrics: Mapping[str, Array], y: Array) -> Estimate | None:
    """Return the size of one metric's correlation, less the largest of the others'."""
    drawn = rolls(len(y))
    whole = {key: abs(spearman(x, y)) for key, x in metrics.items()}
    parts = {key: np.abs(spearman(x[drawn], y[drawn])) for key, x in metrics.items()}
    ahead = [
        one[name] - np.max([np.nan_to_num(v) for k, v in one.items() if k != name], axis=0)
        for one in (whole, parts)
    ]
    return estimate(float(ahead[0]), ahead[1], len(y))


def estimate(value: float, drawn: Array, n: int) -> Estimate | None:
    """Return a number with the percentiles of its draws; None where it is not a number."""
    good = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or 2 * len(good) < len(drawn):
        return None
    low, high = np.quantile(good, [0.025, 0.975]).tolist()
    return Estimate(
        value=value,
        low=low,
        high=high,
        se=float(good.std(ddof=1)),
        n=n,
        method=f"bootstrap over {n} functions, {len(drawn):,} draws",
        interval="percentile",
    )
