"""How much of a number can be predicted from metrics: least squares, judged out of fold."""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Estimate
from inscape.papers.sattelberg._npn_metrics import METRICS

Array = npt.NDArray[Any]

FOLDS = 10
#: Functions of four inputs up to symmetry, those that are drawn.
CLASSES = 222
REPEATS = 20

#: A share for all functions, and one for each draw of them.
Shares = tuple[float, Array]


def sets(values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns of each set of predictors."""
    four = [values[name] for name in METRICS]
    return {
        **{name: columns([values[name]]) for name in METRICS},
        "all": columns(four),
        "more": columns([*four, values["imbalance"]]),
    }


def columns(values: Sequence[Array]) -> Array:
    """Return a constant, the standardised values, and all their squares and products."""
    scaled = [_standard(value.astype(float)) for value in values]
    pairs = [a * b for a, b in combinations_with_replacement(scaled, 2)]
    return np.column_stack([np.ones(len(scaled[0])), *scaled, *pairs])


def _standard(value: Array) -> Array:
    spread = value.std()
    found: Array = (value - value.mean()) / (spread if spread > 0 else 1.0)
    return found


def shares_explained(x: Array, y: Array, drawn: Array, seed: int = 0) -> Shares:
    """Return the share of the variance of ``y`` that is predicted, for all and for each draw.

    A function that is drawn twice is in one fold with its copy, or it would predict itself.
    """
    rng = np.random.default_rng(seed)
    whole = np.mean([explained(x, y, _folds(len(y), rng)) for _ in range(REPEATS)])
    parts = []
    for draw in drawn:
        folds = _folds(len(y), rng)[draw]
        parts.append(explained(x[draw], y[draw], folds))
    return float(whole), np.array(parts)


def _folds(n: int, rng: np.random.Generator) -> Array:
    return rng.permutation(np.arange(n) % FOLDS)


def explained(x: Array, y: Array, folds: Array) -> float:
    """Return 1 minus the squared error out of fold over the squared distance from the mean.

    >>> x = columns([np.arange(50.0)])
    >>> round(explained(x, np.arange(50.0) ** 2, np.arange(50) % 10), 9)
    1.0
    """
    out = (folds == np.arange(FOLDS)[:, None]).astype(float)
    squares = x.T @ x - (out[:, :, None] * x).swapaxes(1, 2) @ x
    sums = x.T @ y - out @ (x * y[:, None])
    small = 1e-9 * len(y) * np.eye(x.shape[1])  # lets columns depend on each other
    fitted = np.linalg.solve(squares + small, sums[..., None])[..., 0]
    errors = y - (x * fitted[folds]).sum(1)
    return float(1 - (errors**2).sum() / ((y - y.mean()) ** 2).sum())


def with_interval(value: float, drawn: Array) -> Estimate:
    """Return a share with the percentiles of its draws."""
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        se=float(drawn.std(ddof=1)),
        n=CLASSES,
        method=f"bootstrap over classes, {len(drawn)} draws",
        interval="percentile",
    )


def lead(first: Shares, others: Sequence[Shares]) -> Estimate:
    """Return by how much one share is above the largest of the others."""
    value = first[0] - max(other[0] for other in others)
    return with_interval(value, first[1] - np.max([other[1] for other in others], axis=0))
