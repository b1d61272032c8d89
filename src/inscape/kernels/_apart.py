"""Which maps of a module take point by point, so that their gradients have a short form.

A map does if the first axis of what it gives counts the points: nothing of one comes to another.
That is seen from a trial on a few points in another number and order. The length of the axis must
follow theirs, and what comes back from the outputs of one must be zero at the others. Where
something later may put points in an order that depends on them, the call itself is looked at, too.
All other parameters act elsewhere: their gradients are written out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Real
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.kernels._uses import Call, Use, called, names_of

#: By weight, how it acts: for each use the kind, the bias and the shape of what comes at a point.
Acts = dict[str, tuple[tuple[str, str | None, tuple[int, ...]], ...]]

_tried: WeakKeyDictionary[nn.Module, dict[object, Acts]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False, kw_only=True)
class Watched:
    """A call: its outputs, the uses that take point by point, and the parameters of all others."""

    y: Tensor
    uses: tuple[Use, ...]
    others: tuple[str, ...]


def trial(model: nn.Module, x: Real[Tensor, "n *d"]) -> Watched:
    """Call a module with a few points, and remember for later calls what they tell of it."""
    _tried.pop(model, None)
    return _trial(model, x)


def watched(model: nn.Module, x: Real[Tensor, "n *d"]) -> Watched:
    """Call a module and see where its parameters act, as far as gradients reach them."""
    acts = _tried.get(model, {}).get(_key(x))
    if acts is None:
        acts = _acts(_trial(model, x).uses)
    call = called(model, x)
    found = _acts(call.uses)
    apart = {weight for weight in found if found[weight] == acts.get(weight)}
    masks = _halves(x) if call.moves else []
    return _sorted_out(call, lambda use: use.weight in apart, masks)


def _trial(model: nn.Module, x: Tensor) -> Watched:
    count = _count(x)
    order = torch.randperm(len(x), generator=generator(0))[torch.arange(count) % len(x)]
    one = torch.arange(count, device=x.device) == 2
    seen = _sorted_out(called(model, x[order.to(x.device)]), lambda use: True, [one])
    _tried.setdefault(model, {})[_key(x)] = _acts(seen.uses)
    return seen


def _count(x: Tensor) -> int:
    """Return the number of points in a trial: another one than in ``x``."""
    return 5 if len(x) == 4 else 4


def _key(x: Tensor) -> object:
    return x.shape[1:], x.dtype, _count(x)


def _acts(uses: Sequence[Use]) -> Acts:
    found: Acts = {}
    for use in uses:
        found[use.weight] = (*found.get(use.weight, ()), (use.kind, use.bias, use.shape[1:]))
    return found


def _halves(x: Tensor) -> list[Bool[Tensor, " n"]]:
    """Return sets of points such that any new order takes a point out of one of them."""
    numbers = torch.arange(len(x), device=x.device)
    return [(numbers >> bit) % 2 == 1 for bit in range((len(x) - 1).bit_length())]


def _sorted_out(
    call: Call, fits: Callable[[Use], bool], masks: Sequence[Bool[Tensor, " n"]]
) -> Watched:
    """Keep the uses that take point by point, of parameters that have no other."""
    left = {*call.elsewhere, *_used_in_many_ways(call.uses)}
    for use in call.uses:
        if not fits(use) or use.shape[:1] != (len(call.y),):
            left.update(names_of(use))
    for mask in masks:
        left |= _crossing(call, mask, left)
    while more := {
        name for use in call.uses if left & {*names_of(use)} for name in {*names_of(use)} - left
    }:  # a bias goes with its weight
        left |= more
    uses = tuple(use for use in call.uses if use.weight not in left)
    return Watched(y=call.y, uses=uses, others=tuple(sorted(left)))


def _crossing(call: Call, some: Bool[Tensor, " n"], left: set[str]) -> set[str]:
    """Return the parameters of uses where the outputs of some points come back at others."""
    uses = [use for use in call.uses if use.weight not in left]
    if not uses:
        return set()
    draws = torch.randn(call.y.shape, generator=generator(0), dtype=torch.float64).to(call.y)
    edges, draws = [use.edge for use in uses], draws * some[:, None]
    try:
        found: Sequence[Tensor | None] = torch.autograd.grad(
            call.y, edges, draws, retain_graph=True, allow_unused=True
        )
    except RuntimeError:  # what is called again on the way back finds other weights there
        return {name for use in uses for name in names_of(use)}
    return {
        name
        for use, g in zip(uses, found, strict=True)
        if g is not None and bool(g[~some].any())
        for name in names_of(use)
    }


def _used_in_many_ways(uses: Sequence[Use]) -> set[str]:
    """Return the parameters whose uses do not add up to one form."""
    ways: dict[str, set[tuple[str, str | None, str | None]]] = {}
    for number, use in enumerate(uses):
        kind = f"convolution {number}" if use.kind == "convolution" else use.kind
        for name in names_of(use):
            ways.setdefault(name, set()).add((kind, use.weight, use.bias))
    return {name for name, found in ways.items() if len(found) > 1}
