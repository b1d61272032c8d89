"""Which maps of a module act on each sample independently, so that gradients have a short form.

A map does if an axis of its output counts the points: nothing of one comes to another. That axis is
the first, the second (sequence first), or folded with another into the first. It is seen from a
trial on a few points in another number and order. The length of the axis must follow theirs, and
what comes back from the outputs of one must be zero at the others. Where something later may put
points in an order that depends on them, the call itself is looked at, too. All other parameters act
elsewhere: their gradients are written out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Real
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.kernels.tangent.parameter_uses import Call, called, names_of
from inscape.kernels.tangent.recorded_maps import Use

#: Where points may stand in the output of a map.
FOLDS = ("first", "second", "points times places", "places times points")

#: Kinds of maps whose points may stand elsewhere than first.
FOLDED = ("linear", "table", "scale", "shift")

#: By fold, the shape of what comes at a point.
Forms = dict[str, tuple[int, ...]]

#: By weight, how it acts: for each use the kind, the bias and, by fold, the shape at a point.
Acts = dict[str, list[tuple[str, str | None, Forms]]]

_tried: WeakKeyDictionary[nn.Module, dict[object, Acts]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False, kw_only=True)
class Watched:
    """A call: its outputs, the uses that act on each sample, and the parameters of all others."""

    y: Tensor
    uses: tuple[Use, ...]
    others: tuple[str, ...]
    bytes: int


def trial(model: nn.Module, x: Real[Tensor, "n *d"]) -> Watched:
    """Call a module with a few points, and remember for later calls what they tell of it."""
    _tried.pop(model, None)
    return _trial(model, x)


def watched(model: nn.Module, x: Real[Tensor, "n *d"]) -> Watched:
    """Call a module and see where its parameters act, as far as gradients reach them."""
    if _tried.get(model, {}).get(_key(x)) is None:
        _trial(model, x)
    acts = _tried[model][_key(x)]
    call = called(model, x)
    seen: dict[str, int] = {}
    forms = []
    for use in call.uses:
        number = seen[use.weight] = seen.get(use.weight, -1) + 1
        forms.append(_common(use, len(x), acts.get(use.weight, []), number))
    whole = {weight for weight, last in seen.items() if len(acts.get(weight, [])) == last + 1}
    forms = [
        form if use.weight in whole else {} for use, form in zip(call.uses, forms, strict=True)
    ]
    return _sorted_out(call, forms, _halves(x) if call.moves else [])


def _common(use: Use, n: int, acts: Sequence[tuple[str, str | None, Forms]], number: int) -> Forms:
    """Return the forms of a use that are those of its trial."""
    if number >= len(acts) or acts[number][:2] != (use.kind, use.bias):
        return {}
    tried, forms = acts[number][2], _forms(use, n)
    return {fold: shape for fold, shape in forms.items() if tried.get(fold) == shape}


def _trial(model: nn.Module, x: Tensor) -> Watched:
    count = _count(x)
    order = torch.randperm(len(x), generator=generator(0))[torch.arange(count) % len(x)]
    one = torch.arange(count, device=x.device) == 2
    call = called(model, x[order.to(x.device)], measured=True)
    forms = [_forms(use, count) for use in call.uses]
    seen = _sorted_out(call, forms, [one])
    acts: Acts = {}
    for use, form in zip(call.uses, forms, strict=True):
        acts.setdefault(use.weight, []).append((use.kind, use.bias, form))
    _tried.setdefault(model, {})[_key(x)] = acts
    return seen


def _count(x: Tensor) -> int:
    """Return the number of points in a trial: another one than in ``x``."""
    return 5 if len(x) == 4 else 4


def _key(x: Tensor) -> object:
    return x.shape[1:], x.dtype, _count(x)


def _forms(use: Use, n: int) -> Forms:
    """Return the folds in which points may stand in the output of a map, with the shape of each."""
    first, *rest = use.shape or (0,)
    forms: Forms = {}
    if first == n:
        forms["first"] = tuple(rest)
    if use.kind in FOLDED:
        if len(rest) > 1 and rest[0] == n:
            forms["second"] = (first, *rest[1:])
        if first > n and first % n == 0:
            forms |= dict.fromkeys(FOLDS[2:], (first // n, *rest))
    if use.kind in ("scale", "shift"):  # a parameter that differs from point to point is none
        shape = use.options["shape"]
        axes = {fold: 1 if fold == "second" else 0 for fold in forms}
        forms = {fold: forms[fold] for fold, axis in axes.items() if shape[axis] == 1}
    return forms


def points_first(t: Tensor, fold: str, n: int, before: int = 0) -> Tensor:
    """Return a tensor whose points come first, after ``before`` other axes."""
    if fold == "second":
        return t.movedim(before + 1, before)
    if fold == "first":
        return t
    outside, inside = t.shape[:before], t.shape[before + 1 :]
    if fold == "points times places":
        return t.reshape(*outside, n, -1, *inside)
    return t.reshape(*outside, -1, n, *inside).movedim(before + 1, before)


def _halves(x: Tensor) -> list[Bool[Tensor, " n"]]:
    """Return sets of points such that any new order takes a point out of one of them."""
    numbers = torch.arange(len(x), device=x.device)
    return [(numbers >> bit) % 2 == 1 for bit in range((len(x) - 1).bit_length())]


def _sorted_out(call: Call, forms: Sequence[Forms], masks: Sequence[Bool[Tensor, " n"]]) -> Watched:
    """Keep the uses that act on each sample, of parameters that have no other.

    Forms that a mask refutes are taken out of ``forms``; a use must be left with one.
    """
    left = {*call.elsewhere, *_used_in_many_ways(call.uses)}
    uses = list(zip(call.uses, forms, strict=True))
    for mask in masks:
        tested = [(use, form) for use, form in uses if form and use.weight not in left]
        _refute(call, mask, tested)
    for use, form in uses:
        if len(form) != 1:
            left.update(names_of(use))
    while more := {
        name for use in call.uses if left & {*names_of(use)} for name in {*names_of(use)} - left
    }:  # a bias goes with its weight
        left |= more
    for use, form in uses:
        if use.weight in left:
            form.clear()
    kept = tuple(replace(use, fold=next(iter(form))) for use, form in uses if form)
    return Watched(y=call.y, uses=kept, others=tuple(sorted(left)), bytes=call.bytes)


def _refute(call: Call, some: Bool[Tensor, " n"], uses: Sequence[tuple[Use, Forms]]) -> None:
    """Take out the forms in which the outputs of some points come back at others."""
    if not uses:
        return
    draws = torch.randn(call.y.shape, generator=generator(0), dtype=torch.float64).to(call.y)
    edges, draws = [use.edge for use, _ in uses], draws * some[:, None]
    try:
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            call.y, edges, draws, retain_graph=True, allow_unused=True
        )
    except RuntimeError:  # what is called again on the way back finds other weights there
        gradients = [None] * len(uses)
        for _, form in uses:
            form.clear()
    for (_, form), g in zip(uses, gradients, strict=True):
        for fold in list(form):
            if g is not None and bool(points_first(g, fold, len(some))[~some].any()):
                del form[fold]


def _used_in_many_ways(uses: Sequence[Use]) -> set[str]:
    """Return the parameters whose uses do not add up to one form."""
    ways: dict[str, set[tuple[str, str | None, str | None]]] = {}
    for number, use in enumerate(uses):
        kind = f"convolution {number}" if use.kind == "convolution" else use.kind
        for name in names_of(use):
            ways.setdefault(name, set()).add((kind, use.weight, use.bias))
    return {name for name, kinds in ways.items() if len(kinds) > 1}
