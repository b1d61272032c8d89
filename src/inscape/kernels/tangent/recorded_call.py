"""A recorded call of a module: the ops through which its parameters act.

At every supported op the input is stored and the parameters are detached. Parameters that still
have a gradient afterwards act elsewhere as well, so that none is missed however the module is
written. Ops that no gradient reaches from the outputs are dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, saved_tensors_hooks

from inscape._core import UnsupportedModelError, checks
from inscape.kernels.tangent.op_recorder import OpRecorder, ParameterOp

#: Prefixes of autograd nodes that may permute samples depending on their values.
PERMUTING = (
    *("Index", "Gather", "Scatter", "Sort", "Take", "Flip", "Roll", "Rot90", "Topk"),
    *("MaskedSelect", "MaskedScatter"),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedCall:
    """Outputs of a call, the ops that gradients reach, and the parameters reached elsewhere.

    ``moves`` is whether a later op may have permuted the samples, ``bytes`` what autograd and the
    recorded ops store.
    """

    y: Tensor
    ops: tuple[ParameterOp, ...]
    elsewhere: frozenset[str]
    moves: bool
    bytes: int


def recorded_call(model: nn.Module, x: Tensor, *, measured: bool = False) -> RecordedCall:
    """Call a module and record the ops of its trainable parameters.

    Args:
        model: The module.
        x: Samples.
        measured: Whether to count the bytes that are stored.
    """
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    saved: dict[int, int] = {}
    try:
        recorder, y = _record(model, x, named, saved if measured else None)
    except UnsupportedModelError:
        if not measured:
            raise
        recorder, y = _record(model, x, named, None)  # torch.func transforms support no hooks
    if recorder.differentiates_itself:
        recorder, y = _record(model, x, {}, None)
    nodes = _ancestors(y)
    names = {id(p): name for name, p in named.items()}
    leaves = (id(getattr(node, "variable", None)) for node in nodes)
    saved.update((op.a.data_ptr(), _bytes(op.a)) for op in recorder.ops)
    for parameter in model.parameters():
        saved.pop(parameter.data_ptr(), None)
    return RecordedCall(
        y=y,
        ops=tuple(op for op in recorder.ops if op.edge.node in nodes),
        elsewhere=frozenset(names[leaf] for leaf in leaves if leaf in names),
        moves=any(map(_may_permute, nodes)),
        bytes=sum(saved.values()),
    )


def _record(
    model: nn.Module, x: Tensor, named: Mapping[str, Tensor], saved: dict[int, int] | None
) -> tuple[OpRecorder, Tensor]:
    def count(tensor: Tensor) -> Tensor:
        if saved is not None:
            saved[tensor.data_ptr()] = _bytes(tensor)
        return tensor

    def call() -> Tensor:
        return checks.call(model, x.detach().clone()).reshape(len(x), -1)

    recorder = OpRecorder(named)
    with torch.enable_grad(), recorder:
        if saved is None:
            y = call()
        else:
            with saved_tensors_hooks(count, lambda tensor: tensor):
                y = call()
    recorder.refuse_overwriting()
    return recorder, y


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def parameter_names(op: ParameterOp) -> tuple[str, ...]:
    """Return the weight and, if there is one, the bias."""
    return (op.weight,) if op.bias is None else (op.weight, op.bias)


def _ancestors(y: Tensor) -> set[Node]:
    """Return all nodes of the autograd graph of ``y``."""
    visited: set[Node] = set()
    queue = [y.grad_fn]
    while queue:
        node = queue.pop()
        if node is not None and node not in visited:
            visited.add(node)
            queue.extend(parent for parent, _ in node.next_functions)
    return visited


def _may_permute(node: Any) -> bool:
    name: str = node.name()
    if name.startswith(("Cat", "Stack")):
        return getattr(node, "_saved_dim", 0) == 0
    return isinstance(node, BackwardCFunction) or name.startswith(PERMUTING)
