"""Mutations of a claim's numbers: a claim that still holds without its effect says nothing.

Three mutations, the same for all claims of a kind: the value is moved by two margins each way, the
effect is set to nothing (or, where its absence is the claim, two margins of it are added), and the
labels of the groups are permuted. A claim may stay reproduced in none of the first two, and in at
most 5% of the permutations.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.result import student
from inscape.lab.encoding import canonical
from inscape.lab.equivalence import margin_of
from inscape.lab.experiment import Claim, Estimate, Trend, Value
from inscape.lab.margins import margin
from inscape.lab.records import Record, Records, in_view
from inscape.lab.verdict import FEWEST, verdict_on

DRAWS = 200
#: So many permutations may leave a claim reproduced.
ALLOWED = 0.05
#: With up to so many units all signs are tried.
ALL_SIGNS = 7
#: Intervals of means over units, whose signs may be turned.
OF_MEANS = ("t", "studentised", "percentile")


def survived(claim: Claim, ours: Estimate) -> list[str]:
    """Return the mutations that leave a claim reproduced which is reproduced now.

    Args:
        claim: The claim.
        ours: What the records give for it.
    """
    if not _reproduced(claim, ours):
        return []
    names = []
    for name, mutants in (("moved", moved(claim, ours)), ("null", without_effect(claim, ours))):
        if any(_reproduced(claim, mutant) for mutant in mutants):
            names.append(name)
    if isinstance(claim, Trend) and share_of_sign_flips(claim, ours) > ALLOWED:
        names.append("permuted")
    return names


def moved(claim: Claim, ours: Estimate) -> Iterator[Estimate]:
    """Yield the estimate moved by two margins: each way, or to the wrong side of a bound."""
    if isinstance(claim, Value):
        for sign in (-2.0, 2.0):
            by = sign * margin_of(claim, exact=ours.exact)
            if claim.tolerance is None and claim.kind == "heavy-tailed" and not ours.exact:
                yield scaled(ours, math.exp(by))
            elif by:
                yield shifted(ours, by)
    elif claim.side == "between":
        assert claim.upper is not None  # checked when the claim was made
        for sign in (-1.0, 1.0):
            yield shifted(ours, sign * (claim.upper - claim.bound))
    else:
        away = -2.0 if claim.side == "above" else 2.0
        yield placed(ours, claim.bound + away * margin(claim.kind, claim.bound or 1.0, of=100))


def without_effect(claim: Claim, ours: Estimate) -> Iterator[Estimate]:
    """Yield the estimate at the value that it has without the effect.

    A claim of absence, whose null lies on the claimed side by its own words, gets an effect of two
    margins instead: the margin is then how far the bound is from the null.
    """
    null = claim.null
    if isinstance(claim, Value):
        if null is not None:
            yield placed(ours, null)
        return
    if null is not None:
        yield placed(ours, null)
        return
    ends = (claim.bound, math.inf) if claim.side == "above" else (-math.inf, claim.bound)
    if claim.side == "between":
        assert claim.upper is not None  # checked when the claim was made
        ends = (claim.bound, claim.upper)
    if not ends[0] < 0 < ends[1]:
        yield placed(ours, 0.0)
        return
    for end in ends:
        if math.isfinite(end):
            yield placed(ours, 2 * end)


def share_of_sign_flips(claim: Trend, ours: Estimate, seed: int = 0) -> float:
    """Return the share of permutations of two labels within pairs that leave a trend reproduced.

    Two groups that change places within a unit turn its difference about the null; all ways of
    turning are tried for few units, and ``DRAWS`` of them for many.

    Args:
        claim: The trend, of the mean of the units.
        ours: Its estimate; without units nothing is permuted.
        seed: Seed of the draws.
    """
    few = len(ours.units) < FEWEST["t"]
    if ours.exact or few or ours.interval not in OF_MEANS or absent(claim):
        return 0.0
    units = np.asarray(ours.units)
    null, n = claim.null or 0.0, len(ours.units)
    if n <= ALL_SIGNS:
        signs = np.array(list(product((-1.0, 1.0), repeat=n)))
    else:
        signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(DRAWS, n))
    turned = null + signs * (units - null)
    mean, half = turned.mean(1), student(n) * turned.std(1, ddof=1) / math.sqrt(n)
    low, high = mean - half, mean + half
    if claim.side == "above":
        return float((low > claim.bound).mean())
    return float((high < claim.bound).mean())


def absent(claim: Trend) -> bool:
    """Tell whether a claim is one of absence: its null lies on the claimed side."""
    null = claim.null or 0.0
    if claim.side == "between":
        return True
    return null > claim.bound if claim.side == "above" else null < claim.bound


def shares_of_permutations(
    claims: Sequence[Claim],
    records: Sequence[Record],
    analyse: Callable[[Records], Mapping[str, Estimate]],
    effect: str,
    levels: Collection[Any] = (),
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, float]:
    """Return, for each claim, the share of permutations of its setting that leave it reproduced.

    Args:
        claims: Claims about one setting.
        records: The records.
        analyse: The analysis of their experiment.
        effect: The setting.
        levels: Its values that are compared, whose records change places; all by default.
        draws: How many permutations are tried.
        seed: Seed of the permutations.
    """
    rng = np.random.default_rng(seed)
    left = dict.fromkeys((claim.name for claim in claims), 0)
    for _ in range(draws):
        quantities = analyse(in_view(permuted(records, effect, rng, levels)))
        for claim in claims:
            ours = quantities.get(claim.of)
            left[claim.name] += ours is not None and _reproduced(claim, ours)
    return {name: count / draws for name, count in left.items()}


def permuted(
    records: Sequence[Record],
    effect: str,
    rng: np.random.Generator,
    levels: Collection[Any] = (),
) -> list[Record]:
    """Return records whose values of one setting changed places, all others held.

    Args:
        records: The records.
        effect: The setting.
        rng: Where the permutation is drawn from.
        levels: Values of the setting whose records change places; all by default.
    """
    groups: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        if levels and record.settings[effect] not in levels:
            continue
        others = {name: value for name, value in record.settings.items() if name != effect}
        groups.setdefault(canonical(others), []).append(index)
    turned = list(records)
    for members in groups.values():
        for index, other in zip(members, rng.permutation(members).tolist(), strict=True):
            values: Mapping[str, Any] = records[other].values
            turned[index] = replace(records[index], values=values)
    return turned


def shifted(ours: Estimate, by: float) -> Estimate:
    """Return an estimate moved as a whole."""
    return _of_ends(ours, lambda number: number + by)


def scaled(ours: Estimate, factor: float) -> Estimate:
    """Return an estimate multiplied as a whole."""
    return replace(_of_ends(ours, lambda number: number * factor), se=ours.se * factor)


def placed(ours: Estimate, value: float) -> Estimate:
    """Return an estimate moved to a value, its interval with it."""
    return shifted(ours, value - ours.value)


def _of_ends(ours: Estimate, change: Callable[[float], float]) -> Estimate:
    value, low, high = (change(number) for number in (ours.value, ours.low, ours.high))
    units: npt.NDArray[Any] = np.array([change(unit) for unit in ours.units])
    return replace(ours, value=value, low=low, high=high, units=tuple(units.tolist()))


def _reproduced(claim: Claim, ours: Estimate) -> bool:
    return verdict_on(claim, ours) == "reproduced"
