"""Operations that return maxima and their indices, where only the maxima are used."""

from collections.abc import Callable
from operator import getitem
from typing import Any

import torch
from torch import fx

from inscape.piecewise.graph.ops import name_of, setting

_ATEN = torch.ops.aten


def values_alone(graph: fx.Graph) -> None:
    """Replace each such operation by one that returns the maxima as its only tensor.

    Where the indices themselves are used the operation stays, to be refused by name.
    """
    for node in list(graph.nodes):
        if node.op != "call_function" or (alone := _alone(node)) is None:
            continue
        parts = {user.args[1]: user for user in node.users if user.target is getitem}
        if len(parts) < len(node.users) or (1 in parts and parts[1].users) or 0 not in parts:
            continue
        with graph.inserting_before(node):
            new = graph.call_function(*alone)
        new.meta = dict(parts[0].meta)
        parts[0].replace_all_uses_with(new)
        for part in parts.values():
            graph.erase_node(part)
        graph.erase_node(node)


def _alone(node: fx.Node) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """Return the operation for the maxima alone, with its arguments; None for any other node."""
    name, form = name_of(node), getattr(node.target, "_overloadname", "")
    if name in ("max", "min") and form == "dim":
        largest = _ATEN.amax.default if name == "max" else _ATEN.amin.default
        return largest, (node.args[0], [setting(node, "dim")], setting(node, "keepdim"))
    alternative = _ALONE.get(name)
    return None if alternative is None else (alternative, node.args)


def _first(name: str) -> Callable[..., Any]:
    both = getattr(_ATEN, name).default

    def values(*args: Any) -> Any:
        return both(*args)[0]

    values.__name__ = name
    return values


_ALONE: dict[str, Callable[..., Any]] = {
    **{f"adaptive_max_pool{d}d": _first(f"adaptive_max_pool{d}d") for d in (1, 2, 3)},
    **{f"max_pool{d}d_with_indices": getattr(_ATEN, f"max_pool{d}d").default for d in (1, 2, 3)},
}
