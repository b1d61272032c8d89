"""A graph of tensor operations without those that change nothing."""

from collections.abc import Hashable

import torch
from torch import Tensor, fx

#: Views of the whole memory of their first argument. Others may begin elsewhere: at which element
#: is not written in a graph, whose tensors are known by shape and strides alone.
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


def lean(graph: fx.GraphModule) -> fx.GraphModule:
    """Drop, in place, unused operations, repeated views and detachments; return the graph.

    A detachment means nothing without autograd, and a view that looks at the memory of another in
    the same way is that other one.
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
    """Return the node whose whole memory a node looks at: itself, unless it is such a view."""
    while node.target in WHOLE_VIEWS:
        parent = node.args[0]
        assert isinstance(parent, fx.Node)
        node = parent
    return node
