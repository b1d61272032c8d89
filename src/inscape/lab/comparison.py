"""Two networks, or one number of many networks beside another: differences and rank correlation.

Each interval is one of 95%, and ``Estimate.method`` says how it was made.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.result import Z95
from inscape.lab.experiment import Estimate
from inscape.lab.statistics import Numbers, kendall_tau, paired_difference

#: Draws of the bootstrap behind the interval of a rank correlation.
DRAWS = 2000
#: Networks without which a rank correlation has no interval.
FEWEST = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkQuantity:
    """A number of one network, with its interval and, where it is a mean, its samples.

    ``sampling`` says which samples they are: two quantities with the same one belong in pairs.
    What is ``exact`` has nothing random in it.
    """

    value: float
    low: float | None = None
    high: float | None = None
    samples: npt.NDArray[Any] | None = None
    sampling: str = ""
    exact: bool = False


def difference(a: NetworkQuantity, b: NetworkQuantity) -> Estimate:
    """Return ``a - b`` with the interval that the two quantities allow.

    Sample by sample where both keep values of the same samples; by Welch's test where the samples
    differ; from both intervals where there are no samples; without an interval where one has none.
    """
    if a.samples is not None and b.samples is not None:
        if a.sampling == b.sampling and len(a.samples) == len(b.samples):
            both = np.concatenate([a.samples, b.samples])
            binary = bool(np.isin(both, (0, 1)).all())
            return (paired_fractions if binary else paired_difference)(a.samples, b.samples)
        return welch_difference(a.samples, b.samples)
    return _from_intervals(a, b)


def paired_fractions(a: Numbers, b: Numbers) -> Estimate:
    r"""Return the difference of two fractions of the same samples, which are 0 or 1 in each.

    .. math:: \tilde p_{10} - \tilde p_{01} \pm z \sqrt{(\tilde p_{10} + \tilde p_{01} -
              (\tilde p_{10} - \tilde p_{01})^2) / (n + 2)}, \quad
              \tilde p_{ij} = (n_{ij} + 1) / (n + 2)

    The adjusted Wald interval of Bonett and Price (2012): it does not vanish where no sample
    differs.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    n = len(first)
    up, down = ((int((first > second).sum()) + 1), (int((first < second).sum()) + 1))
    middle = (up - down) / (n + 2)
    se = math.sqrt(((up + down) / (n + 2) - middle**2) / (n + 2))
    value = float(first.mean() - second.mean())
    low, high = min(value, middle - Z95 * se), max(value, middle + Z95 * se)
    return Estimate(
        value=value, low=max(low, -1.0), high=min(high, 1.0), se=se, n=n,
        method=f"paired, adjusted Wald interval over {n} samples",
    )  # fmt: skip


def welch_difference(a: Numbers, b: Numbers) -> Estimate:
    """Return the difference of the means of two independent sets of samples (Welch's interval)."""
    from scipy.stats import t

    sides = [np.asarray(side, dtype=float) for side in (a, b)]
    value, n = float(sides[0].mean() - sides[1].mean()), min(map(len, sides))
    if n < 2:
        return _alone(value, n, "one sample has no interval")
    squares = [float(side.var(ddof=1)) / len(side) for side in sides]
    se = math.sqrt(sum(squares))
    if se == 0:
        return _alone(value, n, "all samples are equal: no interval")
    freedom = se**4 / sum(s**2 / (len(x) - 1) for s, x in zip(squares, sides, strict=True))
    half = float(t.ppf(0.975, freedom)) * se
    method = f"unpaired, Welch's interval over {len(sides[0])} and {len(sides[1])} samples"
    return Estimate(value=value, low=value - half, high=value + half, se=se, n=n, method=method)


