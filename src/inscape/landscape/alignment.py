"""Alignment: the permutation of hidden units that makes two networks most similar."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import Result, Row, Summary
from inscape._core.result import CORRELATION, Range
from inscape.landscape._linear_chain import LinearLayer, State, chain, traced_chain

#: Most rounds over all layers; each raises the similarity, and a handful is usual.
ROUNDS = 100


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Alignment(Result):
    """Permutation of the second network's units, for each hidden layer.

    ``similarity`` is the cosine of both parameter vectors after the alignment, ``before`` that
    before it.
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
    r"""Return ``stop`` with its hidden units permuted to be most similar to ``start``.

    .. math:: \max_{P_1, \ldots, P_{L-1}} \sum_l
              \langle W_l, P_l W'_l P_{l-1}^T \rangle + \langle b_l, P_l b'_l \rangle

    The function stays the same. Each layer in turn is permuted optimally while the others are fixed
    (a linear assignment), until nothing changes; the first pass goes from input to output and uses
    incoming weights only. A permuted copy is recovered exactly, unless units are equal; else the
    result is a local maximum (Ainsworth et al. 2023).

    Args:
        model: The architecture: an ``nn.Sequential``, or several in each other, of linear layers,
            elementwise activations, dropout and batch norm; with ``x`` any module in eval mode that
            calls linear layers one after the other. Others raise an error.
        start: Parameters that are not changed.
        stop: Parameters whose units are permuted.
        x: A few points, for which other modules are traced and tested for permutation
            invariance.
    """
    layers = chain(model) if x is None else traced_chain(model, stop, x)
    state = {name: value.detach().clone() for name, value in stop.items()}
    before = similarity(start, state)
    orders = [torch.arange(len(state[layer.weight])) for layer in layers[:-1]]
    rounds = 0
    for rounds in range(1, ROUNDS + 1):
        changed = False
        for k, (layer, successor) in enumerate(pairwise(layers)):
            order = _best_permutation(start, state, layer, successor if rounds > 1 else None)
            if torch.equal(order, torch.arange(len(order))):
                continue
            changed = True
            orders[k] = orders[k][order]
            for name in (layer.weight, *layer.per_unit()):
                state[name] = state[name][order.to(state[name].device)]
            state[successor.weight] = state[successor.weight][
                :, order.to(state[successor.weight].device)
            ]
        if not changed and rounds > 1:
            break
    alignment = Alignment(
        orders=tuple(orders), before=before, similarity=similarity(start, state), rounds=rounds
    )
    return state, alignment


def _best_permutation(
    start: State, stop: State, layer: LinearLayer, successor: LinearLayer | None
) -> Int64[Tensor, " units"]:
    """Return the permutation of a layer of ``stop`` most similar to ``start``."""
    from scipy.optimize import linear_sum_assignment

    def flattened(name: str) -> tuple[Float64[Tensor, "u w"], Float64[Tensor, "u w"]]:
        first, second = (side[name].detach().double().cpu() for side in (start, stop))
        return first.reshape(len(first), -1), second.reshape(len(second), -1)

    first, second = flattened(layer.weight)
    gain = first @ second.T
    for name in layer.per_unit():
        first, second = flattened(name)
        gain = gain + first @ second.T
    if successor is not None:
        first, second = flattened(successor.weight)
        gain = gain + first.T @ second
    identity = torch.arange(len(gain))
    order = torch.from_numpy(linear_sum_assignment(gain.numpy(), maximize=True)[1]).long()
    improvement = float(gain[identity, order].sum() - gain.diagonal().sum())
    return order if improvement > 1e-12 * float(gain.abs().sum()) else identity


def similarity(start: State, stop: State) -> float:
    """Return the cosine of the vectors of all floating-point parameters."""
    names = [name for name, value in start.items() if value.is_floating_point()]
    first, second = (
        torch.cat([side[name].detach().double().flatten().cpu() for name in names])
        for side in (start, stop)
    )
    return float(first @ second / (first.norm() * second.norm()).clamp(min=1e-300))
