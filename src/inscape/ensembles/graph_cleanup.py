"""Removal of operations without effect from a graph of tensor operations."""

from collections.abc import Hashable

import torch
from torch import Tensor, fx

#: Views of the whole memory of their first argument. Others may begin at another element, which a
#: graph does not record: its tensors are known by shape and strides alone.
WHOLE_VIEWS = frozenset(
    {
        torch.ops.aten._unsafe_view.default,
        torch.ops.aten.detach.default,
        torch.ops.aten.expand.default,
        torch.ops.aten.permute.default,
        torch.ops.aten.squeeze.dim,
        torch.ops.aten.t.default,
        torch.ops.aten.transpose.int,
        torch.ops.aten.unsqueeze.default,
        torch.ops.aten.view.default,
    }
)


def simplify(graph: fx.GraphModule) -> fx.GraphModule:
    """Drop, in place, unused operations, repeated views and detachments; return the graph.

    A detachment has no effect without autograd, and a view with the memory and layout of another is
    replaced by it.
    """
    views: dict[Hashable, fx.Node] = {}
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            layout = source(node), value.dtype, value.shape, value.stride()
            first = views.setdefault(layout, node)
            if first is not node:
                node.replace_all_uses_with(first)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def source(node: fx.Node) -> fx.Node:
    """Return the node whose memory a node shows: itself, unless it is a view of all of it."""
    while node.target in WHOLE_VIEWS:
        parent = node.args[0]
        assert isinstance(parent, fx.Node)
        node = parent
    return node
