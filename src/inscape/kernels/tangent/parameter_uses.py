"""Where the parameters of a module act: the input of each map, and its output's edge in the graph.

One call of the module is watched. At every map that is known, the input is kept and the parameters
are handed on without their gradients. What parameters still have a gradient afterwards act
elsewhere as well: nothing can be missed, however the module is written. What no gradient comes to
from the outputs is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, saved_tensors_hooks

from inscape._core import UnsupportedModelError, checks
from inscape.kernels.tangent.recorded_maps import Use, Watch

#: How the names of operations begin that may put points in another order, as their values say.
MOVES = (
    *("Index", "Gather", "Scatter", "Sort", "Take", "Flip", "Roll", "Rot90", "Topk"),
    *("MaskedSelect", "MaskedScatter"),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Call:
    """A call: its outputs, the uses that gradients reach, and the parameters reached elsewhere.

    ``moves`` tells whether something after a map may have put points in another order, ``bytes``
    what autograd and the uses keep of it.
    """

    y: Tensor
    uses: tuple[Use, ...]
    elsewhere: frozenset[str]
    moves: bool
    bytes: int


def called(model: nn.Module, x: Tensor, *, measured: bool = False) -> Call:
    """Call a module and see where its parameters act; those without gradients are left out.

    Args:
        model: The module.
        x: Points.
        measured: Whether to add up the bytes that are kept.
    """
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    kept: dict[int, int] = {}
    try:
        watch, y = _watch(model, x, named, kept if measured else None)
    except UnsupportedModelError:
        if not measured:
            raise
        watch, y = _watch(model, x, named, None)  # transforms of torch.func let nobody count
    if watch.given_up:
        watch, y = _watch(model, x, {}, None)
    nodes = _before(y)
    places = {id(p): name for name, p in named.items()}
    leaves = (id(getattr(node, "variable", None)) for node in nodes)
    kept.update((use.a.data_ptr(), _bytes(use.a)) for use in watch.uses)
    for parameter in model.parameters():
        kept.pop(parameter.data_ptr(), None)
    return Call(
        y=y,
        uses=tuple(use for use in watch.uses if use.edge.node in nodes),
        elsewhere=frozenset(places[leaf] for leaf in leaves if leaf in places),
        moves=any(map(_moves, nodes)),
        bytes=sum(kept.values()),
    )


def _watch(
    model: nn.Module, x: Tensor, named: Mapping[str, Tensor], kept: dict[int, int] | None
) -> tuple[Watch, Tensor]:
    def counted(tensor: Tensor) -> Tensor:
        if kept is not None:
            kept[tensor.data_ptr()] = _bytes(tensor)
        return tensor

    def call() -> Tensor:
        return checks.call(model, x.detach().clone()).reshape(len(x), -1)

    watch = Watch(named)
    with torch.enable_grad(), watch:
        if kept is None:
            y = call()
        else:
            with saved_tensors_hooks(counted, lambda tensor: tensor):
                y = call()
    watch.refuse_overwriting()
    return watch, y


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def names_of(use: Use) -> tuple[str, ...]:
    """Return the weight and, if there is one, the bias."""
    return (use.weight,) if use.bias is None else (use.weight, use.bias)


def _before(y: Tensor) -> set[Node]:
    """Return all that the graph of ``y`` leads to."""
    seen: set[Node] = set()
    todo = [y.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo.extend(after for after, _ in node.next_functions)
    return seen


def _moves(node: Any) -> bool:
    name: str = node.name()
    if name.startswith(("Cat", "Stack")):
        return getattr(node, "_saved_dim", 0) == 0
    return isinstance(node, BackwardCFunction) or name.startswith(MOVES)
