"""Kinks along a segment of the weights: where pre-activations of queries change sign."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

#: Most breakpoints of deeper units in one step, and iterations of the root search.
ROUNDS = 100
HALVINGS = 60

#: Maps indices of queries and a point t for each to their pre-activations.
PreActivations = Callable[[Tensor, Tensor], Tensor]


class Kinks:
    """Breakpoints t in [0, 1] of each query."""

    def __init__(self, queries: int, dtype: torch.dtype) -> None:
        ends = torch.tensor([[0.0, 1.0]], dtype=dtype)
        self._breakpoints = ends.repeat(queries, 1)

    def add_affine(self, first: Float[Tensor, "q u"], change: Float[Tensor, "q u"]) -> None:
        """Add the roots of pre-activations ``first + t * change``."""
        t = -first / change
        self._add(torch.where((t > 0) & (t < 1), t, 1.0))

    def add_nonlinear(self, pre_activations: PreActivations) -> None:
        """Add the roots of pre-activations that are not affine in t."""
        queries, count = len(self._breakpoints), self._breakpoints.shape[1] - 1
        query = torch.arange(queries).repeat_interleave(count)
        low, high = self._breakpoints[:, :-1].flatten(), self._breakpoints[:, 1:].flatten()
        roots: list[tuple[Tensor, Tensor]] = []
        for _ in range(ROUNDS):
            at_low, at_high = (pre_activations(query, t[:, None]) for t in (low, high))
            first, unit = _first_switch(at_low, at_high)
            switches = first < 1
            if not bool(switches.any()):
                break
            query, low, high, unit = query[switches], low[switches], high[switches], unit[switches]
            root = _root(pre_activations, query, low, high, unit)
            roots.append((query, root))
            query, low, high = query.repeat(2), torch.cat([low, root]), torch.cat([root, high])
        if roots:
            self._add(
                _padded(torch.cat([q for q, _ in roots]), torch.cat([t for _, t in roots]), queries)
            )

    def breakpoints(self) -> Float[Tensor, "q e"]:
        """Return 0, the breakpoints of each query in order, and 1, padded with ones."""
        return self._breakpoints

    def _add(self, places: Float[Tensor, "q m"]) -> None:
        ordered = torch.cat([self._breakpoints, places], dim=1).sort(1).values
        most = int((ordered < 1).sum(1).max())
        self._breakpoints = ordered[:, : most + 1]


def _padded(
    query: Int64[Tensor, " k"], t: Float[Tensor, " k"], queries: int
) -> Float[Tensor, "q m"]:
    """Return the roots as one row per query, padded with ones."""
    order = query.argsort(stable=True)
    query, t = query[order], t[order]
    counts = torch.bincount(query, minlength=queries)
    column = torch.arange(len(query)) - (counts.cumsum(0) - counts)[query]
    table = t.new_ones(queries, int(counts.max()))
    table[query, column] = t
    return table


def _root(
    pre_activations: PreActivations, query: Tensor, low: Tensor, high: Tensor, unit: Tensor
) -> Float[Tensor, " q"]:
    """Return the root of one unit of each query, by false position with bisection."""

    def signal(t: Tensor) -> Tensor:
        return pre_activations(query, t[:, None]).gather(1, unit[:, None]).squeeze(1)

    a, b = signal(low), signal(high)
    scale = torch.maximum(a.abs(), b.abs())
    root = low
    for turn in range(HALVINGS):
        fraction = (a / (a - b)).nan_to_num(0.5).clamp(0, 1) if turn % 3 else torch.tensor(0.5)
        root = low + fraction * (high - low)
        value = signal(root)
        if bool((value.abs() <= 1e-15 * scale).all()):
            break
        same_side = value * a > 0
        low, a = torch.where(same_side, root, low), torch.where(same_side, value, a)
        high, b = torch.where(same_side, high, root), torch.where(same_side, b, value)
    return root


def _first_switch(
    first: Float[Tensor, "q u"], second: Float[Tensor, "q u"]
) -> tuple[Float[Tensor, " q"], Int64[Tensor, " q"]]:
    """Return the first root by linear interpolation (inf if none), and its unit."""
    threshold = 1e-12 * torch.maximum(first.abs(), second.abs()).amax(1, keepdim=True)
    switches = (first * second < 0) & (first.abs() > threshold) & (second.abs() > threshold)
    return torch.where(switches, first / (first - second), torch.inf).min(1)
