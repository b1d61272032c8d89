"""Ops of a module that act on each sample independently, so that gradients are structured.

An op does if one axis of its output is the batch: the first, the second (sequence first), or folded
with another into the first. This is tested by a trial on a few samples of another number and order.
The length of the axis must follow the batch size, and the cotangents of one sample must vanish at
all others. Where a later op may permute samples depending on their values, the call itself is
tested, too. Gradients by all other parameters are dense.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Real
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.kernels.tangent.op_recorder import ParameterOp
from inscape.kernels.tangent.recorded_call import RecordedCall, parameter_names, recorded_call

#: Positions of the batch axis in the output of an op.
FOLDS = ("first", "second", "samples times positions", "positions times samples")

#: Kinds of ops whose batch axis may be another than the first.
FOLDABLE = ("linear", "embedding", "scale", "shift")

#: By fold, the shape of the output per sample.
Forms = dict[str, tuple[int, ...]]

#: By weight, for each op: its kind, its bias and, by fold, the output shape per sample.
Usage = dict[str, list[tuple[str, str | None, Forms]]]

_trials: WeakKeyDictionary[nn.Module, dict[object, Usage]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False, kw_only=True)
class PerSampleCall:
    """Outputs of a call, the ops that act on each sample, and the parameters of all others."""

    y: Tensor
    ops: tuple[ParameterOp, ...]
    others: tuple[str, ...]
    bytes: int


def trial_call(model: nn.Module, x: Real[Tensor, "n *d"]) -> PerSampleCall:
    """Call a module with a few samples, and cache how its parameters act for later calls."""
    _trials.pop(model, None)
    return _run_trial(model, x)


def per_sample_call(model: nn.Module, x: Real[Tensor, "n *d"]) -> PerSampleCall:
    """Call a module and return the ops that act on each sample independently."""
    if _trials.get(model, {}).get(_key(x)) is None:
        _run_trial(model, x)
    usage = _trials[model][_key(x)]
    call = recorded_call(model, x)
    counts: dict[str, int] = {}
    forms = []
    for op in call.ops:
        index = counts[op.weight] = counts.get(op.weight, -1) + 1
        forms.append(_forms_of_trial(op, len(x), usage.get(op.weight, []), index))
    as_in_trial = {
        weight for weight, last in counts.items() if len(usage.get(weight, [])) == last + 1
    }
    forms = [
        form if op.weight in as_in_trial else {} for op, form in zip(call.ops, forms, strict=True)
    ]
    return _classified(call, forms, _bit_masks(x) if call.moves else [])


def _forms_of_trial(
    op: ParameterOp, n: int, usage: Sequence[tuple[str, str | None, Forms]], index: int
) -> Forms:
    """Return the forms of an op that agree with those of its trial."""
    if index >= len(usage) or usage[index][:2] != (op.kind, op.bias):
        return {}
    trial_shapes, forms = usage[index][2], _forms(op, n)
    return {fold: shape for fold, shape in forms.items() if trial_shapes.get(fold) == shape}


def _run_trial(model: nn.Module, x: Tensor) -> PerSampleCall:
    count = _trial_size(x)
    order = torch.randperm(len(x), generator=generator(0))[torch.arange(count) % len(x)]
    mask = torch.arange(count, device=x.device) == 2
    call = recorded_call(model, x[order.to(x.device)], measured=True)
    forms = [_forms(op, count) for op in call.ops]
    result = _classified(call, forms, [mask])
    usage: Usage = {}
    for op, form in zip(call.ops, forms, strict=True):
        usage.setdefault(op.weight, []).append((op.kind, op.bias, form))
    _trials.setdefault(model, {})[_key(x)] = usage
    return result


def _trial_size(x: Tensor) -> int:
    """Return the number of samples of a trial, different from that of ``x``."""
    return 5 if len(x) == 4 else 4


def _key(x: Tensor) -> object:
    return x.shape[1:], x.dtype, _trial_size(x)


def _forms(op: ParameterOp, n: int) -> Forms:
    """Return the possible positions of the batch axis, with the output shape per sample."""
    first, *rest = op.shape or (0,)
    forms: Forms = {}
    if first == n:
        forms["first"] = tuple(rest)
    if op.kind in FOLDABLE:
        if len(rest) > 1 and rest[0] == n:
            forms["second"] = (first, *rest[1:])
        if first > n and first % n == 0:
            forms |= dict.fromkeys(FOLDS[2:], (first // n, *rest))
    if op.kind in ("scale", "shift"):  # a parameter cannot differ between samples
        shape = op.options["shape"]
        axes = {fold: 1 if fold == "second" else 0 for fold in forms}
        forms = {fold: forms[fold] for fold, axis in axes.items() if shape[axis] == 1}
    return forms


def samples_first(t: Tensor, fold: str, n: int, before: int = 0) -> Tensor:
    """Return a tensor whose samples come first, after ``before`` other axes."""
    if fold == "second":
        return t.movedim(before + 1, before)
    if fold == "first":
        return t
    leading, trailing = t.shape[:before], t.shape[before + 1 :]
    if fold == "samples times positions":
        return t.reshape(*leading, n, -1, *trailing)
    return t.reshape(*leading, -1, n, *trailing).movedim(before + 1, before)


def _bit_masks(x: Tensor) -> list[Bool[Tensor, " n"]]:
    """Return masks such that every permutation moves a sample out of one of them."""
    indices = torch.arange(len(x), device=x.device)
    return [(indices >> bit) % 2 == 1 for bit in range((len(x) - 1).bit_length())]


def _classified(
    call: RecordedCall, forms: Sequence[Forms], masks: Sequence[Bool[Tensor, " n"]]
) -> PerSampleCall:
    """Return the ops that act on each sample independently, of parameters without others.

    Forms that a mask refutes are removed from ``forms``; exactly one must remain per op.
    """
    excluded = {*call.elsewhere, *_used_inconsistently(call.ops)}
    ops = list(zip(call.ops, forms, strict=True))
    for mask in masks:
        candidates = [(op, folds) for op, folds in ops if folds and op.weight not in excluded]
        _refute(call, mask, candidates)
    for op, folds in ops:
        if len(folds) != 1:
            excluded.update(parameter_names(op))
    while more := {
        name
        for op in call.ops
        if excluded & {*parameter_names(op)}
        for name in {*parameter_names(op)} - excluded
    }:  # a bias goes with its weight
        excluded |= more
    for op, folds in ops:
        if op.weight in excluded:
            folds.clear()
    accepted = tuple(replace(op, fold=next(iter(folds))) for op, folds in ops if folds)
    return PerSampleCall(y=call.y, ops=accepted, others=tuple(sorted(excluded)), bytes=call.bytes)


def _refute(
    call: RecordedCall, mask: Bool[Tensor, " n"], ops: Sequence[tuple[ParameterOp, Forms]]
) -> None:
    """Remove the forms in which cotangents of some samples do not vanish at others."""
    if not ops:
        return
    draws = torch.randn(call.y.shape, generator=generator(0), dtype=torch.float64).to(call.y)
    edges, draws = [op.edge for op, _ in ops], draws * mask[:, None]
    try:
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            call.y, edges, draws, retain_graph=True, allow_unused=True
        )
    except RuntimeError:  # recomputation in the backward pass meets detached weights
        gradients = [None] * len(ops)
        for _, folds in ops:
            folds.clear()
    for (_, folds), g in zip(ops, gradients, strict=True):
        for fold in list(folds):
            if g is not None and bool(samples_first(g, fold, len(mask))[~mask].any()):
                del folds[fold]


def _used_inconsistently(ops: Sequence[ParameterOp]) -> set[str]:
    """Return the parameters whose ops differ in kind, weight or bias."""
    usages: dict[str, set[tuple[str, str | None, str | None]]] = {}
    for number, op in enumerate(ops):
        kind = f"convolution {number}" if op.kind == "convolution" else op.kind
        for name in parameter_names(op):
            usages.setdefault(name, set()).add((kind, op.weight, op.bias))
    return {name for name, usage in usages.items() if len(usage) > 1}
