"""Every random draw: a seed is data, a generator is private, the global state stays untouched."""

from collections.abc import Iterator
from itertools import pairwise

import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor

from inscape._core import checks
from inscape._core.anytime import stoppable

#: Samples of a first answer at most, where the caller may stop.
FIRST = 8


def generator(seed: int) -> torch.Generator:
    """Return a private generator; the same seed gives the same draws on every device."""
    checks.seed(seed)
    return torch.Generator(device="cpu").manual_seed(int(seed))


def draw_pairs(
    x: Float[Tensor, "n *d"], pairs: int, *, seed: int
) -> tuple[Float[Tensor, "pairs *d"], Float[Tensor, "pairs *d"]]:
    """Draw both ends of ``pairs`` chords from the rows of ``x``, independently, with replacement.

    A point may be paired with itself, as in the double sum of Volhejn's eq. (3.5).
    """
    first, second = draw_pair_numbers(len(x), pairs, seed=seed).to(x.device)
    return x[first], x[second]


def draw_pair_numbers(n: int, pairs: int, *, seed: int) -> Int64[Tensor, "2 pairs"]:
    """Return the row numbers of both ends of ``pairs`` chords; more pairs extend fewer."""
    return torch.randint(n, (pairs, 2), generator=generator(seed)).T


def draw_rows(x: Float[Tensor, "n *d"], rows: int, *, seed: int) -> Float[Tensor, "m *d"]:
    """Draw ``rows`` distinct rows of ``x``, or all of them in their order if there are no more."""
    checks.seed(seed)
    if rows >= len(x):
        return x
    return x[torch.randperm(len(x), generator=generator(seed))[:rows].to(x.device)]


def draw_numbers(n: int, rows: int, *, seed: int) -> Int64[Tensor, " m"]:
    """Return the numbers of ``rows`` distinct rows of ``n`` in random order; more extend fewer."""
    return torch.randperm(n, generator=generator(seed))[:rows]


class Draw:
    """Rows drawn without replacement, some at a time; a longer draw extends a shorter one.

    Where all rows are wanted and nobody can stop on the way, their own order will do, and nothing
    is copied; unless ``shuffled`` asks for random order, since something else is drawn for each.
    """

    def __init__(self, n: int, rows: int, *, seed: int, shuffled: bool = False) -> None:
        checks.seed(seed)
        self._n = n
        own = rows >= n and not (stoppable() or shuffled)
        self._order = None if own else draw_numbers(n, rows, seed=seed)

    def __len__(self) -> int:
        return self._n if self._order is None else len(self._order)

    def parts(self, rows: int) -> Iterator[slice | Int64[Tensor, " m"]]:
        """Yield what picks the next rows out of a tensor, at most ``rows`` of them, evenly."""
        count = -(-len(self) // rows)
        ends = [k * len(self) // count for k in range(count + 1)]
        for start, stop in pairwise(ends):
            yield slice(start, stop) if self._order is None else self._order[start:stop]

    def growing(self, first: int, rows: int) -> Iterator[slice | Int64[Tensor, " m"]]:
        """Yield what picks the next rows: few at first, then ever more, if the caller may stop."""
        if not stoppable():
            yield from self.parts(rows)
            return
        start, size = 0, min(first, rows)
        while start < len(self):
            stop = min(start + size, len(self))
            yield slice(start, stop) if self._order is None else self._order[start:stop]
            start, size = stop, min(2 * size, rows)

    def in_order(self, values: Shaped[Tensor, "m *k"]) -> Shaped[Tensor, "m *k"]:
        """Return values in the order of the rows once all are there, else as they were drawn."""
        if self._order is None or len(values) < self._n:
            return values
        return values[self._order.argsort().to(values.device)]
