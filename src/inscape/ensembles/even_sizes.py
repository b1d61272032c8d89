"""Operations whose rounding may depend on the place of an element: why stacks have even sizes.

A vectorised loop hands its last elements, those that do not fill a register, to other code. Sums,
products and roots are equal there; an exponential may differ in its last bit, once in a while. A
trial could miss that, so such operations are allowed only where no element is left over.
"""

import torch
from torch import Tensor, fx
from torch.utils._pytree import tree_leaves

#: Operations that are exact, rounded correctly, or added up in one order for each slot, which a
#: trial would show at once if it were not so. The rounding of others may depend on the place.
NAMES = """
    _to_copy _unsafe_view abs add add_ addmm arange baddbmm bmm cat clamp clamp_min clone
    convolution convolution_backward copy copy_ div eq expand fill full full_like gather ge gt
    index_select le leaky_relu leaky_relu_backward lift_fresh_copy lt max_pool2d_with_indices
    max_pool2d_with_indices_backward maximum mean minimum mm mse_loss mul ne neg new_zeros ones
    ones_like relu rsub scalar_tensor select_backward sgn sign slice_backward sqrt stack sub sum
    threshold_backward where zero_ zeros zeros_like
"""
EXACT = frozenset(NAMES.split())

#: Largest number of bytes of one turn of a vectorised loop: two registers of 512 bits.
TURN = 128

#: Number of elements above which PyTorch divides a loop between threads.
GRAIN = 32768


def uneven(graph: fx.GraphModule) -> list[str]:
    """Return the operations of a stack that may round differently at the end of a loop."""
    stacked: set[fx.Node] = set()  # those with slots: constants are the same at every width
    operations = set()
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            stacked.add(node)
        elif node.op.startswith("call_") and stacked.intersection(node.all_input_nodes):
            stacked.add(node)
            if not _is_exact(node) and _left_over(node):
                operations.add(_name(node))
    return sorted(operations)


def is_view(node: fx.Node) -> bool:
    """Return whether an operation is a view of a tensor."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view


def results(node: fx.Node) -> list[Tensor]:
    """Return tensors like the results of an operation."""
    return [t for t in tree_leaves(node.meta.get("val")) if isinstance(t, Tensor)]


def _name(node: fx.Node) -> str:
    target = node.target
    return target._schema.name.split("::")[-1] if hasattr(target, "_schema") else str(target)


def _is_exact(node: fx.Node) -> bool:
    if node.op == "call_module":  # a product or a convolution; see aligned_products.py
        return True
    name = _name(node)
    if name == "pow":
        return node.args[1] in (2, 2.0)
    return is_view(node) or name in EXACT or "getitem" in name


def _left_over(node: fx.Node) -> bool:
    """Return whether any thread's part of the results does not fill its registers."""
    for tensor in results(node):
        size, turn = tensor.numel(), TURN // tensor.element_size()
        threads = max(1, min(torch.get_num_threads(), -(-size // GRAIN)))
        if size % turn or -(-size // threads) % turn:
            return True
    return False
