"""Alignment: the units of one network in the order in which they are most like those of another."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import Result, Row, Summary
from inscape._core.result import CORRELATION, Range
from inscape.landscape._chain import Layer, State, called, chain

#: Rounds over all layers; each raises the likeness, and a handful is the rule.
ROUNDS = 100


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Alignment(Result):
    """For each hidden layer, which unit of the second network takes which place.

    ``likeness`` is the inner product of all weights and biases of both networks, as a share of
    the product of their norms: before and after.
    """

    range: ClassVar[Range] = CORRELATION

    orders: tuple[Int64[Tensor, " _"], ...]
    before: float
    similarity: float
    rounds: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each hidden layer."""
        for layer, order in enumerate(self.orders):
            moved = int((order != torch.arange(len(order))).sum())
            yield {"layer": layer, "units": len(order), "moved": moved}

    def summary(self) -> Summary:
        """Return the cosine of both vectors of parameters, after the alignment."""
        basis = f"{len(self.orders)} hidden layers, {self.rounds} rounds, before {self.before:.3g}"
        return Summary(value=self.similarity, kind="lower bound", basis=basis)


@torch.no_grad()
def aligned(
    model: nn.Module, start: State, stop: State, *, x: Float[Tensor, "n *d"] | None = None
) -> tuple[dict[str, Tensor], Alignment]:
    r"""Return ``stop`` with its hidden units in the order that makes it most like ``start``.

    .. math:: \max_{P_1, \ldots, P_{L-1}} \sum_l
              \langle W_l, P_l W'_l P_{l-1}^T \rangle + \langle b_l, P_l b'_l \rangle

    The function stays the same. Each layer in turn is ordered as is best while the others stay (a
    linear assignment), until nothing moves; the first pass goes from input to output and knows
    only what is below. A copy with its units in another order is found exactly, unless units are
    equal; else the answer is a local maximum (Ainsworth et al. 2023).

    Args:
        model: The architecture: an ``nn.Sequential``, or several in each other, of linear layers,
            elementwise activations, dropout and batch norm; with ``x`` any module in eval mode that
            calls linear layers one after the other. Others are refused.
        start: Parameters that stay.
        stop: Parameters whose units are put in order.
        x: A few points, by which it is seen in which order other modules call their layers, and
            that their units may change places.
    """
    layers = chain(model) if x is None else called(model, stop, x)
    state = {name: value.detach().clone() for name, value in stop.items()}
    before = similarity(start, state)
    orders = [torch.arange(len(state[layer.weight])) for layer in layers[:-1]]
    rounds = 0
    for rounds in range(1, ROUNDS + 1):
        moved = False
        for k, (layer, above) in enumerate(pairwise(layers)):
            order = _best(start, state, layer, above if rounds > 1 else None)
            if torch.equal(order, torch.arange(len(order))):
                continue
            moved = True
            orders[k] = orders[k][order]
            for name in (layer.weight, *layer.own()):
                state[name] = state[name][order.to(state[name].device)]
            state[above.weight] = state[above.weight][:, order.to(state[above.weight].device)]
        if not moved and rounds > 1:
            break
    found = Alignment(
        orders=tuple(orders), before=before, similarity=similarity(start, state), rounds=rounds
    )
    return state, found


def _best(start: State, stop: State, layer: Layer, above: Layer | None) -> Int64[Tensor, " units"]:
    """Return which unit of ``stop`` should take each place of a layer; as they are if none gain."""
    from scipy.optimize import linear_sum_assignment

    def both(name: str) -> tuple[Float64[Tensor, "u w"], Float64[Tensor, "u w"]]:
        one, two = (side[name].detach().double().cpu() for side in (start, stop))
        return one.reshape(len(one), -1), two.reshape(len(two), -1)

    one, two = both(layer.weight)
    gain = one @ two.T
    for name in layer.own():
        one, two = both(name)
        gain = gain + one @ two.T
    if above is not None:
        one, two = both(above.weight)
        gain = gain + one.T @ two
    places = torch.arange(len(gain))
    order = torch.from_numpy(linear_sum_assignment(gain.numpy(), maximize=True)[1]).long()
    better = float(gain[places, order].sum() - gain.diagonal().sum())
    return order if better > 1e-12 * float(gain.abs().sum()) else places


def similarity(start: State, stop: State) -> float:
    """Return the cosine of two vectors of all floating parameters."""
    names = [name for name, value in start.items() if value.is_floating_point()]
    one, two = (
        torch.cat([side[name].detach().double().flatten().cpu() for name in names])
        for side in (start, stop)
    )
    return float(one @ two / (one.norm() * two.norm()).clamp(min=1e-300))
