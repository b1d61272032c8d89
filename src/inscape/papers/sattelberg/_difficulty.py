"""How often training succeeds on each of the 222 classes, by size and leak: the counts, the rules.

Rules take arrays whose last two axes are sizes and classes, so that they work on one table of
counts and on many redrawn ones alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Estimate
from inscape.lab.store import Record

Array = npt.NDArray[Any]
Size = tuple[int, int]

RELU, LEAKY = 0.0, 0.1
NAMES = {RELU: "ReLU", LEAKY: "leaky ReLU"}
#: Problems whose success rate is within this of the lowest are the hardest of a size (table 3.3).
WITHIN = 0.01
DRAWS = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class Counts:
    """Successes of one activation.

    Attributes:
        sizes: Width and depth of each row.
        successes: Networks that succeeded, one row for each size and one column for each class.
        trials: Networks that were tried for each.
    """

    sizes: tuple[Size, ...]
    successes: Array
    trials: int

    @property
    def rates(self) -> Array:
        """Return the share of networks that succeeded, for each size and class."""
        shares: Array = self.successes / self.trials
        return shares

    def at(self, *sizes: Size) -> Array:
        """Return the rates at some sizes, as many rows as there are of these."""
        return self.rates[[self.sizes.index(size) for size in sizes if size in self.sizes]]

    @cached_property
    def redrawn(self) -> Array:
        """Return counts as they might come out another time, ``DRAWS`` tables of them.

        Each probability is drawn from Jeffreys' beta law, and then as many trials with it.
        """
        rng = np.random.default_rng(0)
        shape = (DRAWS, *self.successes.shape)
        lost = self.trials - self.successes
        chances = rng.beta(self.successes + 0.5, lost + 0.5, size=shape)
        found: Array = rng.binomial(self.trials, chances)
        return found


def counted(records: Sequence[Record]) -> dict[float, Counts]:
    """Return the counts of each leak, sizes in rising order."""
    found = {}
    for leak in sorted({record.settings["leak"] for record in records}):
        some = [record for record in records if record.settings["leak"] == leak]
        some.sort(key=_size)
        found[float(leak)] = Counts(
            sizes=tuple(map(_size, some)),
            successes=np.stack([record.values["successes"] for record in some]).astype(np.int64),
            trials=some[0].settings["trials"],
        )
    return found


def _size(record: Record) -> Size:
    return record.settings["width"], record.settings["depth"]


def hardest(successes: Array, trials: int, within: float = WITHIN) -> Array:
    """Return at how many sizes each class is among the hardest: table 3.3's rule.

    Sizes at which every class is within the margin tell nothing and are left out.
    """
    lowest = successes.min(-1, keepdims=True)
    near = successes - lowest <= within * trials + 1e-9
    tells = ~near.all(-1, keepdims=True)
    found: Array = (near & tells).sum(-2)
    return found


def ranked(counts: Array, rates: Array) -> Array:
    """Return the classes from the hardest on: by count, then by mean success, lowest first."""
    return np.lexsort((rates.mean(0), -counts))


def rank(counts: Array, which: int) -> Array:
    """Return the place of a class by count; 1 where no other has more."""
    return np.asarray(1 + (counts > counts[..., which, None]).sum(-1))


def solving(successes: Array, sizes: Sequence[Size], *, depth: int) -> dict[int, Array]:
    """Return of each width at one depth whether every class was solved at least once."""
    return {
        width: np.asarray((successes[..., row, :] > 0).all(-1))
        for row, (width, deep) in enumerate(sizes)
        if deep == depth
    }


def first_width(successes: Array, sizes: Sequence[Size], *, depth: int = 1) -> Array:
    """Return the smallest width at one depth that solves every class; infinite if none does."""
    found = np.full(successes.shape[:-2], np.inf)
    for width, whole in sorted(solving(successes, sizes, depth=depth).items(), reverse=True):
        found = np.where(whole, float(width), found)
    return found


def smallest_width(counts: Counts) -> Array:
    """Return for each class the smallest width of one hidden layer that ever succeeded, or 0."""
    found = np.zeros(counts.successes.shape[-1], int)
    for (width, depth), row in reversed(list(zip(counts.sizes, counts.successes, strict=True))):
        if depth == 1:
            found = np.where(row > 0, width, found)
    return found


def redrawing(counts: Counts, statistic: Callable[[Array], Array]) -> Estimate:
    """Return a statistic of the counts, with the interval of counts redrawn."""
    value = float(statistic(counts.successes))
    drawn = np.asarray(statistic(counts.redrawn), dtype=float)
    low, high = np.quantile(drawn, [0.025, 0.975], method="nearest").tolist()
    finite = drawn[np.isfinite(drawn)]
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        se=float(finite.std()) if len(finite) else 0.0,
        n=counts.trials,
        method=f"{DRAWS} tables of counts redrawn from Jeffreys' beta laws",
        interval="resampled",
    )


def known(found: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    """Return those quantities that the records give."""
    return {name: one for name, one in found.items() if one is not None}
