"""Where on a straight way of the weights the units of queries switch."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

#: Switches of deeper units in one step at most, and steps of the search for one of them.
ROUNDS = 100
HALVINGS = 60

#: Takes numbers of queries and a place for each, and returns what their units take there.
Signals = Callable[[Tensor, Tensor], Tensor]


class Kinks:
    """Places between 0 and 1, as many for each query as it has."""

    def __init__(self, queries: int, dtype: torch.dtype) -> None:
        ends = torch.tensor([[0.0, 1.0]], dtype=dtype)
        self._edges = ends.repeat(queries, 1)

    def straight(self, first: Float[Tensor, "q u"], change: Float[Tensor, "q u"]) -> None:
        """Add the places where units are zero that take ``first + t * change``."""
        t = -first / change
        self._add(torch.where((t > 0) & (t < 1), t, 1.0))

    def search(self, signals: Signals) -> None:
        """Add the places where units switch whose signals are no straight lines."""
        rows, count = len(self._edges), self._edges.shape[1] - 1
        query = torch.arange(rows).repeat_interleave(count)
        low, high = self._edges[:, :-1].flatten(), self._edges[:, 1:].flatten()
        found: list[tuple[Tensor, Tensor]] = []
        for _ in range(ROUNDS):
            one, two = (signals(query, t[:, None]) for t in (low, high))
            first, unit = _first_switch(one, two)
            still = first < 1
            if not bool(still.any()):
                break
            query, low, high, unit = query[still], low[still], high[still], unit[still]
            place = _root(signals, query, low, high, unit)
            found.append((query, place))
            query, low, high = query.repeat(2), torch.cat([low, place]), torch.cat([place, high])
        if found:
            self._add(
                _table(torch.cat([q for q, _ in found]), torch.cat([t for _, t in found]), rows)
            )

    def edges(self) -> Float[Tensor, "q e"]:
        """Return 0, the places of each query in order, and 1, once or more."""
        return self._edges

    def _add(self, places: Float[Tensor, "q m"]) -> None:
        ordered = torch.cat([self._edges, places], dim=1).sort(1).values
        most = int((ordered < 1).sum(1).max())
        self._edges = ordered[:, : most + 1]


def _table(query: Int64[Tensor, " k"], t: Float[Tensor, " k"], rows: int) -> Float[Tensor, "q m"]:
    """Return the places of each query in a row of its own, filled up with ones."""
    order = query.argsort(stable=True)
    query, t = query[order], t[order]
    counts = torch.bincount(query, minlength=rows)
    column = torch.arange(len(query)) - (counts.cumsum(0) - counts)[query]
    table = t.new_ones(rows, int(counts.max()))
    table[query, column] = t
    return table


def _root(
    signals: Signals, query: Tensor, low: Tensor, high: Tensor, unit: Tensor
) -> Float[Tensor, " q"]:
    """Return where one unit of each query is zero, by false position with halving."""

    def signal(t: Tensor) -> Tensor:
        return signals(query, t[:, None]).gather(1, unit[:, None]).squeeze(1)

    a, b = signal(low), signal(high)
    size = torch.maximum(a.abs(), b.abs())
    place = low
    for turn in range(HALVINGS):
        share = (a / (a - b)).nan_to_num(0.5).clamp(0, 1) if turn % 3 else torch.tensor(0.5)
        place = low + share * (high - low)
        value = signal(place)
        if bool((value.abs() <= 1e-15 * size).all()):
            break
        left = value * a > 0
        low, a = torch.where(left, place, low), torch.where(left, value, a)
        high, b = torch.where(left, high, place), torch.where(left, b, value)
    return place


def _first_switch(
    one: Float[Tensor, "q u"], two: Float[Tensor, "q u"]
) -> tuple[Float[Tensor, " q"], Int64[Tensor, " q"]]:
    """Return where on a straight line the first unit would switch (inf if none does), and which."""
    tiny = 1e-12 * torch.maximum(one.abs(), two.abs()).amax(1, keepdim=True)
    switches = (one * two < 0) & (one.abs() > tiny) & (two.abs() > tiny)
    return torch.where(switches, one / (one - two), torch.inf).min(1)