def _from_intervals(a: NetworkQuantity, b: NetworkQuantity) -> Estimate:
    r"""Return a difference with the interval that both intervals give, as if independent.

    .. math:: a - b - \sqrt{(a - l_a)^2 + (u_b - b)^2}, \quad
              a - b + \sqrt{(u_a - a)^2 + (b - l_b)^2}

    The method of variance estimates recovery (Zou and Donner, 2008), which keeps lopsided
    intervals lopsided.
    """
    value = a.value - b.value
    if a.exact and b.exact:
        return Estimate(value=value, low=value, high=value, se=0.0, n=0, exact=True,
                        method="exact: both numbers are")  # fmt: skip
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return _alone(value, 0, "no interval: at least one number has none")
    low = value - math.hypot(a.value - a.low, b.high - b.value)
    high = value + math.hypot(a.high - a.value, b.value - b.low)
    method = "unpaired, from both intervals"
    return Estimate(value=value, low=low, high=high, se=(high - low) / 2 / Z95, n=0, method=method)


def _alone(value: float, n: int, method: str) -> Estimate:
    nan = math.nan
    return Estimate(value=value, low=nan, high=nan, se=nan, n=n, method=method)


def rank_correlation(x: Numbers, y: Numbers, *, seed: int = 0) -> Estimate:
    r"""Return Kendall's :math:`\tau_b` of two numbers of each network, with an interval.

    The interval is that between percentiles of a bootstrap over networks. Where all networks are
    in one order no bootstrap sample would differ: then the bound is exact, of 95% on one side,
    from the :math:`m = \lfloor n / 2 \rfloor` disjoint pairs of networks, each of which agrees
    with probability :math:`(1 + \tau) / 2`: :math:`\tau \geq 2 \cdot 0.05^{1/m} - 1`.

    Args:
        x: One number for each network.
        y: Another.
        seed: Seed of the bootstrap.
    """
    first, second = (np.asarray(side, dtype=float) for side in (x, y))
    tau, n = kendall_tau(first, second), len(first)
    if math.isnan(tau):
        why = "one side is the same for all" if n > 1 else "one network has no order"
        return _alone(math.nan, n, f"no correlation: {why}")
    if n < FEWEST:
        return _alone(tau, n, f"no interval: {n} networks are too few, {FEWEST} are needed")
    if abs(tau) == 1:
        end = 2 * 0.05 ** (1 / (n // 2)) - 1
        low, high = (end, 1.0) if tau > 0 else (-1.0, -end)
        method = f"all {n} networks in one order: exact one-sided bound from {n // 2} pairs"
        return Estimate(value=tau, low=low, high=high, se=math.nan, n=n, method=method)
    drawn = _drawn_taus(first, second, seed)
    good = drawn[np.isfinite(drawn)]
    low, high = np.quantile(good, [0.025, 0.975]).tolist()
    return Estimate(
        value=tau, low=min(low, tau), high=max(high, tau), se=float(good.std(ddof=1)), n=n,
        method=f"bootstrap over {n} networks, {DRAWS:,} draws",
    )  # fmt: skip


def _drawn_taus(x: npt.NDArray[Any], y: npt.NDArray[Any], seed: int) -> npt.NDArray[Any]:
    r"""Return :math:`\tau_b` of so many draws of networks, NaN where one side is constant.

    A draw that takes each network :math:`w_i` times has
    :math:`\tau_b = w^T S w / \sqrt{w^T |X| w \; w^T |Y| w}` with the signs :math:`X, Y` of all
    differences and their product :math:`S`.
    """
    n = len(x)
    rolls = np.random.default_rng(seed).integers(n, size=(DRAWS, n))
    weights = np.apply_along_axis(np.bincount, 1, rolls, minlength=n).astype(float)
    signs = [np.sign(side[:, None] - side[None, :]) for side in (x, y)]
    same, *untied = (
        ((weights @ matrix) * weights).sum(1) for matrix in (signs[0] * signs[1], *map(abs, signs))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(same / np.sqrt(untied[0] * untied[1]))


def independence_p(x: Numbers, y: Numbers) -> float:
    """Return the p-value of two sides without rank correlation: exact without ties (Kendall)."""
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).pvalue)
