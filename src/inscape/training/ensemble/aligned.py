"""Matrix products of a stack whose summation order does not depend on the slot.

A BLAS may choose its kernel by the address of a matrix: Intel's MKL on AMD processors adds up in
another order where a matrix does not begin on a cache line, and in a stack of small matrices most
slots do not. So every slot of both factors, and of the product, begins on a cache line here: a
factor is copied to a buffer with room between the slots, and rows or columns of zeros are added to
it until a slot of the product fills whole cache lines.
"""

import math
from typing import Any

import torch
from torch import Tensor, fx, nn

from inscape.training.ensemble.lean import source

#: Bytes of a cache line, to which PyTorch aligns every tensor that it allocates.
LINE = 64

#: Multiplications below which PyTorch sums in a loop of its own, the same for every slot.
NATIVE = 400


class AlignedFactor(nn.Module):
    """A stack of matrices whose slots all begin on a cache line, padded to ``rows x columns``."""

    def __init__(self, like: Tensor, rows: int, columns: int) -> None:
        super().__init__()
        slots, own_rows, own_columns = like.shape
        step = _whole(rows * columns, LINE // like.element_size())
        strides = (step, columns, 1) if like.stride(2) == 1 else (step, 1, rows)
        buffer = torch.zeros(slots * step, dtype=like.dtype, device=like.device)
        self._padded = buffer.as_strided((slots, rows, columns), strides)
        self._inside = self._padded[:, :own_rows, :own_columns]

    def forward(self, factor: Tensor) -> Tensor:
        """Return the factor, copied to the buffer, with the zeros around it."""
        self._inside.copy_(factor)
        return self._padded


class AlignedProduct(nn.Module):
    """The product of two stacks of matrices like those given, aligned in every slot.

    Whether a factor begins on a cache line, as a tensor of its own does, is said by ``begin``.
    """

    def __init__(
        self, left: Tensor, right: Tensor, begin: tuple[bool, bool] = (True, True)
    ) -> None:
        super().__init__()
        self._size, inner = (left.shape[1], right.shape[2]), left.shape[2]
        size = padded(*self._size, LINE // left.element_size())
        self._is_padded = size != self._size
        self._left = _factor(left, size[0], inner, begins=begin[0])
        self._right = _factor(right, inner, size[1], begins=begin[1])

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the product of each slot."""
        if self._left is not None:
            left = self._left.forward(left)
        if self._right is not None:
            right = self._right.forward(right)
        product = torch.bmm(left, right)
        if not self._is_padded:
            return product
        rows, columns = self._size
        return product[:, :rows, :columns].contiguous()


def padded(rows: int, columns: int, line: int) -> tuple[int, int]:
    """Return the smallest matrix around ``rows x columns`` that fills whole lines of elements.

    >>> padded(12, 33, 16), padded(12, 31, 16), padded(8, 6, 16)
    ((12, 36), (12, 32), (8, 6))
    """
    taller = _whole(rows, line // math.gcd(columns, line))
    wider = _whole(columns, line // math.gcd(rows, line))
    return (taller, columns) if taller * columns <= rows * wider else (rows, wider)


class PairedBackward(nn.Module):
    """The gradients of a convolution of one sample, computed beside a second sample of zeros.

    With more than one sample PyTorch copies what belongs to a slot, and a copy is aligned.
    """

    def forward(self, upstream: Tensor, x: Tensor, *settings: Any) -> list[Tensor | None]:
        """Return the gradients by the input, the weights and the biases."""
        pair = [torch.cat([tensor, torch.zeros_like(tensor)]) for tensor in (upstream, x)]
        by_input, *by_parameters = torch.ops.aten.convolution_backward(*pair, *settings)
        return [None if by_input is None else by_input[:1], *by_parameters]


def align_products(graph: fx.GraphModule) -> fx.GraphModule:
    """Replace, in place, the operations whose sums may depend on an address; return the graph."""
    for node in list(graph.graph.nodes):
        replacement = _replacement(node)
        if replacement is not None:
            name = f"aligned_{node.name}"
            graph.add_submodule(name, replacement)
            with graph.graph.inserting_before(node):
                ours = graph.graph.call_module(name, node.args)
            ours.meta = node.meta
            node.replace_all_uses_with(ours)
            graph.graph.erase_node(node)
    graph.recompile()
    return graph


def _replacement(node: fx.Node) -> nn.Module | None:
    """Return what takes the place of an operation, or None if it may stay."""
    if node.target not in (torch.ops.aten.bmm.default, torch.ops.aten.convolution_backward.default):
        return None
    left, right = node.args[:2]
    assert isinstance(left, fx.Node)
    assert isinstance(right, fx.Node)
    first, second = left.meta["val"], right.meta["val"]
    if first.device.type != "cpu":
        return None
    if node.target is torch.ops.aten.convolution_backward.default:
        return PairedBackward() if len(first) == 1 else None
    sums_by_itself = first[0].numel() * second.shape[2] < NATIVE
    if sums_by_itself:
        return None
    return AlignedProduct(first, second, (_is_new(source(left)), _is_new(source(right))))


def _factor(factor: Tensor, rows: int, columns: int, *, begins: bool) -> AlignedFactor | None:
    """Return how a factor is aligned, or None if it is so, and of the right size, by itself."""
    steps = factor.stride(0) % (LINE // factor.element_size()) == 0
    if begins and steps and tuple(factor.shape[1:]) == (rows, columns):
        return None
    return AlignedFactor(factor, rows, columns)


def _is_new(node: fx.Node) -> bool:
    """Tell whether a node is a tensor of its own, which PyTorch has aligned, and no part of one."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.op in ("placeholder", "call_module")
    return not (node.target.is_view or node.target._schema.is_mutable)


def _whole(size: int, unit: int) -> int:
    """Return the smallest multiple of the unit that is no smaller than the size."""
    return -(-size // unit) * unit
